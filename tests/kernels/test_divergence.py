import math

import pytest
import torch
import torch.nn.functional as F

from graphpartner.kernels.divergence import mean_divergence


def test_by_hand(kernels: str):
    """p = (¾, ¼) and q = (½, ½): ¾ ln 1.5 + ¼ ln ½; a second row that agrees halves the mean."""
    P, Q = torch.tensor([[math.log(3.0), 0.0]]), torch.zeros(1, 2)
    expected = 0.75 * math.log(1.5) + 0.25 * math.log(0.5)
    assert mean_divergence(P, Q, torch.tensor(1.0)).item() == pytest.approx(expected, abs=1e-6)
    assert mean_divergence(2 * P, Q, torch.tensor(2.0)).item() == pytest.approx(expected, abs=1e-6)
    both = torch.cat([P, Q]), torch.cat([Q, Q])
    assert mean_divergence(*both, torch.tensor(1.0)).item() == pytest.approx(expected / 2, abs=1e-6)


@pytest.mark.parametrize("shape", [(9, 7), (3, 9, 2)])
def test_equals_torch_and_its_gradient(kernels: str, shape):
    torch.manual_seed(0)
    P, Q = (3 * torch.randn(shape) for _ in range(2))
    T = 0.5 + torch.rand(shape[:-2])
    weights = torch.randn(shape[:-2])
    pairs = []
    for ours in (True, False):
        p, q = P.clone().requires_grad_(), Q.clone().requires_grad_()
        if ours:
            means = mean_divergence(p, q, T)
        else:
            log_p, log_q = ((each / T[..., None, None]).log_softmax(-1) for each in (p, q))
            means = F.kl_div(log_q, log_p, log_target=True, reduction="none").sum(-1).mean(-1)
        pairs.append((means, *torch.autograd.grad((means * weights).sum(), (p, q))))
    for found, expected in zip(*pairs, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def test_gradcheck_and_large_logits():
    torch.manual_seed(0)
    P, Q = (torch.randn(2, 4, 3, dtype=torch.float64, requires_grad=True) for _ in range(2))
    assert torch.autograd.gradcheck(mean_divergence, (P, Q, torch.tensor([0.5, 3.0], dtype=torch.float64)))
    far = torch.tensor([[1000.0, 0.0]])
    # p = (1, 0): ln 1 − ln q_1 = 1000
    assert mean_divergence(far, -far, torch.tensor(1.0)).item() == pytest.approx(2000 - 1000, abs=1e-3)
