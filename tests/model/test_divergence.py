import math

import pytest
import torch
import torch.nn.functional as F

from graphpartner.model.divergence import divergence


def test_by_hand():
    """p = (¾, ¼) and q = (½, ½): ¾ ln 1.5 + ¼ ln ½."""
    P, Q = torch.tensor([[math.log(3.0), 0.0]]), torch.zeros(1, 2)
    expected = 0.75 * math.log(1.5) + 0.25 * math.log(0.5)
    assert divergence(P, Q).item() == pytest.approx(expected, abs=1e-6)
    assert divergence(P, P).item() == pytest.approx(0, abs=1e-7)


@pytest.mark.parametrize("shape", [(9, 7), (3, 9, 2)])
def test_equals_torch_and_its_gradient(shape):
    torch.manual_seed(0)
    P, Q = (3 * torch.randn(shape) for _ in range(2))
    pairs = []
    for ours in (True, False):
        p, q = P.clone().requires_grad_(), Q.clone().requires_grad_()
        rows = (
            divergence(p, q)
            if ours
            else F.kl_div(q.log_softmax(-1), p.log_softmax(-1), log_target=True, reduction="none").sum(-1)
        )
        pairs.append(
            (rows, *torch.autograd.grad((rows * torch.arange(rows.numel()).reshape(rows.shape)).sum(), (p, q)))
        )
    for found, expected in zip(*pairs, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def test_gradcheck_and_large_logits():
    torch.manual_seed(0)
    P, Q = (torch.randn(4, 3, dtype=torch.float64, requires_grad=True) for _ in range(2))
    assert torch.autograd.gradcheck(divergence, (P, Q))
    far = torch.tensor([[1000.0, 0.0]])
    assert divergence(far, -far).item() == pytest.approx(2000 - 1000, abs=1e-3)  # p = (1, 0): ln 1 − ln q_1 = 1000
