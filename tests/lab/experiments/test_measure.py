"""Batches of runs are trained once, and each run is measured as if it were alone."""

import dataclasses

import pytest

from graphpartner.lab.experiments import measure as module
from graphpartner.lab.experiments.graph_cache import LoadedGraph
from graphpartner.lab.experiments.measure import measure_gpnn, run_batch
from graphpartner.training.settings import Settings
from graphpartner.training.trainer import train
from tests.lab.experiments.examples import run
from tests.training.graphs import toy

SETTINGS = Settings(hidden_channels=8, epochs=8, threshold=0.3).asdict()


def of(seed, members=1, graph="citeseer"):
    return dataclasses.replace(run(seed, graph=graph, **SETTINGS), members=members)


def measured(lines):
    return [{name: value for name, value in line["measured"].items() if name != "seconds"} for line in lines]


def test_an_ensemble_and_its_members_are_trained_once(monkeypatch: pytest.MonkeyPatch) -> None:
    trained = []
    monkeypatch.setattr(
        module,
        "train",
        lambda data, each, seeds, *rest, **more: trained.extend(seeds) or train(data, each, seeds, *rest, **more),
    )
    graph = LoadedGraph(toy())
    batch = [of(4), of(1, members=3), of(0)]
    together = measured(run_batch(batch, graph))
    assert trained == [4, 3, 5, 0]
    alone = [measured(run_batch([each], graph))[0] for each in batch]
    for found, expected in zip(together, alone, strict=True):
        expected["peak_memory"] = found["peak_memory"]
        assert found == pytest.approx(expected, rel=1e-5)
    members = [found["accuracy"] for found in measured(run_batch([of(3), of(4), of(5)], graph))]
    assert together[1]["member_accuracy"] == pytest.approx(sum(members) / 3)


def test_an_ensemble_without_a_public_split_keeps_to_the_split_of_its_seed() -> None:
    data = toy(400)
    del data.train_mask, data.val_mask, data.test_mask
    graph = LoadedGraph(data)
    batch = [of(1, members=2, graph="amazon-photo"), of(2, graph="amazon-photo")]
    together, alone = measured(run_batch(batch, graph)), measured(run_batch(batch[:1], graph))
    alone[0]["peak_memory"] = together[0]["peak_memory"]
    assert together[0] == pytest.approx(alone[0], rel=1e-5)


def test_the_time_of_a_batch_is_shared_by_trainings() -> None:
    lines = run_batch([of(0), of(0, members=3)], LoadedGraph(toy()))
    single, ensemble = (line["measured"]["seconds"] for line in lines)
    assert ensemble == pytest.approx(3 * single)


def test_a_run_is_measured_at_its_own_depth_whatever_was_trained_beside_it() -> None:
    data, settings = toy(), Settings(hidden_channels=8, epochs=5, threshold=0.3)
    each = [settings.replace(num_steps=steps) for steps in (2, 6)]
    together = train(data, each, [0, 0], "cpu")
    wanted = frozenset({"energy", "mad_gap"})
    for place, own in enumerate(each):
        alone = measure_gpnn(train(data, own, [0], "cpu"), 0, LoadedGraph(data), wanted)
        beside = measure_gpnn(together, place, LoadedGraph(data), wanted)
        assert alone == pytest.approx(beside, rel=1e-4)
    assert measure_gpnn(together, 0, LoadedGraph(data), wanted)["energy"] > 2 * beside["energy"]
