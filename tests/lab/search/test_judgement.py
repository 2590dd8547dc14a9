import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from graphpartner.lab.search.judgement import (
    TEMPERATURES,
    Judgement,
    development,
    judge_settings,
    least_nll,
    node_shares,
    ranked,
)
from graphpartner.training.settings import Settings
from graphpartner.training.trainer import train
from tests.training.graphs import toy

BASE = Settings(hidden_channels=8, epochs=8, threshold=0.3)


def test_a_judgement_is_the_mean_of_single_runs():
    seen = development(toy(), 4)
    both = [BASE.replace(alpha=0.2), BASE.replace(alpha=0.7)]
    for found, each in zip(judge_settings(seen, both, "cpu"), both, strict=True):
        runs = train(seen, each, [0, 1, 2, 3], "cpu")
        assert found.accuracy == pytest.approx(float(runs.accuracy(seen.judge_mask).mean()))
        surprises = []
        for run in range(4):
            logits, y = runs.logits[run, seen.judge_mask[run]], seen.y[seen.judge_mask[run]]
            surprises.append(min(float(torch.nn.functional.cross_entropy(logits / T, y)) for T in TEMPERATURES))
        assert found.surprise == pytest.approx(sum(surprises) / 4, rel=1e-5)
        assert found.merit == found.accuracy - found.surprise


def test_shares_by_class():
    y = torch.tensor([0, 0, 0, 1, 1, -1])
    mask = torch.tensor([[True, True, True, True, False, False]])
    assert node_shares(mask, y)[0].tolist() == pytest.approx([0.25, 0.25, 0.25, 0.25, 0, 0])
    shares = node_shares(mask, y, torch.tensor([0.4, 0.6]))
    assert shares[0].tolist() == pytest.approx([0.4 / 3, 0.4 / 3, 0.4 / 3, 0.6, 0, 0])


@settings(max_examples=25)
@given(st.integers(0, 10_000), st.floats(0.3, 3.0))
def test_a_temperature_is_no_merit(seed, T):
    """Logits that are all larger by a factor are as good, up to the grid of temperatures."""
    random = torch.Generator().manual_seed(seed)
    y = torch.randint(4, (30,), generator=random)
    logits = torch.randn(2, 30, 4, generator=random) + torch.nn.functional.one_hot(y, 4)
    share = node_shares(torch.ones(2, 30, dtype=torch.bool), y)
    plain, scaled = least_nll(logits, y, share), least_nll(T * logits, y, share)
    assert torch.allclose(plain, scaled, atol=0.02)
    assert (plain <= math.log(4) + 0.1).all()


def test_accuracy_decides_first_and_likelihood_among_equals():
    judged = [Judgement(0.80, 0.70), Judgement(0.796, 0.60), Judgement(0.70, 0.10), Judgement(0.81, 0.65)]
    assert ranked(judged, nodes=600) == [1, 3, 0, 2]  # the standard error is 1.6 points
    assert ranked(judged, nodes=60_000)[0] == 3
