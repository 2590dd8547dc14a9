"""Draw the figures of the results from the cells of a target, and describe each in a sentence for its alt text."""

from collections.abc import Callable, Sequence
from itertools import cycle
from math import ceil
from pathlib import Path
from typing import Any

from graphpartner.graph.catalogue import title
from graphpartner.lab.experiments.results import Cell, curve, find_cell, graphs_of, means
from graphpartner.lab.pages.comparison import MEASURES, number
from graphpartner.lab.pages.figures import BAND, COLOURS, GRAPH, GREY, LINES, MARKS, SIZE, SMALL, STYLE, WHOLE, save

COLUMNS = 3
SPAN = 12.0  # points of accuracy shown below the highest; a lower value is printed at the edge
CLASS_MARKS = "osD^vPX*<>hpd8H"


def draw_accuracies(figure: Any, cells: Sequence[Cell]) -> None:
    """Draw a panel per graph with a line per method: our mean ± sd, and the paper's number."""
    graphs = graphs_of(cells)
    rows = list(dict.fromkeys(cell.row for cell in cells if cell.mean is not None))
    columns = min(COLUMNS, len(graphs))
    lines = ceil(len(graphs) / columns)
    figure.set_size_inches(max(6.0, 3.0 * columns + 0.6), lines * (0.2 * len(rows) + 0.9) + 0.4)
    panels = figure.subplots(lines, columns, sharey=True, squeeze=False).ravel()
    for axes, graph in zip(panels, graphs, strict=False):
        _panel(axes, [find_cell(cells, row, graph) for row in rows])
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


def draw(target: str, cells: Sequence[Cell], folder: Path) -> Path | None:
    """Draw a target's figure as SVG; None where it has none, or no data."""
    if target not in FIGURES or not graphs_of(cells):
        return None
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=SIZE, layout="constrained")
        FIGURES[target][0](figure, cells)
        return save(figure, folder / f"{target}.svg")


def _fig1(figure: Any, cells: Sequence[Cell]) -> None:
    graph = graphs_of(cells)[0]
    left, right = figure.subplots(1, 2)
    left.set_yscale("log")
    for (measure, name), colour, mark, line in zip(
        (
            ("layer_energy", "Dirichlet energy"),
            ("layer_s_max", "squared largest singular value"),
            ("layer_s_min", "squared smallest singular value"),
        ),
        COLOURS, MARKS, LINES, strict=False,
    ):  # fmt: skip
        own = curve(cells, "GCN", graph, measure, "layer")
        layers = [cell.at["layer"] for cell in own]
        left.plot(layers, _positive(means(own)), color=colour, marker=mark, linestyle=line, label=name)
    low, high = (curve(cells, "GCN", graph, f"layer_{end}", "layer") for end in ("lower", "upper"))
    layers = [cell.at["layer"] for cell in low]
    bounds = "bounds of Eq. 6" if any(means(low)) else "upper bound of Eq. 6; the lower one is 0"
    left.plot(layers, _positive(means(low)), color=GREY, linestyle=":", label=bounds)
    left.plot(layers, _positive(means(high)), color=GREY, linestyle=":")
    _set_axes(left, f"8-layer GCN on {title(graph)}", "layer", "energy, squared singular values")
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower left", ncols=2)
    picture = next((cell.detail for cell in cells if cell.measure == "picture" and cell.detail), None)
    if picture:
        _embedding(right, picture["points"], picture["classes"])
        classes = right.get_legend_handles_labels()
        figure.legend(*classes, loc="outside lower right", ncols=4, title="class", markerscale=2)
    else:
        right.set_axis_off()


def _embedding(axes: Any, points: Sequence[Sequence[float]], classes: Sequence[int]) -> None:
    """Draw points in the plane; classes differ in mark and lightness, so that they differ in grey, too."""
    from matplotlib import colormaps

    names = sorted(set(classes))
    for place, (name, mark) in enumerate(zip(names, cycle(CLASS_MARKS), strict=False)):
        columns = zip(*(point for point, own in zip(points, classes, strict=True) if own == name), strict=True)
        shade = colormaps["viridis"](0.92 * place / max(1, len(names) - 1))
        axes.scatter(*columns, color=shade, marker=mark, s=11, linewidths=0, rasterized=True, label=str(name))
    axes.set_title("Embedding of layer 4, t-SNE")
    axes.set_xlabel(f"{len(points):,} nodes")
    axes.set_xticks([])
    axes.set_yticks([])


def _fig3(figure: Any, cells: Sequence[Cell]) -> None:
    _panels(figure, cells, ("mad_gap", "accuracy"), ("GPNN", "GCN", "GAT"))


def _fig4(figure: Any, cells: Sequence[Cell]) -> None:
    graphs = graphs_of(cells)
    for axes, graph in zip(figure.subplots(1, len(graphs), squeeze=False)[0], graphs, strict=True):
        _lines(axes, cells, graph, "accuracy", ("full", "w/o rectification", "w/o partner", "w/o both"))
        _set_axes(axes, title(graph), "propagation steps $l$", LABELS["accuracy"])
        axes.legend()


def _fig5(figure: Any, cells: Sequence[Cell]) -> None:
    names = {"with": "with contrastive loss", "without": "without"}
    _panels(figure, cells, ("energy", "accuracy"), ("with", "without"), names, logarithmic="energy")


def _bounds(figure: Any, cells: Sequence[Cell]) -> None:
    graphs = graphs_of(cells)
    for axes, graph in zip(figure.subplots(1, len(graphs), squeeze=False)[0], graphs, strict=True):
        own = [cell for cell in cells if cell.graph == graph and cell.mean is not None]
        shares = sorted({cell.at["alpha"] for cell in own})
        few = dict.fromkeys((shares[0], shares[len(shares) // 2], shares[-1]))
        for share, colour, mark in zip(few, COLOURS, MARKS, strict=False):
            at = [cell for cell in own if cell.at["alpha"] == share]
            measured = curve(at, "GPNN", graph, "mixed_energy")
            steps = [cell.at["steps"] for cell in measured]
            lower, upper, holds = (
                _positive(means(curve(at, "GPNN", graph, bound)))
                for bound in ("published_lower", "published_upper", "lower")
            )
            axes.plot(steps, means(measured), mark, color=colour, label=f"α = {share:g}")
            axes.plot(steps, lower, ":", steps, upper, ":", color=colour, linewidth=1.4)
            axes.plot(steps, holds, "_", color=colour, markersize=13, markeredgewidth=1.8)
        # The larger α, the higher is the corrected upper bound: the last one covers all; wide, for dots lie on it.
        highest, label = means(curve(at, "GPNN", graph, "upper")), f"upper bound that holds, α = {share:g}"
        axes.plot(steps, highest, "-", color=BAND, linewidth=5, zorder=1, label=label)
        axes.set_yscale("log")
        axes.set_xticks(steps)
        axes.xaxis.set_major_formatter("{x:.0f}")
        axes.yaxis.set_major_formatter("{x:g}")
        _set_axes(axes, title(graph), "propagation steps $l$", r"energy over $E(H^{\phi_1})$")
        axes.plot([], [], ":", color=GREY, label="published bounds")
        axes.plot([], [], "_", color=GREY, markersize=13, markeredgewidth=1.8, label="lower bound that holds, if not 0")
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=2)


LABELS = {
    "accuracy": "test accuracy (%)",
    "mad_gap": "MADGap",
    "energy": r"$\mathrm{tr}(H^\top \tilde{L} H)$ of $H^{(l+1)}$, log scale",
}


def _panels(
    figure: Any,
    cells: Sequence[Cell],
    measures: Sequence[str],
    rows: Sequence[str],
    names: dict[str, str] | None = None,
    logarithmic: str | None = None,
) -> None:
    """Draw one panel per measure, on the first graph that has data."""
    graph = graphs_of(cells)[0]
    for axes, measure in zip(figure.subplots(1, len(measures)), measures, strict=True):
        if measure == logarithmic:
            axes.set_yscale("log")
        _lines(axes, cells, graph, measure, rows, names)
        heading = {"mad_gap": "MADGap", "accuracy": "Accuracy", "energy": "Dirichlet energy"}[measure]
        _set_axes(axes, f"{heading}, {title(graph)}", "propagation steps $l$", LABELS[measure])
        axes.legend()


def _lines(
    axes: Any,
    cells: Sequence[Cell],
    graph: str,
    measure: str,
    rows: Sequence[str],
    names: dict[str, str] | None = None,
) -> None:
    """Draw means over steps with a band of one standard deviation; on a logarithmic axis where steps double."""
    every = sorted({cell.at["steps"] for cell in cells if "steps" in cell.at})
    if every[-1] >= 16 * every[0]:
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter("{x:.0f}")
    for row, colour, mark, line in zip(rows, COLOURS, MARKS, LINES, strict=False):
        own = curve(cells, row, graph, measure)
        if not own:
            continue
        steps, mean = [cell.at["steps"] for cell in own], means(own)
        label = (names or {}).get(row, row)
        axes.plot(steps, mean, color=colour, marker=mark, markersize=5, linestyle=line, linewidth=1.8, label=label)
        sd = [cell.sd or 0.0 for cell in own]
        low, high = ([m + sign * s for m, s in zip(mean, sd, strict=True)] for sign in (-1, 1))
        axes.fill_between(steps, low, high, color=colour, alpha=0.15, linewidth=0)


def _set_axes(axes: Any, heading: str, xlabel: str, ylabel: str) -> None:
    axes.set_title(heading)
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    axes.grid(True)


def _positive(values: Sequence[float]) -> list[float]:
    """Replace values at or below zero, which a logarithmic axis cannot show, by NaN."""
    return [value if value > 0 else float("nan") for value in values]


def alt_text(target: str, cells: Sequence[Cell]) -> str:
    """Return one sentence that describes a target's figure."""
    return FIGURES[target][1](cells)


def _fig1_text(cells: Sequence[Cell]) -> str:
    graph = graphs_of(cells)[0]
    curves = (
        f"{MEASURES[measure]} {_ends(curve(cells, 'GCN', graph, measure, 'layer'))}"
        for measure in ("layer_energy", "layer_s_max", "layer_s_min")
    )
    text = f"From the first to the last layer of a deep GCN on {title(graph)}: {', '.join(curves)}"
    picture = next((cell.detail for cell in cells if cell.measure == "picture" and cell.detail), None)
    if picture:
        nodes, classes = len(picture["points"]), len(set(picture["classes"]))
        text += f"; beside it {nodes:,} nodes in the plane by their embedding, in {classes} classes"
    return text


def _fig3_text(cells: Sequence[Cell]) -> str:
    return _curves_text(cells, ("mad_gap", "accuracy"), graphs_of(cells)[:1])


def _fig4_text(cells: Sequence[Cell]) -> str:
    return _curves_text(cells, ("accuracy",), graphs_of(cells))


def _fig5_text(cells: Sequence[Cell]) -> str:
    names = {"with": "with the contrastive loss", "without": "without it"}
    return _curves_text(cells, ("energy", "accuracy"), graphs_of(cells)[:1], names, peak=True)


def _bounds_text(cells: Sequence[Cell]) -> str:
    parts = []
    for graph in graphs_of(cells):
        own = [
            cell for cell in cells if (cell.graph, cell.measure) == (graph, "mixed_energy") and cell.mean is not None
        ]
        shares = sorted({cell.at["alpha"] for cell in own})
        few = dict.fromkeys((shares[0], shares[len(shares) // 2], shares[-1]))
        ends = (
            f"{_ends(curve([cell for cell in own if cell.at['alpha'] == share], 'GPNN', graph, 'mixed_energy'))} at "
            f"α = {share:g}"
            for share in few
        )
        parts.append(f"on {title(graph)} {', '.join(ends)}")
    return f"The energy of both branches over the partner's and its bounds over the steps: {'; '.join(parts)}"


def _table1_text(cells: Sequence[Cell]) -> str:
    known = [cell for cell in cells if cell.mean is not None]
    parts = []
    for graph in graphs_of(cells):
        ranked = sorted(((cell.mean or 0.0, cell.row) for cell in known if cell.graph == graph), reverse=True)
        parts.append(f"{title(graph)} " + " to ".join(f"{mean:.1f} ({row})" for mean, row in (ranked[0], ranked[-1])))
    return f"Highest and lowest test accuracy of {len({cell.row for cell in known})} methods, %: {', '.join(parts)}"


def _curves_text(
    cells: Sequence[Cell],
    measures: Sequence[str],
    graphs: Sequence[str],
    names: dict[str, str] | None = None,
    peak: bool = False,
) -> str:
    """Return where each row's curve begins and ends, measure by measure."""
    parts = []
    for graph in graphs:
        for measure in measures:
            own = [cell for cell in cells if (cell.graph, cell.measure) == (graph, measure)]
            lines = {row: curve(own, row, graph, measure) for row in dict.fromkeys(cell.row for cell in own)}
            ends = (f"{(names or {}).get(row, row)} {_ends(line, peak)}" for row, line in lines.items() if line)
            parts.append(f"{MEASURES[measure].removesuffix(', %')} on {title(graph)}: {', '.join(ends)}")
    steps = sorted(cell.at["steps"] for cell in cells if "steps" in cell.at)
    return f"From {steps[0]:g} to {steps[-1]:g} steps, {'; '.join(parts)}"


def _ends(cells: Sequence[Cell], peak: bool = False) -> str:
    """Return the first and last value of a curve, with the highest one if ``peak`` is set and it lies between them."""
    values = means(cells)
    first, last, most = (_number(cells[0].measure, value) for value in (values[0], values[-1], max(values)))
    between = f" by way of {most}" if peak and most not in (first, last) else ""
    return f"{first}{between} to {last}"


def _number(measure: str, value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else number(measure, value)  # not 1.39e+03


FIGURES: dict[str, tuple[Callable[[Any, Sequence[Cell]], None], Callable[[Sequence[Cell]], str]]] = {
    "table1": (draw_accuracies, _table1_text),
    "fig1": (_fig1, _fig1_text),
    "fig3": (_fig3, _fig3_text),
    "fig4": (_fig4, _fig4_text),
    "fig5": (_fig5, _fig5_text),
    "bounds": (_bounds, _bounds_text),
}
"""By target: the function that draws its figure, and the one that describes it."""
