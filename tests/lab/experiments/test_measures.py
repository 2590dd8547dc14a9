import pytest

from graphpartner.lab.experiments.graph_cache import LoadedGraph
from graphpartner.lab.experiments.measure import measure_gpnn
from graphpartner.training.settings import Settings
from graphpartner.training.trainer import train
from tests.training.graphs import toy


def test_a_run_is_measured_at_its_own_depth_whoever_was_trained_beside_it():
    data, settings = toy(), Settings(hidden_channels=8, epochs=5, threshold=0.3)
    each = [settings.replace(num_steps=steps) for steps in (2, 6)]
    together = train(data, each, [0, 0], "cpu")
    wanted = frozenset({"energy", "mad_gap"})
    for run, own in enumerate(each):
        alone = measure_gpnn(train(data, own, [0], "cpu"), 0, LoadedGraph(data), wanted)
        beside = measure_gpnn(together, run, LoadedGraph(data), wanted)
        assert alone == pytest.approx(beside, rel=1e-4)
    assert measure_gpnn(together, 0, LoadedGraph(data), wanted)["energy"] > 2 * beside["energy"]
