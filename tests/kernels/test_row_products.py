import pytest
import torch

from graphpartner.kernels.row_products import row_products


def test_by_hand():
    H = torch.tensor([[1.0, 2.0], [0.0, 3.0]])
    G = torch.tensor([[4.0, -1.0], [5.0, 0.0]])
    dots, own, other = row_products(H, G)
    assert dots.tolist() == [2, 0]  # 1·4 − 2·1, 0·5 + 3·0
    assert own.tolist() == [5, 9]
    assert other.tolist() == [17, 25]


@pytest.mark.parametrize("shape", [(6, 3), (2, 6, 3)])
def test_gradients(shape):
    torch.manual_seed(1)
    H, G = (torch.randn(shape, dtype=torch.float64, requires_grad=True) for _ in range(2))
    assert torch.autograd.gradcheck(row_products, (H, G))


@pytest.mark.parametrize("shape", [(50, 64), (3, 50, 33), (1, 7, 1)])
def test_compiled_loop_equals_float64(shape):
    torch.manual_seed(2)
    H = torch.randn(shape).transpose(-1, -2).contiguous().transpose(-1, -2).requires_grad_()  # with gaps in memory
    G = torch.randn(shape, requires_grad=True)
    exact = [part.detach().double().requires_grad_() for part in (H, G)]
    weights = [torch.randn(shape[:-1]) for _ in range(3)]

    def total(*pair):
        return sum((part * weight).sum() for part, weight in zip(row_products(*pair), weights, strict=True))

    for ours, theirs in zip(row_products(H, G), row_products(*exact), strict=True):
        torch.testing.assert_close(ours.double(), theirs, rtol=1e-5, atol=1e-5)
    found, expected = torch.autograd.grad(total(H, G), (H, G)), torch.autograd.grad(total(*exact), exact)
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours.double(), theirs, rtol=1e-5, atol=1e-5)
