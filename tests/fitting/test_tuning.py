"""Which candidates have a say, by outcomes whose worth is known."""

import pytest
import torch
from torch_geometric.data import Data

from graphpartner.fitting.candidate_runs import Job, Outcome
from graphpartner.fitting.candidates import Traits, candidates
from graphpartner.fitting.folds import folds
from graphpartner.fitting.layouts import CandidateGraphs
from graphpartner.fitting.tuning import Tuner

NAMED = {each.name: each for each in candidates(Traits(True, False, False, False))}


def tuner(n: int, worth: dict[str, tuple[float, list[int]]]) -> Tuner:
    """A tuner whose candidates are right this often, on these folds of a graph without edges."""
    y = torch.arange(n) % 2
    data = Data(x=torch.ones(n, 1), edge_index=torch.empty(2, 0, dtype=torch.int64), y=y, num_nodes=n)
    found = Tuner(CandidateGraphs(data, 2, torch.device("cpu")), y, folds(y, torch.arange(n), 0, 3), 0)
    for name, (right, done) in worth.items():
        for fold in done:
            val = found.folds[fold].val
            wrong = torch.arange(val.numel()) >= right * val.numel()
            answer = torch.eye(2)[y[val] ^ wrong.long()] * 0.8 + 0.1
            none = torch.empty(0, 2)
            found.trainer.outcomes.append(
                Outcome(
                    Job(NAMED[name], fold, fold), torch.ones(1, 2), torch.eye(2), val, answer, answer, none, none, 1.0
                )
            )
    return found


def test_a_quicker_one_that_is_worse_does_not_silence_the_best() -> None:
    done = {"linear": (0.80, [0, 1, 2]), "mlp": (0.81, [0, 1]), "two-hops": (0.90, [0, 1])}
    tuned = tuner(6000, done).choose()
    assert tuned.weights == {"two-hops": 1.0}
    assert tuned.judges.numel() == 4000


def test_the_best_is_judged_on_all_it_has_done_whatever_an_equal_one_has_not() -> None:
    done = {"mlp": (0.88, [0, 1, 2]), "two-hops": (0.87, [0])}
    tuned = tuner(6000, done).choose()
    assert tuned.weights == {"mlp": 1.0}
    assert tuned.judges.numel() == 6000


def test_where_few_nodes_judge_those_that_may_be_the_best_all_have_a_say() -> None:
    done = {"mlp": (0.4, [0, 1, 2]), "shallow": (0.8, [0, 1, 2]), "two-hops": (0.7, [0, 1]), "middle": (0.7, [0, 1])}
    tuned = tuner(60, done).choose()
    assert set(tuned.weights) == {"shallow", "two-hops", "middle"}
    assert tuned.judges.numel() == 40


def test_one_that_is_clearly_worse_has_no_say() -> None:
    done = {"mlp": (0.9, [0]), "deep": (0.6, [0])}
    assert tuner(6000, done).choose().weights == {"mlp": 1.0}


def test_nothing_done_is_an_interruption() -> None:
    with pytest.raises(KeyboardInterrupt):
        tuner(60, {}).choose()
