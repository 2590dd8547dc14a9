import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from graphpartner.model.calibration import EM_ROUNDS, class_prior, with_class_prior


@given(n=st.integers(2, 8), classes=st.integers(2, 4), seed=st.integers(0, 99))
def test_the_prior_equals_a_loop_over_nodes(n, classes, seed):
    logits = np.random.default_rng(seed).normal(size=(n, classes)) * 2
    p = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    prior = np.full(classes, 1 / classes)
    for _ in range(EM_ROUNDS):
        total = np.zeros(classes)
        for i in range(n):
            q = p[i] * prior
            total += q / q.sum()
        prior = total / n
    np.testing.assert_allclose(class_prior(torch.from_numpy(logits)[None])[0, 0], prior, rtol=1e-6, atol=1e-12)


def test_the_frequencies_of_classes_are_found_and_used():
    torch.manual_seed(0)
    shares = torch.tensor([0.7, 0.2, 0.1])
    y = torch.multinomial(shares, 20_000, replacement=True)
    place = 1.5 * torch.nn.functional.one_hot(y, 3) + torch.randn(20_000, 3)
    logits = 1.5 * place[None]  # the exact log-odds of the three classes if they were equally frequent
    assert class_prior(logits)[0, 0].tolist() == pytest.approx(shares.tolist(), abs=0.02)
    corrected, _ = with_class_prior(logits, torch.tensor([1.0]))
    before, after = ((each[0].argmax(-1) == y).float().mean().item() for each in (logits, corrected))
    assert after > before + 0.02


def test_a_run_without_correction_keeps_its_logits():
    logits = torch.randn(2, 30, 4)
    corrected, log_prior = with_class_prior(logits, torch.tensor([0.0, 0.5]))
    assert torch.equal(corrected[0], logits[0])
    alone, _ = with_class_prior(logits[1:], torch.tensor([0.5]))
    assert log_prior[0, 0].tolist() == [0, 0, 0, 0]
    torch.testing.assert_close(corrected[1], logits[1] / 0.5 + log_prior[1])
    torch.testing.assert_close(corrected[1:], alone)
    shift = corrected[1] - logits[1] / 0.5
    torch.testing.assert_close(shift, shift[:1].expand_as(shift), atol=1e-5, rtol=1e-5)
    assert shift[0].exp().sum().item() == pytest.approx(1, abs=1e-4)
