"""Presets as files: a sweep over generations writes the best, and the package takes only what is better."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from torch import Tensor

from graphpartner.cli import main
from graphpartner.lab.search import generations, preset_files
from graphpartner.lab.search.judgement import DevelopmentGraph, Judgement, ranked
from graphpartner.lab.search.preset_files import KEYS, update_presets
from graphpartner.training.presets import FOLDER, preset, preset_names
from graphpartner.training.settings import Settings

SMALL = {"hidden_channels": 16, "beta": 1.0, "num_steps": 2, "features": "row", "lr": 0.05}


def call(monkeypatch: pytest.MonkeyPatch, *words: object) -> None:
    monkeypatch.setattr("sys.argv", ["gpnn", *map(str, words)])
    main()


def test_every_generation_is_judged_and_the_best_becomes_a_preset(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[tuple[Tensor, DevelopmentGraph]] = []
    judged = generations.judged
    monkeypatch.setattr(generations, "judged", lambda logits, data: seen.append((logits, data)) or judged(logits, data))
    command = ["search", "citeseer", "--family", "distilled", "--hold", "citeseer/paper", "--out", tmp_path]
    changes = {**SMALL, "lambda_distill": "0.1,5", "teachers": 2, "groups": 3}
    held = [word for name, value in changes.items() for word in ("--set", f"{name}={value}")]
    sizes = ["--generations", 2, "--splits", 2, "--epochs", 12, "--device", "cpu"]
    call(monkeypatch, *command, *held, *sizes)
    table = [line.split() for line in capsys.readouterr().out.splitlines()[1:-2]]
    assert [(row[0], row[2]) for row in table] == [("0.1", "0"), ("0.1", "1"), ("5", "1"), ("0.1", "2"), ("5", "2")]
    for logits, data in seen:
        assert logits.shape[0] == data.judge_mask.shape[0] == 4  # two runs on each of two splits
        assert "test_mask" not in data
    stops, judges = seen[1][1].judge_mask, seen[0][1].judge_mask
    assert not (stops & judges).any()
    found = preset(str(tmp_path / "citeseer-distilled.yaml"))
    assert (found.family, found.saw_test) == ("distilled", False)
    assert "--family distilled --generations 2 --hold citeseer/paper --set hidden_channels=16" in found.provenance
    assert "best of 4 distillations (weights 0.1, 5, prior temperatures 0, 1 to 2 generations)" in found.provenance
    figures = [Judgement(float(row[3]) / 100, float(row[4])) for row in table[1:]]
    best = table[1:][ranked(figures, int(judges.any(0).sum()))[0]]
    assert (found.settings.lambda_distill, found.settings.generations) == (float(best[0]), int(best[2]))
    plain = found.settings.replace(teachers=0, generations=1, lambda_distill=0.0)
    assert plain == preset("citeseer/paper").settings.replace(**SMALL)  # for as many epochs as the preset has
    grouped = preset(str(tmp_path / "citeseer-distilled-groups.yaml"))
    assert grouped.settings == found.settings.replace(groups=3)
    assert grouped.provenance == found.provenance + "; with 3 groups, which this sweep did not judge"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--hold", "citeseer/paper", "--generations", 0], "--generations 0: must be 1 or more"),
        (["--generations", 2], "--generations 2: must come with --family distilled and --hold PRESET"),
        (["--hold", "citeseer/paper", "--generations", 2, "--trials", 3], "--trials 3: must not be given with --gen"),
        (["--hold", "citeseer/paper", "--generations", 2, "--set", "lr=1,2"], r"lr = (1.0, 2.0): must be one value"),
    ],
)
def test_options_that_do_not_go_together(
    words: list[object],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        call(monkeypatch, "search", "citeseer", "--family", "distilled", "--out", tmp_path, *words)
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(("epochs", "wins"), [(30, True), (1, False)])
def test_a_preset_is_replaced_by_a_better_one_alone(epochs: int, wins: bool, tmp_path: Path) -> None:
    content = yaml.safe_load((FOLDER / "citeseer.yaml").read_text())
    present = {"provenance": "known", "saw_test": False, "settings": SMALL | {"epochs": 10}}
    content |= {"best": "paper", "presets": {"paper": dict(present), "tuned": dict(present)}}
    (tmp_path / "citeseer.yaml").write_text(yaml.safe_dump(content))
    new = {"graph": "citeseer", "family": "tuned", "provenance": "new", "saw_test": False, "finalists": []}
    file = tmp_path / "found" / "new.yaml"
    file.parent.mkdir()
    file.write_text(yaml.safe_dump(new | {"settings": SMALL | {"epochs": epochs}}))
    update_presets([file], splits=2, device="cpu", folder=tmp_path)
    written = yaml.safe_load((tmp_path / "citeseer.yaml").read_text())
    assert written["presets"]["tuned"]["provenance"] == ("new" if wins else "known")
    assert written["presets"]["tuned"]["settings"]["epochs"] == (epochs if wins else 10)
    assert set(written["presets"]["tuned"]) == set(KEYS)
    assert written["best"] == ("tuned" if wins else "paper")
    for entry in written["presets"].values():
        assert (entry["judged_on"], entry["held_out"]) == (2, True)


@pytest.mark.parametrize(
    ("words", "judged", "best"),
    [
        ([], ["paper", "tuned", "views"], "tuned"),
        (["--new"], ["tuned", "views"], "tuned"),  # paper alone has figures of as many splits
        (["--families", "tuned,views"], ["tuned", "views"], "tuned"),
        (["--families", "paper"], ["paper"], "views"),  # which cannot be compared with it: it stays
    ],
)
def test_only_figures_of_the_same_splits_are_kept_and_compared(
    words: list[str], judged: list[str], best: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def by_alpha(seen: DevelopmentGraph, settings: list[Settings], device: object) -> list[Judgement]:
        return [Judgement(settings[0].alpha, 0.7)]

    update = partial(update_presets, folder=tmp_path)
    monkeypatch.setattr(preset_files, "judge_settings", by_alpha)
    monkeypatch.setattr(preset_files, "update_presets", update)
    known: dict[str, Any] = {"provenance": "known", "saw_test": False, "validation": 20.0, "nll": 0.9}
    presets = {
        "paper": known | {"settings": {"alpha": 0.3}, "judged_on": 2, "held_out": True},
        "tuned": known | {"settings": {"alpha": 0.6}, "judged_on": 4, "held_out": True},
        "views": known | {"settings": {"alpha": 0.5}, "judged_on": 2, "held_out": False},
    }
    content = {"published": [76.5, 0.5], "best": "views", "presets": presets}
    (tmp_path / "citeseer.yaml").write_text(yaml.safe_dump(content))
    call(monkeypatch, "presets", "update", "--graphs", "citeseer", "--splits", 2, "--device", "cpu", *words)
    written = yaml.safe_load((tmp_path / "citeseer.yaml").read_text())
    assert [family for family, entry in written["presets"].items() if entry["validation"] != 20.0] == judged
    for family in judged:
        entry = written["presets"][family]
        assert entry["validation"] == 100 * entry["settings"]["alpha"]
        assert (entry["judged_on"], entry["held_out"]) == (2, True)
    assert written["best"] == best


def test_presets_are_listed_and_shown(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    call(monkeypatch, "presets", "list")
    lines = capsys.readouterr().out.splitlines()
    assert [line.removesuffix(" *") for line in lines] == preset_names()
    assert f"citeseer/{preset('citeseer').family} *" in lines
    call(monkeypatch, "presets", "show", "citeseer/tuned")
    found = preset("citeseer/tuned")
    out = " ".join(capsys.readouterr().out.split())
    assert f"preset citeseer/tuned k {found.settings.k} " in out
    assert " ".join(found.provenance.split()) in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["show", "imdb"], "no preset for the graph 'imdb'"),
        (["update", "nowhere.yaml"], "nowhere.yaml: cannot be read"),
        (["update", "--graphs", "imdb"], "'imdb'"),
        (["update", "--families", "best"], "--families best: must be paper, tuned, views or distilled"),
        (["update", "--splits", "0"], "--splits 0: must be 1 or more"),
    ],
)
def test_wrong_presets(
    words: list[str], message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        call(monkeypatch, "presets", *words)
    assert end.value.code == 2
    assert message in capsys.readouterr().err
