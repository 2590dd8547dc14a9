import math
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data

from graphpartner.graph.datasets import load_graph
from graphpartner.lab.search.judgement import (
    TEMPERATURES,
    Judgement,
    calibrated_nll,
    class_frequencies,
    development,
    judge_settings,
    node_weights,
    ranked,
)
from graphpartner.training.settings import Settings
from graphpartner.training.trainer import train
from tests.training.graphs import toy

BASE = Settings(hidden_channels=8, epochs=8, threshold=0.3)


def test_a_public_split_is_half_of_the_development_splits() -> None:
    data = load_graph("citeseer")
    seen = development(data, 6)
    pool = data.train_mask | data.val_mask
    for split in range(6):
        assert torch.equal(seen.train_mask[split], data.train_mask) == (split % 2 == 0)
        masks = torch.stack([seen.train_mask[split], seen.val_mask[split], seen.judge_mask[split]])
        assert torch.equal(masks.sum(0), pool.long())  # each node is under one mask
        assert torch.bincount(data.y[seen.train_mask[split]]).tolist() == [20] * 6
    assert len({tuple(row.nonzero().flatten().tolist()) for row in seen.train_mask[1::2]}) == 3


def test_other_numbers_are_other_splits() -> None:
    data = load_graph("citeseer")
    first, second = development(data, 4), development(data, 4, first=4)
    assert not torch.equal(first.train_mask[1], second.train_mask[1])
    assert torch.equal(development(data, 8).train_mask[4:], second.train_mask)


def test_other_labels_are_removed() -> None:
    data = load_graph("citeseer")
    seen = development(data, 4)
    known = (seen.train_mask | seen.val_mask | seen.judge_mask).any(0)
    assert (seen.y[~known] == -1).all()
    assert torch.equal(seen.y[known], data.y[known])
    assert "test_mask" not in seen
    assert (data.y >= 0).sum() == 3312  # the original graph is unchanged
    assert data.test_mask.sum() == 1000


def test_a_graph_without_a_public_split_has_random_ones() -> None:
    data = toy(400)
    for name in ("train_mask", "val_mask", "test_mask"):
        delattr(data, name)
    seen = development(data, 3)
    assert seen.train_mask.sum(1).tolist() == [60] * 3
    assert seen.val_mask.sum(1).tolist() == seen.judge_mask.sum(1).tolist() == [45] * 3
    assert [torch.bincount(seen.y[mask]).tolist() for mask in seen.judge_mask] == [[15] * 3] * 3
    assert not torch.equal(seen.train_mask[0], seen.train_mask[1])
    assert (seen.y[~(seen.train_mask | seen.val_mask | seen.judge_mask).any(0)] == -1).all()


def test_half_of_every_class_scores_and_other_seeds_draw_other_halves() -> None:
    data = load_graph("citeseer")
    seen = development(data, 4)
    for split in (0, 2):  # the public one
        both, half = (torch.bincount(data.y[mask], minlength=6) for mask in (data.val_mask, seen.judge_mask[split]))
        assert half.tolist() == (both // 2).tolist()
    assert not torch.equal(seen.judge_mask[0], seen.judge_mask[2])
    assert torch.equal(seen.judge_mask[2:], development(data, 2, first=2).judge_mask)


@settings(max_examples=25)
@given(st.lists(st.integers(1, 8), min_size=3, max_size=3), st.integers(0, 1000))
def test_class_frequencies_are_estimated_through_confusions(shares: list[int], seed: int) -> None:
    """A fifth of each class is predicted as another one; validation is balanced, the graph is not."""
    random = torch.Generator().manual_seed(seed)
    pi = torch.tensor(shares) / sum(shares)
    n, runs = 6_000, 4
    y = torch.multinomial(pi, n, replacement=True, generator=random)
    confusion = torch.tensor([[0.8, 0.2, 0.0], [0.0, 0.8, 0.2], [0.2, 0.0, 0.8]])
    val = torch.zeros(runs, n, dtype=torch.bool)
    for run in val:
        for c in range(3):
            members = (y == c).nonzero().squeeze(-1)
            run[members[torch.randperm(members.numel(), generator=random)[:150]]] = True
    drawn = [torch.multinomial(confusion[y], 1, generator=random).squeeze(-1) for _ in range(runs)]
    logits = torch.nn.functional.one_hot(torch.stack(drawn), 3).float()
    seen = Data(y=torch.where(val.any(0), y, -1), train_mask=torch.zeros_like(val), judge_mask=val)
    found = class_frequencies(SimpleNamespace(logits=logits), seen)
    assert float(found.sum()) == pytest.approx(1)
    assert torch.allclose(found, pi.double(), atol=0.06)


def test_a_judgement_is_the_mean_of_single_runs() -> None:
    seen = development(toy(), 4)
    both = [BASE.replace(alpha=0.2), BASE.replace(alpha=0.7)]
    for found, each in zip(judge_settings(seen, both, "cpu"), both, strict=True):
        runs = train(seen, each, [0, 1, 2, 3], "cpu")
        assert found.accuracy == pytest.approx(float(runs.accuracy(seen.judge_mask).mean()))
        losses = []
        for run in range(4):
            logits, y = runs.logits[run, seen.judge_mask[run]], seen.y[seen.judge_mask[run]]
            losses.append(min(float(torch.nn.functional.cross_entropy(logits / T, y)) for T in TEMPERATURES))
        assert found.nll == pytest.approx(sum(losses) / 4, rel=1e-5)
        assert found.merit == found.accuracy - found.nll


def test_node_weights_by_class() -> None:
    y = torch.tensor([0, 0, 0, 1, 1, -1])
    mask = torch.tensor([[True, True, True, True, False, False]])
    assert node_weights(mask, y)[0].tolist() == pytest.approx([0.25, 0.25, 0.25, 0.25, 0, 0])
    weights = node_weights(mask, y, torch.tensor([0.4, 0.6]))
    assert weights[0].tolist() == pytest.approx([0.4 / 3, 0.4 / 3, 0.4 / 3, 0.6, 0, 0])


@settings(max_examples=25)
@given(st.integers(0, 10_000), st.floats(0.3, 3.0))
def test_calibrated_nll_does_not_depend_on_the_scale_of_logits(seed: int, T: float) -> None:
    random = torch.Generator().manual_seed(seed)
    y = torch.randint(4, (30,), generator=random)
    logits = torch.randn(2, 30, 4, generator=random) + torch.nn.functional.one_hot(y, 4)
    weights = node_weights(torch.ones(2, 30, dtype=torch.bool), y)
    plain, scaled = calibrated_nll(logits, y, weights), calibrated_nll(T * logits, y, weights)
    assert torch.allclose(plain, scaled, atol=0.02)  # up to the grid of temperatures
    assert (plain <= math.log(4) + 0.1).all()


def test_accuracy_decides_first_and_likelihood_among_equals() -> None:
    judged = [Judgement(0.80, 0.70), Judgement(0.796, 0.60), Judgement(0.70, 0.10), Judgement(0.81, 0.65)]
    assert ranked(judged, nodes=600) == [1, 3, 0, 2]  # the standard error is 1.6 points
    assert ranked(judged, nodes=60_000)[0] == 3
