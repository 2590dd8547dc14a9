"""Temperatures and mixtures."""

import pytest
import torch

from graphpartner.fitting.ensemble import ensemble_weights, merit


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


def test_to_be_right_but_never_sure_is_no_fault():
    torch.manual_seed(0)
    y = torch.randint(0, 3, (5_000,))
    right = torch.nn.functional.one_hot(y, 3).float()
    shy = (0.9 * right + 0.2 * torch.rand(5_000, 3)).softmax(1)
    sure = (20 * torch.where(torch.rand(5_000, 1) < 0.97, right, right.roll(1, 1))).softmax(1)
    assert shy.amax(1).max() < 0.6
    assert merit(shy, y) > merit(sure, y)
    assert ensemble_weights([sure, shy], y)[1] > 0
