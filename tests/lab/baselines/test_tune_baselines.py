"""The script that looks for a baseline's settings: its spaces fit the settings, and it sees no test label."""

import json
import sys

import pytest
import torch
import yaml

from graphpartner.lab.baselines.all_baselines import BASELINES, baseline_settings
from tests.scripts import load


@pytest.fixture(scope="module")
def script():
    return load("tune_baselines")


def test_every_value_of_every_space_is_a_setting(script):
    assert set(script.SPACES) == set(BASELINES)
    for name, space in script.SPACES.items():
        settings = baseline_settings(name, "cora").settings
        for setting, values in space.items():
            for value in values:
                settings.replace(**{setting: value})


def test_the_preset_is_the_first_trial_and_the_best_is_judged_again(script, monkeypatch, tmp_path, capsys):
    seen = []
    train = script.train_baseline

    def watched(name, data, *rest):
        seen.append(data)
        return train(name, data, *rest)

    monkeypatch.setattr(script, "train_baseline", watched)
    log = tmp_path / "log.jsonl"
    command = ["tune", "sgc", "citeseer", "--trials", "3", "--splits", "2", "--finalists", "1", "--device", "cpu"]
    monkeypatch.setattr(sys, "argv", [*command, "--fix", '{"epochs": 5}', "--log", str(log)])
    script.main()
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [line["stage"] for line in lines] == ["search"] * 3 + ["final"]
    assert lines[0]["changes"] == {"epochs": 5}
    best = max(lines[:3], key=lambda line: line["merit"])
    assert lines[3]["changes"] == best["changes"]
    for data in seen:
        assert "test_mask" not in data
        known = (data.train_mask | data.val_mask | data.judge_mask).any(0)
        assert (data.y[~known] == -1).all()
        assert int(known.sum()) == 620
    printed = capsys.readouterr().out.splitlines()
    last = printed[-1]
    assert json.loads(last)["epochs"] == 5
    entry = yaml.safe_load("\n".join(printed[printed.index("citeseer:") : -1]))["citeseer"]  # for a preset's file
    assert entry["settings"] == json.loads(last)
    assert "3 trials of 2 development splits with epochs 5; on 4 other splits" in entry["source"]
    assert ("the winner is what it began at" in entry["source"]) == (best["changes"] == {"epochs": 5})


@pytest.mark.parametrize(("method", "sibling"), [("jknet", "jknet-dropedge"), ("jknet-dropedge", "jknet")])
def test_a_model_is_tried_with_its_siblings_settings(script, monkeypatch, tmp_path, method, sibling):
    log = tmp_path / "log.jsonl"
    fix = {"epochs": 2, "hidden_channels": 8}
    command = ["tune", method, "citeseer", "--trials", "3", "--splits", "1", "--finalists", "1", "--device", "cpu"]
    monkeypatch.setattr(sys, "argv", [*command, "--fix", json.dumps(fix), "--log", str(log)])
    script.main()
    present, second, third, _ = (json.loads(line)["settings"] for line in log.read_text().splitlines())
    own, other = (baseline_settings(name, "citeseer").settings.asdict() for name in (method, sibling))
    assert present == own | fix
    assert second == {name: other.get(name, value) for name, value in own.items()} | fix
    assert third not in (present, second)


@pytest.mark.parametrize("method", BASELINES)
def test_every_first_trial_is_possible(script, method):
    for graph in ("cora", "amazon-photo"):
        preset = baseline_settings(method, graph).settings
        first, *others = (preset.replace(**changes) for changes in script.first_trials(method, graph))
        assert first == preset
        assert len(others) == (method in script.SIBLINGS)


def test_a_search_goes_on_where_its_log_ends(script, monkeypatch, tmp_path, capsys):
    log = tmp_path / "log.jsonl"
    command = ["tune", "sgc", "citeseer", "--splits", "2", "--finalists", "1", "--device", "cpu", "--log", str(log)]

    def search(*more):
        monkeypatch.setattr(sys, "argv", [*command, "--fix", '{"epochs": 5}', *more])
        script.main()
        return capsys.readouterr().out.splitlines()[-1], log.read_text().splitlines()

    _, first = search("--trials", "2")
    chosen, longer = search("--trials", "3")
    assert longer[: len(first)] == first
    stages = [json.loads(line)["stage"] for line in longer]
    assert stages.count("search") == 3
    assert search("--trials", "3") == (chosen, longer)  # nothing was left to do
    log.write_text(log.read_text().replace('"epochs": 5,', '"epochs": 6,'))  # as if the settings had been others
    assert len(search("--trials", "3")[1]) == 2 * len(longer)


def test_class_frequencies_are_estimated_once_for_a_log(script, monkeypatch, tmp_path):
    data = script.load_graph("citeseer")
    for name in ("train_mask", "val_mask", "test_mask"):  # as where all splits are random, class by class
        del data[name]
    log, asked = tmp_path / "log.jsonl", []
    monkeypatch.setattr(script, "load_graph", lambda *_, **__: data)
    uneven = torch.tensor([0.05, 0.15, 0.2, 0.2, 0.3, 0.1], dtype=torch.float64)
    monkeypatch.setattr(script, "class_weights", lambda *given: asked.append(given) or uneven)
    command = ["tune", "sgc", "citeseer", "--trials", "1", "--splits", "1", "--finalists", "1", "--device", "cpu"]
    monkeypatch.setattr(sys, "argv", [*command, "--fix", '{"epochs": 5}', "--log", str(log)])
    script.main()
    weights, trial, _ = log.read_text().splitlines()
    assert json.loads(weights)["class_weights"] == uneven.tolist()
    log.write_text(weights + "\n")  # the same trial again, with the frequencies of the log
    script.main()
    again = log.read_text().splitlines()[1]
    assert len(asked) == 1
    for name in ("settings", "validation", "nll"):
        assert json.loads(again)[name] == json.loads(trial)[name]
