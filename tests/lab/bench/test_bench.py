import json
from pathlib import Path
from typing import Any

import pytest
import torch

from graphpartner.enhance.join import attribute_graph
from graphpartner.graph.datasets import load_graph
from graphpartner.graph.record import GraphRecord
from graphpartner.lab.bench.claims import Claim, Machine, epoch_floor
from graphpartner.lab.bench.growth import JOIN_SIZES, community_edges, measure, measure_join, power_law_edges
from graphpartner.lab.bench.peers import PlainGPNN, blockwise_join, peer_epoch
from graphpartner.lab.bench.suites import Engine, bench_settings, run_suite, same_accuracy
from graphpartner.lab.pages.performance_page import folded, line, write_page
from graphpartner.system.errors import InputError

REPOSITORY = Path(__file__).parents[3]
CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def citeseer() -> GraphRecord:
    return load_graph("citeseer")


def row(**changes: Any) -> Claim:
    values: dict[str, Any] = {
        "what": "a claim", "graph": "cora", "device": "cpu", "precision": "float32", "ours": 0.002, "theirs": 0.1,
        "ratio": 50.0, "bar": 20.0, "floor": 0.001, "same_accuracy": True, "note": "a note",
    }  # fmt: skip
    return Claim(**(values | changes))


def test_a_row_holds_only_above_its_bar_and_with_the_same_answer() -> None:
    assert row().holds
    assert row(bar=None).holds
    assert not row(ratio=19.9).holds
    assert not row(same_accuracy=False).holds
    assert row(same_accuracy=None).holds  # another model: nothing to compare but seconds


def test_engine_and_plain_loop_learn_alike(citeseer: GraphRecord) -> None:
    same, note = same_accuracy(citeseer, bench_settings("citeseer"), CPU, epochs=25, seeds=2)
    assert same, note


def test_the_plain_loop_would_be_caught_if_it_learned_something_else(
    citeseer: GraphRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PlainGPNN, "fit", lambda self, epochs: 0.3)
    assert not same_accuracy(citeseer, bench_settings("citeseer"), CPU, epochs=15, seeds=2)[0]


def test_engine_epochs_count_and_wrap(citeseer: GraphRecord) -> None:
    engine = Engine(citeseer, bench_settings("citeseer").replace(epochs=7), 1, CPU)
    before = engine.batch.weights[0].clone()
    for _ in range(4):
        engine.epoch()
    assert int(engine.batch.epoch) == (5 + 4) % 7
    assert not torch.equal(before, engine.batch.weights[0])


@pytest.mark.parametrize("name", ["gcn", "appnp", "gcnii"])
def test_peers_run_an_epoch(citeseer: GraphRecord, name: str) -> None:
    peer_epoch(name, citeseer, CPU)()


def test_floor_by_hand(citeseer: GraphRecord) -> None:
    """No dropout, no depth: 2·h·(2 + 1)·nnz operations against 4·(8·n·h + 7·d·h) bytes."""
    settings = bench_settings("citeseer", num_steps=0).replace(input_dropout=0.0)
    engine = Engine(citeseer, settings, 1, CPU)
    operations, bytes_ = 2 * 64 * 3 * 105_165, 4 * 64 * (8 * 3327 + 7 * 3703)
    assert epoch_floor(engine.problem, settings, 1, Machine(1e30, 1e9)) == pytest.approx(operations / 1e9)
    assert epoch_floor(engine.problem, settings, 3, Machine(1e9, 1e30)) == pytest.approx(3 * bytes_ / 1e9)


def test_the_peer_of_the_join_finds_the_same_pairs(citeseer: GraphRecord) -> None:
    starts, columns, values = blockwise_join(citeseer)
    ours = attribute_graph(citeseer.x, citeseer.edge_index)
    assert torch.equal(torch.from_numpy(starts), ours.crow_indices())
    assert torch.equal(torch.from_numpy(columns).long(), ours.col_indices())
    assert (torch.from_numpy(values) - ours.values()).abs().max() <= 2e-7


def test_community_graph_has_the_edges_asked_for() -> None:
    edges = community_edges(1_000)
    assert edges.shape == (2, 10_000)
    assert ((edges[0] // 100) == (edges[1] // 100)).float().mean() > 0.85


@pytest.mark.slow
def test_scale_points_grow_with_the_work() -> None:
    """Eight times the steps: eight times the work and, within a factor of three either way, the time; no more memory.

    Other programs can only make a measurement slower, so the fastest of a few is compared.
    """
    fastest = {4: float("inf"), 32: float("inf")}
    for _ in range(5):
        few, many = (measure("steps", steps, "cpu", 20_000, steps, 64) for steps in fastest)
        assert many.work == 8 * few.work
        assert many.bytes < 1.5 * few.bytes + 20e6  # flat in l
        fastest = {4: min(fastest[4], few.seconds), 32: min(fastest[32], many.seconds)}
        growth = fastest[32] / fastest[4]
        if 8 / 3 < growth < 8 * 3:
            break
    assert 8 / 3 < growth < 8 * 3


def test_join_points_are_of_the_same_graph_in_any_order() -> None:
    ordered, shuffled, bounded = (measure_join(graph, 2_000) for graph in JOIN_SIZES)
    assert ordered.work == shuffled.work > 3 * 2_000  # entries, self pairs among them
    assert 2_000 < bounded.work <= 11 * 2_000
    assert all(each.seconds > 0 and each.bytes >= 0 for each in (ordered, shuffled, bounded))


def test_power_law_edges_have_a_heavy_tail() -> None:
    degrees = torch.bincount(power_law_edges(5_000)[0], minlength=5_000)
    assert degrees.sum() == 50_000
    assert degrees.max() > 50 * degrees.float().median()


def test_wrong_suite() -> None:
    with pytest.raises(InputError, match="--suite gpu: must be one of cpu, cuda, join, scale"):
        run_suite("gpu")


def test_page_from_results(tmp_path: Path) -> None:
    machine = {"cpu": "a chip", "threads": 2, "gpu": None, "python": "3.11", "torch": "2.13"}
    rows = [row(), row(ratio=10.0, what="a slow one"), row(same_accuracy=None, what="another model")]
    results = [each.asdict() for each in rows]
    (tmp_path / "bench-cpu.json").write_text(json.dumps({"suite": "cpu", "machine": machine, "results": results}))
    points = [
        {"curve": curve, "value": value, "work": 1e6 * value, "seconds": 0.001 * value, "bytes": 1000}
        for curve in ("nodes", "steps", "replicas")
        for value in (1, 2)
    ]
    points.append({"curve": "join, in order", "value": 1000, "work": 5000.0, "seconds": 0.25, "bytes": 2_000_000})
    (tmp_path / "bench-scale.json").write_text(json.dumps({"suite": "scale", "machine": machine, "results": points}))
    write_page(tmp_path, tmp_path / "docs" / "performance.md")
    text = (tmp_path / "docs" / "performance.md").read_text()
    assert "| a claim | cora | 2\u00a0ms | 100\u00a0ms | **50.0×** | 20× | 1\u00a0ms (2×) | yes | a note |" in text
    assert "| join, in order | 1,000 | 0.25 | 5,000 | 2\u00a0MB |" in text
    assert "10.0× (below the bar)" in text
    assert "| – | a note |" in text
    assert "a chip, 2 threads" in text
    assert "![The claims of the table, 10.0 to 50.0 times as fast as their peer or limit; 2 of 3 that have a" in text
    assert "![Seconds of a propagation over its work, 0.001 to 0.002 s for 1 to 2 nodes, beside a straight line" in text
    assert "## How cost grows on a CPU" in text
    assert (tmp_path / "docs" / "figures" / "bench-scale.svg").stat().st_size > 1000
    assert "](figures/bench-cpu.svg)" in text
    figure = tmp_path / "docs" / "figures" / "bench-cpu.svg"
    drawn = figure.read_bytes()
    assert len(drawn) > 1000
    write_page(tmp_path, tmp_path / "docs" / "performance.md")
    assert figure.read_bytes() == drawn  # the same data, the same picture


def test_line_names_ratio_bar_and_answer() -> None:
    text = line(row(same_accuracy=False))
    for part in ("a claim", "50.0×", "bar 20×", "same answer: NO", "[red]"):
        assert part in text


def test_plans_that_are_the_best_are_one_point() -> None:
    plans = [row(what=f"A^l H on {graph}", ratio=1.0, bar=2 / 3, graph=graph) for graph in ("a", "b")]
    worse = row(what="A^l H, l = 8", ratio=0.9, bar=2 / 3)
    first, one, last = folded([row(), *plans, worse])
    assert (first, last) == (row(), worse)
    assert (one.what, one.graph, one.ratio) == ("A^l H of 2 sizes: the chosen plan is the best", "a, b", 1.0)
    assert folded([row(), plans[0], worse]) == [row(), plans[0], worse]


def test_the_committed_page_follows_from_the_committed_measurements(tmp_path: Path) -> None:
    write_page(REPOSITORY / "results", tmp_path / "performance.md")
    text = (tmp_path / "performance.md").read_text()
    assert text == (REPOSITORY / "docs" / "performance.md").read_text()
    headings = [line for line in text.splitlines() if line.startswith("## ")]
    assert len(set(headings)) == len(headings) == 6
