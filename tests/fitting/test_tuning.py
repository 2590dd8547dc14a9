"""Weights of candidates in the mixture, from outcomes whose accuracy is known."""

import pytest
import torch
from torch_geometric.data import Data

from graphpartner.fitting.candidate_runs import Job, Outcome
from graphpartner.fitting.candidates import Traits, candidates_for
from graphpartner.fitting.folds import folds
from graphpartner.fitting.layouts import CandidateGraphs
from graphpartner.fitting.tuning import Tuner, ensemble_weights, merit

NAMED = {each.name: each for each in candidates_for(Traits(True, False, False, False))}


def tuner(n: int, accuracies: dict[str, tuple[float, list[int]]]) -> Tuner:
    """Return a tuner whose candidates have this accuracy, on these folds of a graph without edges."""
    y = torch.arange(n) % 2
    data = Data(x=torch.ones(n, 1), edge_index=torch.empty(2, 0, dtype=torch.int64), y=y, num_nodes=n)
    found = Tuner(CandidateGraphs(data, 2, torch.device("cpu")), y, folds(y, torch.arange(n), 0, 3), 0)
    for name, (right, done) in accuracies.items():
        for fold in done:
            val = found.folds[fold].val
            wrong = torch.arange(val.numel()) >= right * val.numel()
            p = torch.eye(2)[y[val] ^ wrong.long()] * 0.8 + 0.1
            none = torch.empty(0, 2)
            found.runs.outcomes.append(
                Outcome(Job(NAMED[name], fold, fold), torch.ones(1, 2), torch.eye(2), p, p, none, none, 1.0)
            )
    return found


def test_a_quicker_candidate_that_is_worse_does_not_displace_the_best() -> None:
    done = {"linear": (0.80, [0, 1, 2]), "mlp": (0.81, [0, 1]), "two-hops": (0.90, [0, 1])}
    tuned = tuner(6000, done).mixture()
    assert tuned.weights == {"two-hops": 1.0}
    assert tuned.val_nodes.numel() == 4000


def test_the_best_is_compared_on_all_folds_it_has_done_whatever_an_equal_one_has_not() -> None:
    done = {"mlp": (0.88, [0, 1, 2]), "two-hops": (0.87, [0])}
    tuned = tuner(6000, done).mixture()
    assert tuned.weights == {"mlp": 1.0}
    assert tuned.val_nodes.numel() == 6000


def test_on_few_validation_nodes_all_that_may_be_the_best_have_weight() -> None:
    done = {"mlp": (0.4, [0, 1, 2]), "shallow": (0.8, [0, 1, 2]), "two-hops": (0.7, [0, 1]), "middle": (0.7, [0, 1])}
    tuned = tuner(60, done).mixture()
    assert set(tuned.weights) == {"shallow", "two-hops", "middle"}
    assert tuned.val_nodes.numel() == 40


def test_a_candidate_that_is_clearly_worse_has_no_weight() -> None:
    done = {"mlp": (0.9, [0]), "deep": (0.6, [0])}
    assert tuner(6000, done).mixture().weights == {"mlp": 1.0}


def test_nothing_done_is_an_interruption() -> None:
    with pytest.raises(KeyboardInterrupt):
        tuner(60, {}).mixture()


def test_mixture_is_not_worse_than_its_best_part() -> None:
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


def test_on_few_nodes_the_best_have_equal_weight() -> None:
    torch.manual_seed(0)
    y = torch.randint(0, 3, (40,))
    right = torch.nn.functional.one_hot(y, 3).float()
    good = [(3 * right + torch.randn(40, 3)).softmax(1) for _ in range(6)]
    weights = ensemble_weights([*good, 1 - right], y)
    assert sorted(weights) == [0, 0, 0, 0.25, 0.25, 0.25, 0.25]
    assert weights[6] == 0
    assert ensemble_weights([good[0], 1 - right, 1 - right], y) == [1, 0, 0]  # the others are clearly worse


def test_low_confidence_is_not_held_against_a_method_that_is_right() -> None:
    torch.manual_seed(0)
    y = torch.randint(0, 3, (5_000,))
    right = torch.nn.functional.one_hot(y, 3).float()
    unsure = (0.9 * right + 0.2 * torch.rand(5_000, 3)).softmax(1)
    confident = (20 * torch.where(torch.rand(5_000, 1) < 0.97, right, right.roll(1, 1))).softmax(1)
    assert unsure.amax(1).max() < 0.6
    assert merit(unsure, y) > merit(confident, y)
    assert ensemble_weights([confident, unsure], y)[1] > 0
