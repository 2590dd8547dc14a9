"""Which runs are trained in one call."""

import dataclasses

from graphpartner.lab.experiments.jobs import REPLICAS_ON_GPU, batches, trainings
from tests.lab.experiments.examples import run


def seeds(found):
    return [[each.seed for each in batch] for batch in found]


def on_gpu(*runs):
    return [dataclasses.replace(each, device="cuda") for each in runs]


def test_as_many_as_there_are_cores() -> None:
    assert seeds(batches([run(seed) for seed in range(5)], 2)) == [[0, 1], [2, 3], [4]]


def test_a_gpu_takes_many() -> None:
    many = on_gpu(*(run(seed) for seed in range(REPLICAS_ON_GPU + 1)))
    assert [len(batch) for batch in batches(many, 2)] == [REPLICAS_ON_GPU, 1]


def test_runs_that_differ_per_replica_share_a_call() -> None:
    found = on_gpu(run(0, alpha=0.1, num_steps=2), run(0, alpha=0.0, num_steps=4), run(0, alpha=0.1, beta=0.9))
    assert [len(batch) for batch in batches(found, 2)] == [2, 1]
    others = on_gpu(run(0, method="gcn", alpha=0.1), run(0, method="gcn", alpha=0.2))
    assert [len(batch) for batch in batches(others, 2)] == [1, 1]


def test_timed_runs_are_alone_or_all_together() -> None:
    alone = [dataclasses.replace(run(seed), timing="alone") for seed in range(3)]
    together = [dataclasses.replace(run(seed), timing="together") for seed in range(3)]
    assert seeds(batches(alone + together, 2)) == [[0], [1], [2], [0, 1, 2]]


def test_who_is_timed_together_is_part_of_the_key() -> None:
    five, ten = (dataclasses.replace(run(0), timing="together", together=count) for count in (5, 10))
    assert len({five.key, ten.key, run(0).key}) == 3
    assert "together" not in run(0).identity


def test_graph_after_graph() -> None:
    mixed = [run(0, graph="cora"), run(0, graph="citeseer"), run(1, graph="cora", alpha=0.3)]
    graphs = [batch[0].graph for batch in batches(mixed, 1)]
    assert graphs == ["citeseer", "cora", "cora"]


def test_members_of_an_ensemble_have_seeds_of_their_own() -> None:
    ensembles = [dataclasses.replace(run(seed), members=16) for seed in range(2)]
    assert [seed for each in ensembles for seed in each.seeds] == list(range(32))
    assert seeds(batches(ensembles, 2)) == [[0], [1]]
    assert ensembles[0].key != run(0).key


def test_an_ensemble_shares_a_call_with_its_members() -> None:
    singles = on_gpu(*(run(seed) for seed in range(40)))
    ensembles = [dataclasses.replace(each, members=16) for each in singles[:5]]
    assert [len(batch) for batch in batches(singles + ensembles[:2], 2)] == [42]  # 40 trainings
    assert len(trainings(singles + ensembles[:2])) == 40
    assert [len(batch) for batch in batches(singles + [ensembles[4]] * 2 + ensembles[3:], 2)] == [44]  # 40 + 24
    assert len(trainings(singles + ensembles[2:])) == 80


def test_where_the_split_goes_by_the_seed_nothing_is_shared() -> None:
    single = run(17, graph="amazon-photo")
    ensemble = dataclasses.replace(run(1, graph="amazon-photo"), members=16)
    assert len(trainings([single, ensemble])) == 17
    assert {training.split for training in ensemble.trainings} == {1}


def test_cost_counts_every_training_and_what_it_touches() -> None:
    one = run(0, hidden_channels=64, num_steps=10)
    assert run(0, hidden_channels=64, num_steps=10, teachers=4, generations=3).cost == 13 * one.cost
    assert run(0, hidden_channels=64, num_steps=10, views=2, epochs=6).cost == 6 * one.cost
    assert dataclasses.replace(one, members=16).cost == 16 * one.cost
    deep = run(0, method="gcnii", hidden_channels=256, layers=32).cost
    assert 20 * one.cost < deep  # measured: 87 times as much an epoch, at 48 steps
    assert 20 * one.cost < run(0, method="grace", hidden_channels=512).cost  # 150 times
