"""Table 1 at a glance: every method's accuracy on every graph, beside what was published."""

from collections.abc import Sequence
from math import ceil
from typing import Any

from graphpartner.experiments.cells import Cell
from graphpartner.experiments.verdict import find, graphs_of
from graphpartner.graph.catalogue import title
from graphpartner.report.style import GRAPH, GREY, SMALL, WHOLE

COLUMNS = 3
SPAN = 12.0  # points of accuracy shown below the highest; what is lower is told in words at the edge


def draw_accuracies(figure: Any, cells: Sequence[Cell]) -> None:
    """A panel a graph, a line a method: our mean ± sd, and the paper's number."""
    graphs = graphs_of(cells)
    rows = list(dict.fromkeys(cell.row for cell in cells if cell.mean is not None))
    columns = min(COLUMNS, len(graphs))
    lines = ceil(len(graphs) / columns)
    figure.set_size_inches(max(6.0, 3.0 * columns + 0.6), lines * (0.2 * len(rows) + 0.9) + 0.4)
    panels = figure.subplots(lines, columns, sharey=True, squeeze=False).ravel()
    for axes, graph in zip(panels, graphs, strict=False):
        _panel(axes, [find(cells, row, graph) for row in rows])
        axes.set_title(title(graph))
        axes.grid(True)
    for axes in panels[len(graphs) :]:
        axes.set_axis_off()
    panels[0].set_yticks(range(len(rows)), rows, fontsize=SMALL)
    panels[0].invert_yaxis()
    for axes in panels[max(0, len(graphs) - columns) : len(graphs)]:
        axes.set_xlabel("test accuracy (%)")
    panels[0].plot([], [], "o", color=WHOLE, label="GPNN, mean ± sd")
    panels[0].plot([], [], "o", color=GREY, label="a baseline, mean ± sd")
    panels[0].plot([], [], "D", color=GRAPH, fillstyle="none", markeredgewidth=1.4, label="printed in the paper")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)


def _panel(axes: Any, cells: Sequence[Cell | None]) -> None:
    numbers = [number for cell in cells if cell for number in (cell.mean, cell.published) if number is not None]
    right = max(numbers) + 1.5
    left = max(min(numbers) - 1.5, max(numbers) - SPAN)
    axes.set_xlim(left, right)
    axes.tick_params(axis="y", length=0)
    for place, cell in enumerate(cells):
        if cell is None or cell.mean is None:
            continue
        colour = WHOLE if cell.method == "gpnn" else GREY
        if cell.mean < left:
            axes.annotate(f"◂ {cell.mean:.1f}", (left, place), (3, 0), textcoords="offset points", va="center",
                          color=colour, fontsize=SMALL)  # fmt: skip
        else:
            axes.errorbar(cell.mean, place, xerr=cell.sd, fmt="o", color=colour, markersize=5, elinewidth=1.4)
        if cell.published is not None:
            axes.plot(cell.published, place, "D", color=GRAPH, fillstyle="none", markeredgewidth=1.4, markersize=6)
