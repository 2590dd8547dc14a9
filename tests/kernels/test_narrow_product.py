import pytest
import torch

from graphpartner.kernels.narrow_product import NARROW_BELOW, matmul_narrow


@pytest.mark.parametrize("shape", [(5, 4), (1, 5, 4), (3, 5, 4)])
@pytest.mark.parametrize("classes", [1, 7, NARROW_BELOW, NARROW_BELOW + 3])
def test_equals_the_plain_product(shape, classes):
    torch.manual_seed(0)
    H = torch.randn(shape, dtype=torch.float64, requires_grad=True)
    W = torch.randn(*shape[:-2], 4, classes, dtype=torch.float64, requires_grad=True)
    torch.testing.assert_close(matmul_narrow(H, W), H @ W)
    assert torch.autograd.gradcheck(matmul_narrow, (H, W))
