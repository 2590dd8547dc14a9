"""Experiments really run on the built-in graph, for a few epochs."""

import dataclasses
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from graphpartner.lab.experiments import reproduce as module
from graphpartner.lab.experiments import selection as planning
from graphpartner.lab.experiments.experiment import TARGETS, Quick, Row, load_experiments
from graphpartner.lab.experiments.jobs import Run
from graphpartner.lab.experiments.journal import read_lines
from graphpartner.lab.experiments.reproduce import reproduce
from graphpartner.lab.experiments.selection import Selection
from graphpartner.system.errors import InputError

RUN = {"method", "graph", "settings", "seed", "device", "members", "timing"}

RESULTS = Path(__file__).parents[3] / "results"


@pytest.fixture(autouse=True)
def no_data_root(monkeypatch):
    monkeypatch.delenv("GRAPHPARTNER_DATA", raising=False)


@pytest.fixture
def tiny(monkeypatch):
    """Return a function that replaces the experiments of a target: three epochs, two runs, a small grid, changes."""

    def replace(target, vary=None, **changes):
        quick = Quick(2, 3, vary or {})
        found = [dataclasses.replace(each, quick=quick, **changes) for each in load_experiments(target)]
        monkeypatch.setattr(planning, "load_experiments", lambda: found)

    return replace


def quick(*targets, **options):
    return Selection(targets, device="cpu", quick=True, **options)


def test_table2(tmp_path: Path) -> None:
    (cells,) = reproduce(Selection(("table2",), device="cpu"), tmp_path).values()
    here = {cell.measure: cell for cell in cells if cell.graph == "citeseer"}
    assert {name: cell.mean for name, cell in here.items()} == {
        "classes": 6, "features": 3703, "nodes": 3327, "edges": 4552, "isolated": 48, "unlabelled": 15,
    }  # fmt: skip
    assert [here[name].outcome for name in ("classes", "features", "nodes", "edges")] == ["holds"] * 3 + ["lower"]
    assert "without repetitions" in here["edges"].remark
    assert len(read_lines(tmp_path / "runs" / "table2.jsonl.gz")) >= 1


def test_a_graph_that_is_not_here(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    selection = Selection(
        ("table1",), ("amazon-photo", "citeseer"), ("gpnn",), device="cpu", root=str(tmp_path / "data")
    )
    slots = module.plan(
        next(each for each in load_experiments("table1") if each.name == "table1-gpnn"),
        selection,
        "cpu",
        module.Graphs(selection.root),
    )
    photo, citeseer = ([slot for slot in slots if slot.graph == name] for name in ("amazon-photo", "citeseer"))
    assert [len(slot.runs) for slot in photo] == [0, 0, 0]
    assert "amazon-photo is not here" in photo[0].reason
    assert [len(slot.runs) for slot in citeseer] == [100, 100, 100]


def test_nothing_is_run_twice(tmp_path: Path, tiny: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    tiny("fig5", {"steps": [2, 4]})
    (cells,) = reproduce(quick("fig5", seeds=1), tmp_path).values()
    assert len(cells) == 2 * 2 * 3
    for cell in cells:
        assert cell.mean is not None
        assert cell.seeds == [0]
        assert cell.preset == "paper, changed"
    energies = [cell.mean for cell in cells if (cell.row, cell.measure) == ("with", "energy")]
    assert energies[0] > energies[1] > 0  # more steps, less energy
    done = json.loads((tmp_path / "verdicts.json").read_text())
    assert {verdict["target"] for verdict in done} == {"fig5"}
    lines = read_lines(tmp_path / "runs" / "fig5.jsonl.gz")
    assert len(lines) == 4
    for name in ("accuracy", "val_accuracy", "val_loss", "epochs", "seconds", "parameters", "energy"):
        assert lines[0]["measured"][name] > 0
    for name in ("settings", "split", "machine", "batch", "plan", "version"):
        assert lines[0][name] is not None

    trained = []
    perform = module.run_batch
    monkeypatch.setattr(module, "run_batch", lambda batch, *rest: trained.extend(batch) or perform(batch, *rest))
    assert reproduce(quick("fig5", seeds=1), tmp_path)["fig5"] == cells  # nothing is run again
    assert trained == []
    tiny("fig4", {"steps": [48]})
    reproduce(quick("fig4", seeds=1), tmp_path)
    assert len(trained) == 4
    trained.clear()
    tiny("table3")
    (known,) = reproduce(quick("table3", seeds=1, run=False), tmp_path).values()
    assert trained == []
    assert [cell.row for cell in known if cell.method == "gpnn" and cell.mean is not None] == ["with enhancement"]
    reproduce(quick("table3", seeds=1), tmp_path)
    # the whole model with the preset's 48 steps was trained for figure 4
    assert [run.settings["beta"] for run in trained if run.method == "gpnn"] == [1.0]
    lines = [line for line in read_lines(tmp_path / "runs" / "table3.jsonl.gz") if line["method"] == "gpnn"]
    assert len(lines) == 2  # and its line is here, too


def test_a_failure_is_reported_and_loses_nothing(
    tmp_path: Path, tiny: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny("fig5", {"steps": [2]})
    (before,) = reproduce(quick("fig5", seeds=1), tmp_path).values()

    def fail(*rest):
        raise MemoryError("too large")

    monkeypatch.setattr(module, "run_batch", fail)
    warnings = []
    (after,) = reproduce(quick("fig5", seeds=2), tmp_path, warn=warnings.append).values()
    assert after == before
    assert warnings == [f"fig5, {row} on citeseer: MemoryError: too large" for row in ("with", "without")]


def test_too_little_memory_ends_a_batch_and_not_the_command(
    tmp_path: Path, tiny: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny("fig5", {"steps": [2]})
    warnings, error = [], RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried")
    monkeypatch.setattr(module, "run_batch", lambda *rest: (_ for _ in ()).throw(error))
    reproduce(quick("fig5", seeds=1), tmp_path, warn=warnings.append)
    assert [sentence.split(": ")[:2] for sentence in warnings] == [
        [f"fig5, {row} on citeseer", "RuntimeError"] for row in ("with", "without")
    ]
    error.args = ("something is wrong in the program",)
    with pytest.raises(RuntimeError, match="wrong in the program"):
        reproduce(quick("fig5", seeds=1), tmp_path)


def test_a_missing_graph_is_reported_once(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    warnings = []
    selection = Selection(("table2", "fig1"), ("cora", "pubmed"), device="cpu", root=str(tmp_path / "data"))
    reproduce(selection, tmp_path / "out", warn=warnings.append)
    assert [sentence.split(":")[0] for sentence in warnings] == ["table2 on cora", "table2 on pubmed", "fig1 on cora"]


def test_two_programs_keep_each_others_cells(
    tmp_path: Path, tiny: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def meanwhile(missing, *rest):  # another program ends while this one trains
        monkeypatch.setattr(module, "_do", do)
        reproduce(quick("table1", seeds=1, methods=("mlp",)), tmp_path)
        return do(missing, *rest)

    do = module._do
    tiny("table1")
    monkeypatch.setattr(module, "_do", meanwhile)
    reproduce(quick("table1", seeds=1, methods=("sgc",)), tmp_path)
    there = {cell.row for cell in module.read_results(tmp_path)["table1"] if cell.mean is not None}
    assert there == {"MLP", "SGC"}


def test_the_device_of_most_runs_is_used(tmp_path: Path, tiny: Callable[..., None]) -> None:
    tiny("table1")
    selected = quick("table1", seeds=3, methods=("sgc",))
    reproduce(selected, tmp_path)
    journal = module.Journal(tmp_path / "runs")
    line = next(iter(journal.lines["table1-sgc"].values()))
    run = dataclasses.replace(Run(**{name: line[name] for name in RUN}), device="cuda")
    journal.append("table1-sgc", [line | run.identity | {"key": run.key}])
    (tmp_path / "table1.json").unlink()
    (cells,) = reproduce(dataclasses.replace(selected, run=False), tmp_path).values()
    assert [cell.runs for cell in cells if cell.row == "SGC"] == [3]


def test_without_running(tmp_path: Path, tiny: Callable[..., None]) -> None:
    tiny("fig5", {"steps": [2, 4]})
    reproduce(quick("fig5", seeds=1, run=False), tmp_path)
    assert {cell.reason for cell in module.read_results(tmp_path)["fig5"]} == {"not run"}
    tiny("fig5", {"steps": [2]})
    reproduce(quick("fig5", seeds=1), tmp_path)
    packed = tmp_path / "runs" / "fig5.jsonl.gz"
    lines = read_lines(packed)
    packed.unlink()
    journal = module.Journal(tmp_path / "runs")
    for line in lines:  # as if a GPU had done them
        run = dataclasses.replace(Run(**{name: line[name] for name in RUN}), device="cuda")
        journal.append("fig5", [line | run.identity | {"key": run.key}])
    tiny("fig5", {"steps": [2, 4]}, remarks={"all": "a new remark"})
    (cells,) = reproduce(quick("fig5", seeds=2, run=False), tmp_path).values()
    assert {(cell.at["steps"], cell.mean is None) for cell in cells} == {(2, False), (4, True)}
    assert {cell.remark for cell in cells} == {"a new remark"}
    assert {cell.runs for cell in cells} == {1, 0}


@pytest.mark.slow
def test_the_committed_results_follow_from_the_committed_runs(tmp_path: Path) -> None:
    shutil.copytree(RESULTS / "runs", tmp_path / "runs")
    results = reproduce(Selection(run=False), tmp_path)
    assert set(results) == set(TARGETS)
    for name in (*TARGETS, "verdicts"):
        assert (tmp_path / f"{name}.json").read_bytes() == (RESULTS / f"{name}.json").read_bytes(), name


def test_an_ensemble(tmp_path: Path, tiny: Callable[..., None]) -> None:
    measures = ["accuracy", "member_accuracy"]
    tiny("beyond", rows={"ensemble": Row("gpnn", "tuned", members=16, runs=5, measures=measures)}, published={})
    together, alone = reproduce(quick("beyond", seeds=3), tmp_path)["beyond"]  # a preview has one, of its three runs
    assert together.runs == alone.runs == 1
    assert 10 < alone.mean < 90
    (line,) = read_lines(tmp_path / "runs" / "beyond.jsonl.gz")
    assert line["members"] == 3


def test_a_choice_by_validation_accuracy(
    tmp_path: Path, tiny: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = {"inner, self": Row("gpnn", "tuned", changes={"score": "inner", "positives": "self"})}
    tiny("scores", rows=rows, choose={"lambda_cs": [0.0, 1.0]})
    reproduce(quick("scores", seeds=1), tmp_path / "a")  # a preview takes the first
    assert len(read_lines(tmp_path / "a" / "runs" / "scores.jsonl.gz")) == 1
    monkeypatch.setattr(planning, "_graphs", lambda experiment, selection: {"citeseer": 1})
    short = {name: dataclasses.replace(row, changes=row.changes | {"epochs": 3}) for name, row in rows.items()}
    tiny("scores", rows=short, choose={"lambda_cs": [0.0, 1.0]})
    (cells,) = reproduce(dataclasses.replace(quick("scores", seeds=1), quick=False), tmp_path / "b").values()
    lines = read_lines(tmp_path / "b" / "runs" / "scores.jsonl.gz")
    best = max(lines, key=lambda line: line["measured"]["val_accuracy"])
    assert len(lines) == 2
    assert cells[0].mean == best["measured"]["accuracy"]


def test_a_choice_is_among_settings_that_were_all_run(
    tmp_path: Path, tiny: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = {"inner, self": Row("gpnn", "tuned", changes={"score": "inner", "positives": "self", "epochs": 3})}
    tiny("scores", rows=rows, choose={"lambda_cs": [0.0, 1.0]}, published={}, runs={"citeseer": 3})
    whole = dataclasses.replace(quick("scores"), quick=False)
    (cells,) = reproduce(whole, tmp_path / "a").values()
    (fewer,) = reproduce(dataclasses.replace(whole, seeds=1), tmp_path / "a").values()
    assert fewer == cells  # one seed would have to choose by itself
    lines = read_lines(tmp_path / "a" / "runs" / "scores.jsonl.gz")
    of_first = [line for line in lines if line["settings"]["lambda_cs"] == 0.0]
    of_second = [line for line in lines if line["settings"]["lambda_cs"] == 1.0]
    for name, killed, there in (("b", of_first, False), ("c", of_first + of_second[:1], True)):
        module.Journal(tmp_path / name / "runs").append("scores", killed)
        (found,) = reproduce(dataclasses.replace(whole, run=False), tmp_path / name).values()
        assert [cell.mean is not None for cell in found] == [there]
    both = [max((of_first[0], of_second[0]), key=lambda line: line["measured"]["val_accuracy"])]
    assert found[0].values[0] == both[0]["measured"]["accuracy"]


def test_bounds_on_a_trained_model(tmp_path: Path, tiny: Callable[..., None]) -> None:
    tiny("bounds", {"steps": [2], "alpha": [0.3, 0.6]})
    (cells,) = reproduce(quick("bounds", seeds=1), tmp_path).values()
    found = {(cell.at["alpha"], cell.measure): cell.mean for cell in cells}
    for alpha in (0.3, 0.6):
        assert found[alpha, "published_lower"] == pytest.approx(alpha**2)
        assert found[alpha, "lower"] <= found[alpha, "mixed_energy"] <= found[alpha, "upper"]
        assert found[alpha, "graph_energy"] <= found[alpha, "mixed_energy"]


def test_a_missing_preset_is_a_reason(tmp_path: Path, tiny: Callable[..., None]) -> None:
    tiny("beyond", rows={"never": Row("gpnn", "never")}, published={})
    (cell,) = reproduce(quick("beyond"), tmp_path)["beyond"]
    assert cell.mean is None
    assert "unknown preset 'citeseer/never'" in cell.reason


@pytest.mark.parametrize(
    ("selection", "words"),
    [
        (Selection(("table9",)), "table9: must be one of table1"),
        (Selection(("table1",), graphs=("imdb",)), "--graphs imdb: must be one of citeseer"),
        (Selection(("table1",), methods=("bert",)), "--methods bert: must be one of appnp"),
        (Selection(("table1",), seeds=0), "--seeds 0: must be 1 or more"),
        (Selection(("fig1",), methods=("gpnn",)), "fig1: must have a cell of these graphs and methods"),
    ],
)
def test_wrong_selections(tmp_path: Path, selection, words) -> None:
    with pytest.raises(InputError, match=words):
        reproduce(selection, tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_fig1_layer_by_layer(tmp_path: Path, tiny: Callable[..., None]) -> None:
    tiny("fig1")
    (cells,) = reproduce(quick("fig1", seeds=1), tmp_path).values()
    energies = [cell for cell in cells if cell.measure == "layer_energy"]
    assert [cell.at["layer"] for cell in energies] == list(range(1, 9))
    (picture,) = (cell for cell in cells if cell.measure == "picture")
    assert len(picture.detail["points"]) == len(picture.detail["classes"]) == 3327


def test_a_baseline_over_depth(tmp_path: Path, tiny: Callable[..., None]) -> None:
    tiny("fig3", {"steps": [2, 3]})
    (cells,) = reproduce(quick("fig3", seeds=1, methods=("gcn",)), tmp_path).values()
    assert {(cell.row, cell.measure, cell.at["steps"]) for cell in cells} == {
        ("GCN", measure, steps) for measure in ("accuracy", "mad_gap") for steps in (2, 3)
    }
    assert all(cell.mean is not None for cell in cells)
