"""Style of all figures (palette, marks, line styles, sizes), how they are saved, and the figure of a depth sweep."""

import os
import tempfile
from pathlib import Path
from typing import Any

from graphpartner.training.depth_sweep import DepthSweep

PAPER, INK, GREY, BAND, GRID = "#fcfcfb", "#24292f", "#57606a", "#c8ced4", "#e4e4e0"

# Distinguishable in grey and by colour-blind readers, too: no two are alike in lightness.
WHOLE, GRAPH, PARTNER, FOURTH = "#0b3d66", "#d9822b", "#b3364a", "#9a66d0"
GRAPH_TEXT = "#a85d12"  # for letters the orange of lines is too light

COLOURS = (WHOLE, GRAPH, PARTNER, FOURTH)
MARKS = ("o", "s", "^", "D")
LINES = ("-", (0, (5, 1.5)), (0, (1.3, 1.3)), (0, (6, 1.5, 1.3, 1.5)))

SIZE = (9.0, 3.9)
WIDTH = 8.6
"""Width in inches of figures with small letters; pages are at least as wide, so that none is scaled down."""
SMALL = 9

STYLE = {
    "figure.facecolor": PAPER,
    "axes.facecolor": PAPER,
    "savefig.facecolor": PAPER,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": "#8c959f",
    "xtick.color": INK,
    "ytick.color": INK,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "legend.fontsize": SMALL,
    "font.family": "DejaVu Sans",  # comes with matplotlib, so the figure is the same on every machine
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.hashsalt": "graphpartner",
}


def draw_depth(sweep: DepthSweep, title: str, *files: str | os.PathLike[str]) -> list[Path]:
    """Draw accuracy and Dirichlet energy over the propagation steps, side by side; one file per name given.

    The ending of a name (.svg, .png, .pdf) is the format of its file.
    """
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=SIZE, layout="constrained")
        left, right = figure.subplots(1, 2)
        _draw_accuracy(left, sweep)
        _draw_energy(right, sweep)
        for axes in (left, right):
            axes.set_xscale("log", base=2)
            axes.set_xticks([2**power for power in range(20) if 2**power <= sweep.steps[-1]])
            axes.xaxis.set_major_formatter("{x:.0f}")
            axes.xaxis.set_minor_locator(matplotlib.ticker.NullLocator())
            axes.set_xlim(sweep.steps[0], sweep.steps[-1])
            axes.set_xlabel("propagation steps $l$ (log scale)")
            axes.grid(True)
        figure.suptitle(title, x=0.008, ha="left", fontsize=10, color=GREY)
        return [save(figure, Path(file)) for file in files]


def _draw_accuracy(axes: Any, sweep: DepthSweep) -> None:
    axes.set_title("Accuracy")
    axes.set_ylabel("test accuracy (%)")
    axes.plot(sweep.steps, sweep.graph_accuracy, color=GRAPH, linewidth=2)
    axes.axhline(sweep.partner_accuracy, color=PARTNER, linewidth=2, linestyle=(0, (4, 2)))
    axes.plot(sweep.steps, sweep.accuracy, color=WHOLE, linewidth=2.6)
    everything = [*sweep.accuracy, *sweep.graph_accuracy, sweep.partner_accuracy]
    axes.set_ylim(min(everything) - 1.0, max(everything) + 1.0)
    first, last = sweep.steps[0], sweep.steps[-1]
    _label(axes, (last, max(everything)), "right", "bottom", "both branches", WHOLE)
    _label(axes, (last, min(sweep.graph_accuracy)), "right", "top", "graph branch alone", GRAPH_TEXT)
    _label(axes, (first, sweep.partner_accuracy), "left", "top", "MLP partner alone", PARTNER)
    if sweep.trained_steps in sweep.steps:
        at = sweep.accuracy[sweep.steps.index(sweep.trained_steps)]
        axes.plot(sweep.trained_steps, at, "o", color=WHOLE, markersize=8, markeredgecolor=PAPER, markeredgewidth=1.5)
        text = f"trained at $l$ = {sweep.trained_steps}: {at:.1f} %"
        above = (last, max(everything))  # above all curves
        axes.annotate(text, above, (-4, 19), textcoords="offset points", ha="right", va="bottom")


def _draw_energy(axes: Any, sweep: DepthSweep) -> None:
    axes.set_title("Dirichlet energy")
    axes.set_ylabel(r"$\mathrm{tr}(H^\top \tilde{L} H)$, log scale")
    axes.set_yscale("log")
    floor = sweep.alpha**2 * sweep.partner_energy
    axes.plot(sweep.steps, sweep.graph_energy, color=GRAPH, linewidth=2)
    axes.axhline(floor, color=PARTNER, linewidth=2, linestyle=(0, (4, 2)))
    axes.plot(sweep.steps, sweep.energy, color=WHOLE, linewidth=2.6)
    middle, last = len(sweep.steps) // 8, sweep.steps[-1]
    both = r"both branches: $\alpha H^{\phi_1} + (1-\alpha) H^{\phi_2}$"
    _label(axes, (last, 1.15 * sweep.energy[middle]), "right", "bottom", both, WHOLE)
    _label(axes, (last, floor), "right", "top", r"$\alpha^2$ times the partner's energy", PARTNER)
    alone = r"graph branch alone: $H^{\phi_2}$"
    _label(axes, (last, 1.2 * sweep.graph_energy[middle]), "right", "bottom", alone, GRAPH_TEXT)


def _label(axes: Any, place: tuple[float, float], side: str, edge: str, text: str, color: str) -> None:
    """Label a line beside it, not in a legend that has to be matched by colour."""
    offset = (6 if side == "left" else -4, 5 if edge == "bottom" else -5)
    axes.annotate(text, place, offset, textcoords="offset points", color=color, fontweight="bold", ha=side, va=edge)


def save(figure: Any, file: Path) -> Path:
    """Write a figure whole or not at all, without a date: the same figure gives the same bytes."""
    metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(file.suffix[1:])
    with tempfile.TemporaryDirectory(dir=file.parent, prefix=".figure") as folder:
        drawn = Path(folder) / file.name
        figure.savefig(drawn, dpi=160, metadata=metadata)
        os.replace(drawn, file)
    return file
