"""Figures are deterministic and whole; their four colours are distinguishable by colour-blind readers and in grey."""

import json
from itertools import combinations
from pathlib import Path
from xml.etree import ElementTree

import matplotlib.figure
import numpy as np
import pytest

from graphpartner.lab.pages.figures import COLOURS, LINES, MARKS, PAPER, _draw_accuracy, draw_depth
from graphpartner.training.depth_sweep import DepthSweep
from graphpartner.training.presets import preset

FIGURES = Path(__file__).parents[3] / "docs" / "figures"


def published() -> DepthSweep:
    content = json.loads((FIGURES / "depth.json").read_text())
    return DepthSweep(**{name: content[name] for name in DepthSweep.__dataclass_fields__})


def test_the_same_numbers_give_the_same_file(tmp_path: Path) -> None:
    first, second = (draw_depth(published(), "title", tmp_path / name)[0] for name in ("a.svg", "b.svg"))
    assert first.read_bytes() == second.read_bytes()
    ElementTree.parse(first)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.svg", "b.svg"]


def test_a_picture(tmp_path: Path) -> None:
    (file,) = draw_depth(published(), "title", tmp_path / "depth.png")
    assert file.read_bytes().startswith(b"\x89PNG")


def test_an_interrupted_figure_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self, path, **options):
        Path(path).write_text("half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(matplotlib.figure.Figure, "savefig", full)
    with pytest.raises(OSError, match="No space"):
        draw_depth(published(), "title", tmp_path / "depth.svg")
    assert list(tmp_path.iterdir()) == []


def test_the_figures_in_the_repository_are_whole() -> None:
    sweep = published()
    assert sweep.steps == list(range(1, 65))
    assert len(sweep.accuracy) == len(sweep.graph_accuracy) == len(sweep.energy) == len(sweep.graph_energy) == 64
    for name in ("depth.svg", "model.svg"):
        assert ElementTree.parse(FIGURES / name).getroot().tag.endswith("svg")


def test_the_curves_in_the_repository_are_of_the_preset_as_it_is_now() -> None:
    content = json.loads((FIGURES / "depth.json").read_text())
    settings = preset(content["preset"]).settings
    assert (content["alpha"], content["trained_steps"]) == (settings.alpha, settings.num_steps)
    assert content["settings"] == {name: getattr(settings, name) for name in content["settings"]}


def test_the_label_of_the_trained_depth_is_above_all_curves() -> None:
    figure = matplotlib.figure.Figure()
    _draw_accuracy(figure.subplots(), published())
    (axes,) = figure.axes
    (label,) = (text for text in axes.texts if "trained at" in text.get_text())
    figure.canvas.draw()
    lowest = axes.transData.inverted().transform(label.get_window_extent().corners())[:, 1].min()
    assert lowest > max(published().accuracy + published().graph_accuracy)


TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
# What is left of linear red, green and blue: Machado, Oliveira and Fernandes (2009), the severest of each kind.
EYES = {
    "all colours": np.eye(3),
    "no red": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "no green": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "no blue": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}


def linear(colour: str) -> np.ndarray:
    shares = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    return np.where(shares <= 0.04045, shares / 12.92, ((shares + 0.055) / 1.055) ** 2.4)


def lab(rgb: np.ndarray) -> np.ndarray:
    """CIELAB: lightness, green to red, blue to yellow."""
    x, y, z = np.cbrt(TO_XYZ @ rgb.clip(1e-4, 1) / TO_XYZ.sum(1))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("eye", list(EYES))
def test_no_two_colours_look_alike(eye) -> None:
    seen = [lab(EYES[eye] @ linear(colour)) for colour in COLOURS]
    assert min(np.linalg.norm(a - b) for a, b in combinations(seen, 2)) > 20


def test_no_two_colours_are_alike_in_grey_and_all_stand_out_from_the_paper() -> None:
    *own, paper = (lab(linear(colour))[0] for colour in (*COLOURS, PAPER))
    assert min(abs(a - b) for a, b in combinations(own, 2)) > 9
    assert all(paper - lightness > 35 for lightness in own)


def test_every_colour_has_a_mark_and_a_line_of_its_own() -> None:
    assert len(set(COLOURS)) == len(set(MARKS)) == len(set(LINES)) == len(COLOURS)
