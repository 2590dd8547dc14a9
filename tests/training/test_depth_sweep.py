import copy
import json

import pytest
import torch

from graphpartner.graph.record import GraphRecord
from graphpartner.model.gpnn import forward
from graphpartner.model.propagation import Propagation
from graphpartner.smoothness.energy import dirichlet_energy
from graphpartner.system.errors import InputError
from graphpartner.training.depth_sweep import depth_sweep
from graphpartner.training.runs import Runs
from graphpartner.training.settings import Settings
from graphpartner.training.trainer import train
from tests.lab.pages.toy import rings

SETTINGS = Settings(hidden_channels=8, num_steps=4, alpha=0.3, features="row", threshold=0.6, epochs=12, patience=12)


Trained = tuple[GraphRecord, Runs]


@pytest.fixture(scope="module")
def trained() -> Trained:
    data = rings()
    return data, train(data, SETTINGS, seeds=[3, 4], device="cpu")


@pytest.mark.parametrize("steps", [1, 2, 4, 7, 16])
def test_one_pass_equals_direct_evaluation(trained: Trained, steps: int) -> None:
    data, runs = trained
    sweep = depth_sweep(runs, data, max_steps=16, run=1)
    direct = Propagation(runs.problem.propagate.matrix, steps, plan="steps")
    with torch.no_grad():
        out = forward(runs.problem.X, runs.weight1[1], runs.weight2[1], direct, SETTINGS.alpha)
    at = sweep.steps.index(steps)
    for logits, accuracy, energy in (
        (out.logits, sweep.accuracy[at], sweep.energy[at]),
        (out.gcn_logits, sweep.graph_accuracy[at], sweep.graph_energy[at]),
        (out.mlp_logits, sweep.partner_accuracy, sweep.partner_energy),
    ):
        right = (logits.argmax(-1) == data.y)[data.test_mask]
        assert accuracy == pytest.approx(100 * right.double().mean().item(), abs=1e-5)
        assert energy == pytest.approx(float(dirichlet_energy(logits, data.edge_index)), rel=1e-4)


def test_the_trained_depth_is_the_accuracy_of_the_run(trained: Trained) -> None:
    data, runs = trained
    for run in (0, 1):
        sweep = depth_sweep(runs, data, max_steps=4, run=run)
        assert (sweep.seed, sweep.trained_steps) == (runs.seeds[run], 4)
        assert sweep.accuracy[3] == pytest.approx(100 * float(runs.accuracy(data.test_mask)[run]), abs=1e-4)
    assert depth_sweep(runs, data, 1).seed == runs.seeds[int(runs.val_loss.argmin())]


def test_unlabelled_nodes_do_not_count_and_every_run_has_its_own_split(trained: Trained) -> None:
    data, runs = trained
    data = copy.deepcopy(data)
    data.test_mask = torch.stack([data.test_mask, ~data.test_mask])
    data.y[data.test_mask[1].nonzero()[0]] = -1
    sweep = depth_sweep(runs, data, max_steps=1, run=1)
    counted = data.test_mask[1] & (data.y >= 0)
    assert sweep.partner_accuracy / 100 * int(counted.sum()) == pytest.approx(
        round(sweep.partner_accuracy / 100 * int(counted.sum())), abs=1e-4
    )


def test_numbers_for_a_file(trained: Trained) -> None:
    data, runs = trained
    sweep = depth_sweep(runs, data, max_steps=3)
    assert json.loads(json.dumps(sweep.asdict()))["steps"] == [1, 2, 3]
    with pytest.raises(InputError, match="max_steps = 0"):
        depth_sweep(runs, data, max_steps=0)
