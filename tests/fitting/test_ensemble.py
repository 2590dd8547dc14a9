"""Temperatures and mixtures."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from graphpartner.fitting.ensemble import ensemble_temperature_ratio, ensemble_weights, merit
from graphpartner.fitting.scores import calibration_error
from graphpartner.model.calibration import (
    COLDEST,
    HOTTEST,
    SHIFT_L2,
    T_PRIOR,
    class_shift,
    nll_of_probabilities,
    temperature_scaling,
    with_temperature,
)


def drawn(n, sharpness, seed=0):
    """Classes drawn from a softmax, and the same softmax made too sharp."""
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(n, 4, generator=generator)
    y = torch.multinomial(logits.softmax(1), 1, generator=generator).squeeze(1)
    return (sharpness * logits).softmax(1), y


@pytest.mark.parametrize("sharpness", [0.5, 1.0, 3.0])
def test_the_right_temperature_is_found(sharpness):
    p, y = drawn(20_000, sharpness)
    T = temperature_scaling(p, y)
    assert pytest.approx(sharpness, rel=0.08) == T
    honest = with_temperature(p, T)
    assert calibration_error(honest.max(1).values, honest.argmax(1) == y) < 0.02


@given(
    n=st.integers(1, 60), sharpness=st.floats(0.05, 20), seed=st.integers(0, 1000), values=st.sampled_from([2, 13, 61])
)
def test_no_other_temperature_of_the_grid_is_better(n, sharpness, seed, values):
    p, y = drawn(n, sharpness, seed)
    grid = np.geomspace(COLDEST, HOTTEST, values)
    cost = {
        float(T): n * nll_of_probabilities(with_temperature(p.double(), float(T)), y) + T_PRIOR * np.log(T) ** 2
        for T in grid
    }
    assert cost[temperature_scaling(p.double(), y, values)] <= min(cost.values()) + 1e-9


def test_few_temperatures_are_tried(monkeypatch):
    """On cores that others use, every look costs milliseconds: a hundred of them cost a fit its budget."""
    p, y = drawn(500, 3.0)
    tried = []
    monkeypatch.setattr(
        "graphpartner.model.calibration.with_temperature", lambda p, T: tried.append(T) or with_temperature(p, T)
    )
    assert temperature_scaling(p, y, values=61) == pytest.approx(3, rel=0.2)
    assert len(tried) <= 12


def test_few_nodes_pull_towards_one():
    p, y = drawn(4, 3.0)
    assert 0.7 < temperature_scaling(p, y) < 2


def test_tempered():
    p = torch.tensor([[0.8, 0.2]])
    torch.testing.assert_close(with_temperature(p, 1.0), p)
    torch.testing.assert_close(with_temperature(p, 0.5), torch.tensor([[0.64, 0.04]]) / 0.68)
    shift = torch.tensor([0.0, 3.0]).log().clamp(min=0)  # the second class three times as likely
    torch.testing.assert_close(with_temperature(p, 1.0, shift), torch.tensor([[0.8, 0.6]]) / 1.4)


@given(n=st.integers(1, 60), classes=st.integers(2, 6), sharpness=st.floats(0.1, 8), seed=st.integers(0, 99))
def test_class_shift_is_the_minimum(n, classes, sharpness, seed):
    generator = torch.Generator().manual_seed(seed)
    p = (sharpness * torch.randn(n, classes, generator=generator)).softmax(1)
    y = torch.randint(0, classes, (n,), generator=generator)
    shift = class_shift(p, y).double()
    assert float(shift.mean()) == pytest.approx(0, abs=1e-5)
    expected = (p.double().clamp(min=1e-9).log() + shift).softmax(1).sum(0)
    counted = torch.bincount(y, minlength=classes).double()
    torch.testing.assert_close(expected + 2 * SHIFT_L2 * shift, counted, atol=1e-3, rtol=1e-4)  # no slope is left


def test_class_shift_finds_what_was_taken_away():
    p, y = drawn(20_000, 1.0)
    taken = torch.tensor([0.6, -0.2, -0.4, 0.0])
    torch.testing.assert_close(class_shift(with_temperature(p, 1.0, -taken), y), taken, atol=0.06, rtol=0)
    assert class_shift(p[:5], y[:5]).abs().max() < 0.2  # few nodes hardly shift anything


def test_mixture_is_not_worse_than_its_best_part():
    torch.manual_seed(0)
    y = torch.randint(0, 3, (600,))
    right = torch.nn.functional.one_hot(y, 3).float()
    noisy = [(2 * right + 1.5 * torch.randn(600, 3)).softmax(1) for _ in range(3)]
    useless = torch.full((600, 3), 1 / 3)
    weights = ensemble_weights([*noisy, useless], y)
    assert sum(weights) == pytest.approx(1)
    assert weights[3] == 0
    mixed = torch.stack([w * p for w, p in zip(weights, [*noisy, useless], strict=True)]).sum(0)
    assert merit(mixed, y) > max(merit(p, y) for p in noisy) + 0.02


def test_few_judges_give_the_best_an_equal_say():
    torch.manual_seed(0)
    y = torch.randint(0, 3, (40,))
    right = torch.nn.functional.one_hot(y, 3).float()
    good = [(3 * right + torch.randn(40, 3)).softmax(1) for _ in range(6)]
    weights = ensemble_weights([*good, 1 - right], y)
    assert sorted(weights) == [0, 0, 0, 0.25, 0.25, 0.25, 0.25]
    assert weights[6] == 0
    assert ensemble_weights([good[0], 1 - right, 1 - right], y) == [1, 0, 0]  # the others are clearly worse


def noisy(runs, noise, n=6000, seed=0):
    """Classes drawn from a softmax, and runs that each know its logits with noise of their own; twice as sharp."""
    generator = torch.Generator().manual_seed(seed)
    logits = 1.5 * torch.randn(n, 4, generator=generator)
    y = torch.multinomial(logits.softmax(1), 1, generator=generator).squeeze(1)
    return (2 * (logits + noise * torch.randn(runs, n, 4, generator=generator))).softmax(-1), y


@pytest.mark.parametrize("noise", [0.3, 0.6, 1.0, 2.0])
def test_a_mean_of_runs_is_cooled_without_labels(noise):
    answers, y = noisy(5, noise)
    one, mean = temperature_scaling(answers[0], y), answers.mean(0)
    ratio = ensemble_temperature_ratio(answers, one)
    before, after = (with_temperature(mean, T) for T in (one, one * ratio))
    errors = [calibration_error(p.max(1).values, p.argmax(1) == y) for p in (before, after)]
    assert errors[1] < 0.7 * errors[0]
    assert before.max(1).values.mean() < after.max(1).values.mean()
    if noise < 1:
        assert temperature_scaling(mean, y) == pytest.approx(one * ratio, rel=0.1)
        assert errors[1] < 0.03


def test_one_or_two_runs_are_not_cooled():
    answers, _ = noisy(2, 1.0, 50)
    assert ensemble_temperature_ratio(answers, 1.0) == ensemble_temperature_ratio(answers[:1], 1.0) == 1
    assert ensemble_temperature_ratio(answers[:1].expand(4, -1, -1), 1.0) == pytest.approx(
        1
    )  # nor a run that is repeated


def test_to_be_right_but_never_sure_is_no_fault():
    torch.manual_seed(0)
    y = torch.randint(0, 3, (5_000,))
    right = torch.nn.functional.one_hot(y, 3).float()
    shy = (0.9 * right + 0.2 * torch.rand(5_000, 3)).softmax(1)
    sure = (20 * torch.where(torch.rand(5_000, 1) < 0.97, right, right.roll(1, 1))).softmax(1)
    assert shy.amax(1).max() < 0.6
    assert merit(shy, y) > merit(sure, y)
    assert ensemble_weights([sure, shy], y)[1] > 0
