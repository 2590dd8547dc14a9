"""Searches for a baseline's settings: its spaces fit the settings, and no test label is used."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from graphpartner.cli import main
from graphpartner.graph.datasets import load_graph
from graphpartner.graph.record import GraphRecord
from graphpartner.lab.baselines.all_baselines import BASELINES, baseline_settings
from graphpartner.lab.search import baseline_search
from graphpartner.lab.search.baseline_search import SIBLINGS, first_trials, search_baseline
from graphpartner.lab.search.space import baseline_space

Run = Callable[..., tuple[list[dict[str, Any]], str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Return the lines of the log and the preset's file after ``gpnn search citeseer --method``."""

    def command(method: str, *words: object) -> tuple[list[dict[str, Any]], str]:
        options = ["--method", method, "--device", "cpu", "--out", tmp_path, *words]
        monkeypatch.setattr("sys.argv", ["gpnn", "search", "citeseer", *map(str, options)])
        main()
        lines = (tmp_path / f"citeseer-{method}.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines], (tmp_path / f"citeseer-{method}.yaml").read_text()

    return command


def test_every_value_of_every_space_is_a_setting() -> None:
    for name in BASELINES:
        settings = baseline_settings(name, "cora").settings
        for setting, each in baseline_space(name).items():
            for value in each.values:
                settings.replace(**{setting: value})


def test_the_preset_is_the_first_trial_and_the_best_is_judged_again(monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    seen = []
    train = baseline_search.train_baseline

    def watched(name: str, data: GraphRecord, *rest: Any) -> Any:
        seen.append(data)
        return train(name, data, *rest)

    monkeypatch.setattr(baseline_search, "train_baseline", watched)
    lines, text = run("sgc", "--trials", 3, "--splits", 2, "--set", "epochs=5")
    assert [line["stage"] for line in lines] == ["search"] * 3 + ["final"] * 3
    assert lines[0]["changes"] == {"epochs": 5}
    ranking = sorted(lines[:3], key=lambda line: -line["merit"])
    assert [line["changes"] for line in lines[3:]] == [line["changes"] for line in ranking]
    for data in seen:
        assert "test_mask" not in data
        known = (data.train_mask | data.val_mask | data.judge_mask).any(0)
        assert (data.y[~known] == -1).all()
        assert int(known.sum()) == 620
    entry = yaml.safe_load(text)["citeseer"]  # for a preset's file
    assert entry["settings"]["epochs"] == 5
    winner = next(line for line in lines[3:] if line["settings"] == entry["settings"])
    assert "3 trials of 2 development splits with epochs 5; on 4 other splits" in entry["source"]
    assert f"other splits {winner['validation']:.1f})" in entry["source"]
    assert ("the winner is what it began at" in entry["source"]) == (winner["changes"] == {"epochs": 5})


def test_as_many_finalists_as_wanted(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    options: dict[str, Any] = {"trials": 3, "splits": 2, "finalists": 1, "fixed": {"epochs": 5}, "device": "cpu"}
    found = search_baseline("sgc", load_graph("citeseer"), "citeseer", log, **options)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [line["stage"] for line in lines] == ["search"] * 3 + ["final"]
    best = max(lines[:3], key=lambda line: line["merit"])
    assert lines[3]["changes"] == best["changes"]
    assert found.settings == lines[3]["settings"]


@pytest.mark.parametrize(("method", "sibling"), [("jknet", "jknet-dropedge"), ("jknet-dropedge", "jknet")])
def test_a_model_is_tried_with_its_siblings_settings(tmp_path: Path, method: str, sibling: str) -> None:
    log, fixed = tmp_path / "log.jsonl", {"epochs": 2, "hidden_channels": 8}
    options: dict[str, Any] = {"trials": 3, "splits": 1, "finalists": 1, "fixed": fixed, "device": "cpu"}
    search_baseline(method, load_graph("citeseer"), "citeseer", log, **options)
    present, second, third, _ = (json.loads(line)["settings"] for line in log.read_text().splitlines())
    own, other = (baseline_settings(name, "citeseer").settings.asdict() for name in (method, sibling))
    assert present == own | fixed
    assert second == {name: other.get(name, value) for name, value in own.items()} | fixed
    assert third not in (present, second)


@pytest.mark.parametrize("method", BASELINES)
def test_every_first_trial_is_possible(method: str) -> None:
    for graph in ("cora", "amazon-photo"):
        preset = baseline_settings(method, graph).settings
        first, *others = (preset.replace(**changes) for changes in first_trials(method, graph))
        assert first == preset
        assert len(others) == (method in SIBLINGS)


def test_a_search_goes_on_where_its_log_ends(run: Run, tmp_path: Path) -> None:
    words = ("sgc", "--splits", 2, "--set", "epochs=5", "--trials")
    first, _ = run(*words, 2)
    longer, chosen = run(*words, 3)
    assert longer[: len(first)] == first
    assert [line["stage"] for line in longer].count("search") == 3
    assert run(*words, 3) == (longer, chosen)  # nothing was left to do
    log = tmp_path / "citeseer-sgc.jsonl"
    log.write_text(log.read_text().replace('"epochs": 5,', '"epochs": 6,'))  # as if the settings had been others
    assert len(run(*words, 3)[0]) == 2 * len(longer)


def test_several_values_of_a_setting_take_the_place_of_its_space(run: Run) -> None:
    lines, _ = run("sgc", "--trials", 4, "--splits", 1, "--set", "epochs=2", "--set", "num_steps=7,9")
    assert {line["changes"]["num_steps"] for line in lines[1:4]} <= {7, 9}


def test_class_frequencies_are_estimated_once_for_a_log(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    data = load_graph("citeseer")
    for name in ("train_mask", "val_mask", "test_mask"):  # as where all splits are random, class by class
        del data[name]
    log, estimates = tmp_path / "log.jsonl", []
    uneven = torch.tensor([0.05, 0.15, 0.2, 0.2, 0.3, 0.1], dtype=torch.float64)
    monkeypatch.setattr(baseline_search, "class_weights", lambda *given: estimates.append(given) or uneven)

    def search() -> list[dict[str, Any]]:
        options: dict[str, Any] = {"trials": 1, "splits": 1, "finalists": 1, "fixed": {"epochs": 5}, "device": "cpu"}
        search_baseline("sgc", data, "citeseer", log, **options)
        return [json.loads(line) for line in log.read_text().splitlines()]

    weights, trial, _ = search()
    assert weights["class_weights"] == uneven.tolist()
    log.write_text(json.dumps(weights) + "\n")  # the same trial again, with the frequencies of the log
    again = search()[1]
    assert len(estimates) == 1
    for name in ("settings", "validation", "nll"):
        assert again[name] == trial[name]
