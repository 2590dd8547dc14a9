"""What is seen on a figure of the results, in a sentence, from the cells that it is drawn from."""

from collections.abc import Callable, Sequence

from graphpartner.graph.catalogue import title
from graphpartner.lab.experiments.results import Cell, curve, graphs_of, means
from graphpartner.lab.pages.comparison import MEASURES, number


def alt_text(target: str, cells: Sequence[Cell]) -> str:
    """One sentence about a target's figure."""
    return SEEN[target](cells)


def _fig1(cells: Sequence[Cell]) -> str:
    graph = graphs_of(cells)[0]
    curves = (
        f"{MEASURES[measure]} {_ends(curve(cells, 'GCN', graph, measure, 'layer'))}"
        for measure in ("layer_energy", "layer_s_max", "layer_s_min")
    )
    told = f"From the first to the last layer of a deep GCN on {title(graph)}: {', '.join(curves)}"
    picture = next((cell.detail for cell in cells if cell.measure == "picture" and cell.detail), None)
    if picture:
        nodes, classes = len(picture["points"]), len(set(picture["classes"]))
        told += f"; beside it {nodes:,} nodes in the plane by their embedding, in {classes} classes"
    return told


def _fig3(cells: Sequence[Cell]) -> str:
    return _curves(cells, ("mad_gap", "accuracy"), graphs_of(cells)[:1])


def _fig4(cells: Sequence[Cell]) -> str:
    return _curves(cells, ("accuracy",), graphs_of(cells))


def _fig5(cells: Sequence[Cell]) -> str:
    names = {"with": "with the contrastive loss", "without": "without it"}
    return _curves(cells, ("energy", "accuracy"), graphs_of(cells)[:1], names, peak=True)


def _bounds(cells: Sequence[Cell]) -> str:
    parts = []
    for graph in graphs_of(cells):
        own = [
            cell for cell in cells if (cell.graph, cell.measure) == (graph, "mixed_energy") and cell.mean is not None
        ]
        shares = sorted({cell.at["alpha"] for cell in own})
        few = dict.fromkeys((shares[0], shares[len(shares) // 2], shares[-1]))
        told = (
            f"{_ends(curve([cell for cell in own if cell.at['alpha'] == share], 'GPNN', graph, 'mixed_energy'))} at "
            f"α = {share:g}"
            for share in few
        )
        parts.append(f"on {title(graph)} {', '.join(told)}")
    return f"The energy of both branches over the partner's and its bounds over the steps: {'; '.join(parts)}"


def _table1(cells: Sequence[Cell]) -> str:
    known = [cell for cell in cells if cell.mean is not None]
    parts = []
    for graph in graphs_of(cells):
        told = sorted(((cell.mean or 0.0, cell.row) for cell in known if cell.graph == graph), reverse=True)
        parts.append(f"{title(graph)} " + " to ".join(f"{mean:.1f} ({row})" for mean, row in (told[0], told[-1])))
    return f"Highest and lowest test accuracy of {len({cell.row for cell in known})} methods, %: {', '.join(parts)}"


SEEN: dict[str, Callable[[Sequence[Cell]], str]] = {
    "table1": _table1, "fig1": _fig1, "fig3": _fig3, "fig4": _fig4, "fig5": _fig5, "bounds": _bounds,
}  # fmt: skip


def _curves(
    cells: Sequence[Cell],
    measures: Sequence[str],
    graphs: Sequence[str],
    names: dict[str, str] | None = None,
    peak: bool = False,
) -> str:
    """Where each row's curve begins and ends, measure by measure."""
    parts = []
    for graph in graphs:
        for measure in measures:
            own = [cell for cell in cells if (cell.graph, cell.measure) == (graph, measure)]
            found = {row: curve(own, row, graph, measure) for row in dict.fromkeys(cell.row for cell in own)}
            told = (f"{(names or {}).get(row, row)} {_ends(line, peak)}" for row, line in found.items() if line)
            parts.append(f"{MEASURES[measure].removesuffix(', %')} on {title(graph)}: {', '.join(told)}")
    steps = sorted(cell.at["steps"] for cell in cells if "steps" in cell.at)
    return f"From {steps[0]:g} to {steps[-1]:g} steps, {'; '.join(parts)}"


def _ends(cells: Sequence[Cell], peak: bool = False) -> str:
    """The first and the last value of a curve, and the highest where it is asked for and lies between them."""
    values = means(cells)
    first, last, most = (_told(cells[0].measure, value) for value in (values[0], values[-1], max(values)))
    between = f" by way of {most}" if peak and most not in (first, last) else ""
    return f"{first}{between} to {last}"


def _told(measure: str, value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else number(measure, value)  # nobody says 1.39e+03
