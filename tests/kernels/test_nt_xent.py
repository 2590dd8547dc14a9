import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from graphpartner.kernels.nt_xent import nt_xent


def slow(first: Tensor, second: Tensor, temperature: float) -> Tensor:
    """GRACE's loss of one replica, pair by pair as its paper writes it."""
    n = len(first)
    u, v = (Z / Z.norm(dim=1, keepdim=True) for Z in (first, second))
    total = torch.zeros((), dtype=first.dtype)
    for a, b in ((u, v), (v, u)):
        for i in range(n):
            positive = (a[i] @ b[i] / temperature).exp()
            between = sum((a[i] @ b[k] / temperature).exp() for k in range(n) if k != i)
            within = sum((a[i] @ a[k] / temperature).exp() for k in range(n) if k != i)
            total = total - (positive / (positive + between + within)).log()
    return total / (2 * n)


@settings(max_examples=25)
@given(
    st.integers(0, 10_000), st.integers(1, 3), st.integers(1, 6), st.sampled_from([0.3, 0.9, 5.0]), st.integers(1, 13)
)
def test_loss_and_gradient_equal_the_slow_loop(
    seed: int, replicas: int, n: int, temperature: float, block: int
) -> None:
    torch.manual_seed(seed)
    first, second = torch.randn(2, replicas, n, 3, dtype=torch.float64).requires_grad_()
    factor = torch.randn(replicas, dtype=torch.float64)
    fast = nt_xent(first, second, temperature, block)
    expected = torch.stack([slow(first[r], second[r], temperature) for r in range(replicas)])
    torch.testing.assert_close(fast, expected)
    gradients = torch.autograd.grad((fast * factor).sum(), (first, second))
    for gradient, other in zip(gradients, torch.autograd.grad((expected * factor).sum(), (first, second)), strict=True):
        torch.testing.assert_close(gradient, other)


def test_recognised_nodes_cost_little() -> None:
    same = 10 * torch.eye(6)[None]
    assert nt_xent(same, same, 0.1).item() == pytest.approx(10 * 2.718281828**-10, rel=0.01)
    assert nt_xent(same, same.flip(1), 0.1).item() > 9
