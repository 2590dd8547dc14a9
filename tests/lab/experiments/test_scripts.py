"""Scripts: the nodes that those look at which choose presets, and what scripts write."""

import sys

import pytest
import yaml

from graphpartner.lab.search.judgement import Judgement, ranked
from graphpartner.training.presets import FOLDER, preset
from tests.scripts import load

SMALL = {"hidden_channels": 16, "epochs": 12, "beta": 1.0, "num_steps": 2, "features": "row", "lr": 0.05}


def call(module, monkeypatch, *words):
    monkeypatch.setattr(sys, "argv", [module.__name__, *map(str, words)])
    module.main()


def test_every_generation_is_judged_and_the_best_becomes_a_preset(monkeypatch, tmp_path, capsys):
    module = load("generations")
    seen = []
    judged = module.judged
    monkeypatch.setattr(module, "judged", lambda logits, data: seen.append((logits, data)) or judged(logits, data))
    held = [word for name, value in SMALL.items() for word in ("--set", f"{name}={value}")]
    sizes = ["--generations", 2, "--splits", 2, "--teachers", 2, "--device", "cpu"]
    call(
        module,
        monkeypatch,
        "citeseer",
        "--hold",
        "citeseer/paper",
        *held,
        "--weights",
        0.1,
        5,
        *sizes,
        "--groups",
        3,
        "--out",
        tmp_path,
    )
    table = [line.split() for line in capsys.readouterr().out.splitlines()[1:-2]]
    assert [(row[0], row[2]) for row in table] == [("0.1", "0"), ("0.1", "1"), ("5", "1"), ("0.1", "2"), ("5", "2")]
    for logits, data in seen:
        assert logits.shape[0] == data.judge_mask.shape[0] == 4  # two runs on each of two splits
        assert "test_mask" not in data
    stops, judges = seen[1][1].judge_mask, seen[0][1].judge_mask
    assert not (stops & judges).any()
    found = preset(str(tmp_path / "citeseer-distilled.yaml"))
    assert (found.family, found.saw_test) == ("distilled", False)
    assert "best of 4 ways to teach (weights 0.1, 5, prior temperatures 0, 1 to 2 generations)" in found.provenance
    figures = [Judgement(float(row[3]) / 100, float(row[4])) for row in table[1:]]
    best = table[1:][ranked(figures, int(judges.any(0).sum()))[0]]
    assert (found.settings.lambda_distill, found.settings.generations) == (float(best[0]), int(best[2]))
    assert found.settings.replace(teachers=0, generations=1, lambda_distill=0.0) == preset(
        "citeseer/paper"
    ).settings.replace(**SMALL)
    grouped = preset(str(tmp_path / "citeseer-distilled-groups.yaml"))
    assert grouped.settings == found.settings.replace(groups=3)
    assert grouped.provenance == found.provenance + "; with 3 groups, which this sweep did not judge"
    with pytest.raises(SystemExit):
        call(module, monkeypatch, "citeseer", "--hold", "citeseer/paper", "--generations", 0)


@pytest.mark.parametrize(("epochs", "wins"), [(30, True), (1, False)])
def test_a_preset_is_replaced_by_a_better_one_alone(epochs, wins, monkeypatch, tmp_path):
    module = load("collect_presets")
    monkeypatch.setattr(module, "FOLDER", tmp_path)
    content = yaml.safe_load((FOLDER / "citeseer.yaml").read_text())
    present = {"provenance": "known", "saw_test": False, "settings": SMALL | {"epochs": 10}}
    content |= {"best": "paper", "presets": {"paper": dict(present), "tuned": dict(present)}}
    (tmp_path / "citeseer.yaml").write_text(yaml.safe_dump(content))
    new = {"graph": "citeseer", "family": "tuned", "provenance": "new", "saw_test": False, "finalists": []}
    file = tmp_path / "found" / "new.yaml"
    file.parent.mkdir()
    file.write_text(yaml.safe_dump(new | {"settings": SMALL | {"epochs": epochs}}))
    call(module, monkeypatch, file, "--splits", 2, "--device", "cpu")
    written = yaml.safe_load((tmp_path / "citeseer.yaml").read_text())
    assert written["presets"]["tuned"]["provenance"] == ("new" if wins else "known")
    assert written["presets"]["tuned"]["settings"]["epochs"] == (epochs if wins else 10)
    assert set(written["presets"]["tuned"]) == set(module.KEYS)
    assert written["best"] == ("tuned" if wins else "paper")
    for entry in written["presets"].values():
        assert (entry["judged_on"], entry["held_out"]) == (2, True)


@pytest.mark.parametrize(
    ("words", "judged", "best"),
    [
        ([], ["paper", "tuned", "views"], "tuned"),
        (["--new"], ["tuned", "views"], "tuned"),  # paper alone has figures of as many splits
        (["--families", "tuned", "views"], ["tuned", "views"], "tuned"),
        (["--families", "paper"], ["paper"], "views"),  # which cannot be compared with it: it stays
    ],
)
def test_only_figures_of_the_same_splits_are_kept_and_compared(words, judged, best, monkeypatch, tmp_path):
    module = load("collect_presets")
    monkeypatch.setattr(module, "FOLDER", tmp_path)
    monkeypatch.setattr(module, "judge_settings", lambda seen, settings, device: [Judgement(settings[0].alpha, 0.7)])
    known = {"provenance": "known", "saw_test": False, "validation": 20.0, "surprise": 0.9}
    presets = {
        "paper": known | {"settings": {"alpha": 0.3}, "judged_on": 2, "held_out": True},
        "tuned": known | {"settings": {"alpha": 0.6}, "judged_on": 4, "held_out": True},
        "views": known | {"settings": {"alpha": 0.5}, "judged_on": 2, "held_out": False},
    }
    content = {"published": [76.5, 0.5], "best": "views", "presets": presets}
    (tmp_path / "citeseer.yaml").write_text(yaml.safe_dump(content))
    call(module, monkeypatch, "--graphs", "citeseer", "--splits", 2, "--device", "cpu", *words)
    written = yaml.safe_load((tmp_path / "citeseer.yaml").read_text())
    assert [family for family, entry in written["presets"].items() if entry["validation"] != 20.0] == judged
    for family in judged:
        entry = written["presets"][family]
        assert entry["validation"] == 100 * entry["settings"]["alpha"]
        assert (entry["judged_on"], entry["held_out"]) == (2, True)
    assert written["best"] == best
