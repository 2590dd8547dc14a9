"""Figures are deterministic and whole, and labels do not cover curves."""

import json
from pathlib import Path
from xml.etree import ElementTree

import matplotlib.figure
import pytest

from graphpartner.lab.pages.figures import _draw_accuracy, draw_depth
from graphpartner.training.depth_sweep import DepthSweep
from graphpartner.training.presets import preset

FIGURES = Path(__file__).parents[3] / "docs" / "figures"


def published() -> DepthSweep:
    content = json.loads((FIGURES / "depth.json").read_text())
    return DepthSweep(**{name: content[name] for name in DepthSweep.__dataclass_fields__})


def test_the_same_numbers_give_the_same_file(tmp_path):
    first, second = (draw_depth(published(), "title", tmp_path / name)[0] for name in ("a.svg", "b.svg"))
    assert first.read_bytes() == second.read_bytes()
    ElementTree.parse(first)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.svg", "b.svg"]


def test_a_picture(tmp_path):
    (file,) = draw_depth(published(), "title", tmp_path / "depth.png")
    assert file.read_bytes().startswith(b"\x89PNG")


def test_an_interrupted_figure_leaves_nothing(tmp_path, monkeypatch):
    def full(self, path, **options):
        Path(path).write_text("half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(matplotlib.figure.Figure, "savefig", full)
    with pytest.raises(OSError, match="No space"):
        draw_depth(published(), "title", tmp_path / "depth.svg")
    assert list(tmp_path.iterdir()) == []


def test_the_figures_in_the_repository_are_whole():
    sweep = published()
    assert sweep.steps == list(range(1, 65))
    assert len(sweep.accuracy) == len(sweep.graph_accuracy) == len(sweep.energy) == len(sweep.graph_energy) == 64
    for name in ("depth.svg", "model.svg"):
        assert ElementTree.parse(FIGURES / name).getroot().tag.endswith("svg")


def test_the_curves_in_the_repository_are_of_the_preset_as_it_is_now():
    content = json.loads((FIGURES / "depth.json").read_text())
    settings = preset(content["preset"]).settings
    assert (content["alpha"], content["trained_steps"]) == (settings.alpha, settings.num_steps)
    assert content["settings"] == {name: getattr(settings, name) for name in content["settings"]}


def test_the_label_of_the_trained_depth_is_above_all_curves():
    figure = matplotlib.figure.Figure()
    _draw_accuracy(figure.subplots(), published())
    (axes,) = figure.axes
    (label,) = (text for text in axes.texts if "trained at" in text.get_text())
    figure.canvas.draw()
    lowest = axes.transData.inverted().transform(label.get_window_extent().corners())[:, 1].min()
    assert lowest > max(published().accuracy + published().graph_accuracy)
