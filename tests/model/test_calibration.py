import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from graphpartner.fitting.scores import calibration_error
from graphpartner.model.calibration import (
    EM_ROUNDS,
    MAX_TEMPERATURE,
    MIN_TEMPERATURE,
    SHIFT_L2,
    T_PRIOR,
    class_prior,
    class_shift,
    ensemble_temperature_ratio,
    temperature_scaling,
    with_class_prior,
    with_temperature,
)
from graphpartner.model.losses import nll


@given(n=st.integers(2, 8), classes=st.integers(2, 4), seed=st.integers(0, 99), weighted=st.booleans())
def test_the_class_prior_equals_a_loop_over_nodes(n: int, classes: int, seed: int, weighted: bool) -> None:
    rng = np.random.default_rng(seed)
    likelihood = np.exp(rng.normal(size=(n, classes)) * 2)
    weight = rng.dirichlet(np.ones(n)) if weighted else np.full(n, 1 / n)
    prior = np.full(classes, 1 / classes)
    for _ in range(EM_ROUNDS):
        total = np.zeros(classes)
        for i in range(n):
            q = likelihood[i] * prior
            total += weight[i] * q / q.sum()
        prior = total
    found = class_prior(torch.from_numpy(likelihood)[None], torch.from_numpy(weight) if weighted else None)
    np.testing.assert_allclose(found[0, 0], prior, rtol=1e-6, atol=1e-12)


def test_class_frequencies_are_estimated_and_used() -> None:
    torch.manual_seed(0)
    shares = torch.tensor([0.7, 0.2, 0.1])
    y = torch.multinomial(shares, 20_000, replacement=True)
    place = 1.5 * torch.nn.functional.one_hot(y, 3) + torch.randn(20_000, 3)
    logits = 1.5 * place[None]  # the exact log-odds of the three classes if they were equally frequent
    assert class_prior(logits.softmax(-1))[0, 0].tolist() == pytest.approx(shares.tolist(), abs=0.02)
    corrected, _ = with_class_prior(logits, torch.tensor([1.0]))
    before, after = ((each[0].argmax(-1) == y).float().mean().item() for each in (logits, corrected))
    assert after > before + 0.02


def test_a_run_without_correction_keeps_its_logits() -> None:
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


def drawn(n: int, sharpness: float, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Return softmax probabilities made too sharp, and classes drawn from the original ones."""
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(n, 4, generator=generator)
    y = torch.multinomial(logits.softmax(1), 1, generator=generator).squeeze(1)
    return (sharpness * logits).softmax(1), y


@pytest.mark.parametrize("sharpness", [0.5, 1.0, 3.0])
def test_the_right_temperature_is_found(sharpness: float) -> None:
    p, y = drawn(20_000, sharpness)
    T = temperature_scaling(p, y)
    assert pytest.approx(sharpness, rel=0.08) == T
    calibrated = with_temperature(p, T)
    assert calibration_error(calibrated.max(1).values, calibrated.argmax(1) == y) < 0.02


@given(
    n=st.integers(1, 60), sharpness=st.floats(0.05, 20), seed=st.integers(0, 1000), values=st.sampled_from([2, 13, 61])
)
def test_no_other_temperature_of_the_grid_is_better(n: int, sharpness: float, seed: int, values: int) -> None:
    p, y = drawn(n, sharpness, seed)

    def cost(T: float) -> float:
        return n * float(nll(with_temperature(p.double(), T).log(), y)) + T_PRIOR * np.log(T) ** 2

    costs = {float(T): cost(float(T)) for T in np.geomspace(MIN_TEMPERATURE, MAX_TEMPERATURE, values)}
    assert costs[temperature_scaling(p.double(), y, values)] <= min(costs.values()) + 1e-9


def test_few_temperatures_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """On cores that other programs use, every trial costs milliseconds: a hundred would cost a fit its budget."""
    p, y = drawn(500, 3.0)
    tried: list[float] = []
    monkeypatch.setattr(
        "graphpartner.model.calibration.with_temperature", lambda p, T: tried.append(T) or with_temperature(p, T)
    )
    assert temperature_scaling(p, y, values=61) == pytest.approx(3, rel=0.2)
    assert len(tried) <= 12


def test_few_nodes_pull_towards_one() -> None:
    p, y = drawn(4, 3.0)
    assert 0.7 < temperature_scaling(p, y) < 2


def test_temperature_and_shift() -> None:
    p = torch.tensor([[0.8, 0.2]])
    torch.testing.assert_close(with_temperature(p, 1.0), p)
    torch.testing.assert_close(with_temperature(p, 0.5), torch.tensor([[0.64, 0.04]]) / 0.68)
    shift = torch.tensor([0.0, 3.0]).log().clamp(min=0)  # the second class three times as likely
    torch.testing.assert_close(with_temperature(p, 1.0, shift), torch.tensor([[0.8, 0.6]]) / 1.4)


@given(n=st.integers(1, 60), classes=st.integers(2, 6), sharpness=st.floats(0.1, 8), seed=st.integers(0, 99))
def test_class_shift_is_the_minimum(n: int, classes: int, sharpness: float, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    p = (sharpness * torch.randn(n, classes, generator=generator)).softmax(1)
    y = torch.randint(0, classes, (n,), generator=generator)
    shift = class_shift(p, y).double()
    assert float(shift.mean()) == pytest.approx(0, abs=1e-5)
    expected = (p.double().clamp(min=1e-9).log() + shift).softmax(1).sum(0)
    counted = torch.bincount(y, minlength=classes).double()
    torch.testing.assert_close(expected + 2 * SHIFT_L2 * shift, counted, atol=1e-3, rtol=1e-4)  # zero gradient


def test_class_shift_restores_what_was_taken_away() -> None:
    p, y = drawn(20_000, 1.0)
    taken = torch.tensor([0.6, -0.2, -0.4, 0.0])
    torch.testing.assert_close(class_shift(with_temperature(p, 1.0, -taken), y), taken, atol=0.06, rtol=0)
    assert class_shift(p[:5], y[:5]).abs().max() < 0.2  # few nodes hardly shift anything


def noisy(runs: int, noise: float, n: int = 6000, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Return predictions of runs, twice as sharp as the truth plus noise, and classes drawn from the truth."""
    generator = torch.Generator().manual_seed(seed)
    logits = 1.5 * torch.randn(n, 4, generator=generator)
    y = torch.multinomial(logits.softmax(1), 1, generator=generator).squeeze(1)
    return (2 * (logits + noise * torch.randn(runs, n, 4, generator=generator))).softmax(-1), y


@pytest.mark.parametrize("noise", [0.3, 0.6, 1.0, 2.0])
def test_a_mean_of_runs_is_calibrated_without_labels(noise: float) -> None:
    runs, y = noisy(5, noise)
    one, mean = temperature_scaling(runs[0], y), runs.mean(0)
    ratio = ensemble_temperature_ratio(runs, one)
    before, after = (with_temperature(mean, T) for T in (one, one * ratio))
    errors = [calibration_error(p.max(1).values, p.argmax(1) == y) for p in (before, after)]
    assert errors[1] < 0.7 * errors[0]
    assert before.max(1).values.mean() < after.max(1).values.mean()
    if noise < 1:
        assert temperature_scaling(mean, y) == pytest.approx(one * ratio, rel=0.1)
        assert errors[1] < 0.03


def test_the_temperature_of_one_or_two_runs_stays() -> None:
    runs, _ = noisy(2, 1.0, 50)
    assert ensemble_temperature_ratio(runs, 1.0) == ensemble_temperature_ratio(runs[:1], 1.0) == 1
    repeated = runs[:1].expand(4, -1, -1)
    assert ensemble_temperature_ratio(repeated, 1.0) == pytest.approx(1)  # nor does that of a run that is repeated
