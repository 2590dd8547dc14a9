import pytest
import torch

from graphpartner.kernels.narrow_product import FEW, times


@pytest.mark.parametrize("shape", [(5, 4), (1, 5, 4), (3, 5, 4)])
@pytest.mark.parametrize("classes", [1, 7, FEW, FEW + 3])
def test_equals_the_plain_product(shape, classes):
    torch.manual_seed(0)
    H = torch.randn(shape, dtype=torch.float64, requires_grad=True)
    W = torch.randn(*shape[:-2], 4, classes, dtype=torch.float64, requires_grad=True)
    torch.testing.assert_close(times(H, W), H @ W)
    assert torch.autograd.gradcheck(times, (H, W))
