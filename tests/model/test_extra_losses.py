import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from graphpartner.model.losses import RAMP_EPOCHS, agreement_loss, distillation_loss, ramp_up, sharpened


def softmax(logits: np.ndarray) -> np.ndarray:
    power = np.exp(logits - logits.max(-1, keepdims=True))
    return power / power.sum(-1, keepdims=True)


@given(
    views=st.integers(1, 4),
    n=st.integers(1, 6),
    classes=st.integers(2, 5),
    s=st.floats(0.1, 1),
    seed=st.integers(0, 99),
)
def test_agreement_equals_a_loop_over_views_and_nodes(views, n, classes, s, seed):
    logits = np.random.default_rng(seed).normal(size=(views, n, classes)) * 3
    p = softmax(logits)
    total = 0.0
    for i in range(n):
        sharp = p[:, i].mean(0) ** (1 / s)
        sharp /= sharp.sum()
        total += sum(((p[v, i] - sharp) ** 2).sum() for v in range(views))
    assert float(agreement_loss(list(torch.from_numpy(logits)), s)) == pytest.approx(total / views / n, rel=1e-6)


def test_agreement_is_zero_for_equal_views_without_sharpening():
    logits = torch.randn(2, 5, 3)
    assert agreement_loss([logits, logits], 1.0).abs().max() < 1e-12
    assert (agreement_loss([logits, logits], 0.5) > 0).all()


@pytest.mark.parametrize("temperature", [1e-6, 0.01, 0.5, 1.0])
def test_sharpening_of_many_classes_at_any_temperature(temperature):
    p = torch.rand(50, 10, generator=torch.Generator().manual_seed(0)) + 0.5
    p = p / p.sum(1, keepdim=True)
    exact = p.double().log() / temperature
    expected = (exact - exact.logsumexp(1, keepdim=True)).exp()
    torch.testing.assert_close(sharpened(p, temperature).double(), expected, rtol=1e-3, atol=1e-4)


def test_no_gradient_flows_into_the_target():
    first, second = torch.randn(4, 3, requires_grad=True), torch.randn(4, 3)
    agreement_loss([first, second], 0.5).backward()
    p = torch.stack([first.detach().softmax(1), second.softmax(1)])
    sharp = (p.mean(0) ** 2) / (p.mean(0) ** 2).sum(1, keepdim=True)
    error = p[0] - sharp
    by_hand = p[0] * (error - (error * p[0]).sum(1, keepdim=True)) * 2 / 4 / 2
    torch.testing.assert_close(first.grad, by_hand, rtol=1e-4, atol=1e-7)


def test_opinions_that_are_certain_are_no_trouble():
    logits = torch.tensor([[300.0, 0, 0]], requires_grad=True)
    agreement_loss([logits, logits], 0.1).backward()
    assert torch.isfinite(logits.grad).all()


@given(n=st.integers(1, 6), classes=st.integers(2, 5), seed=st.integers(0, 99))
def test_distillation_equals_a_loop_over_nodes(n, classes, seed):
    rng = np.random.default_rng(seed)
    logits, teacher = rng.normal(size=(2, n, classes)), softmax(rng.normal(size=(2, n, classes)))
    slow = [-sum(teacher[r, i] @ np.log(softmax(logits[r, i])) for i in range(n)) / n for r in range(2)]
    np.testing.assert_allclose(distillation_loss(torch.from_numpy(logits), torch.from_numpy(teacher)), slow)


def test_the_ramp_ends_at_one():
    assert ramp_up(torch.tensor([0])).item() == pytest.approx(1 / RAMP_EPOCHS)
    assert ramp_up(torch.tensor([RAMP_EPOCHS - 1])).item() == 1
    assert ramp_up(torch.tensor([10 * RAMP_EPOCHS])).item() == 1
