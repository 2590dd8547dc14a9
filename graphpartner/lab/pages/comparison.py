"""Compare published and measured numbers in tables, for a terminal and in Markdown."""

from collections.abc import Sequence

from rich.console import Group
from rich.table import Table
from rich.text import Text

from graphpartner.graph.catalogue import title
from graphpartner.lab.experiments.findings import Verdict
from graphpartner.lab.experiments.results import Cell
from graphpartner.report.terminal import Column, blocks, fitted, natural

MEASURES = {
    "accuracy": "test accuracy, %",
    "member_accuracy": "mean test accuracy of the members, %",
    "mad_gap": "MADGap",
    "mad_gap_smoothed": "MADGap of H^(l+1)",
    "energy": "energy of H^(l+1)",
    "relative_energy": "energy of H^(l+1) over its squared norm",
    "original_rate": "same-label rate of original edges, %",
    "new_rate": "same-label rate of new pairs, %",
    "original_similarity": "mean cosine of original edges",
    "new_similarity": "mean cosine of new pairs",
    "num_new": "new pairs, both directions",
    "seconds": "seconds per run",
    "parameters": "parameters",
    "peak_memory": "peak memory, MB",
    "graph_energy": "energy of the graph branch over E(H^φ1)",
    "mixed_energy": "energy of both over E(H^φ1)",
    "published_lower": "published lower bound over E(H^φ1)",
    "published_upper": "published upper bound over E(H^φ1)",
    "lower": "lower bound that holds over E(H^φ1)",
    "upper": "upper bound that holds over E(H^φ1)",
    "input_energy": "energy of the input",
    "layer_energy": "energy",
    "layer_lower": "published lower bound",
    "layer_upper": "published upper bound",
    "layer_s_min": "squared smallest singular value",
    "layer_s_max": "squared largest singular value",
}
"""Names of measures in tables."""

COUNTS = {"classes", "features", "nodes", "edges", "isolated", "unlabelled", "num_new", "parameters"}
RULE = (
    "**holds**: the published number lies within two standard errors of our mean, 0.05 at least (baselines: within 1.0 "
    "point; counts, rates and cosines: the same digits, rounded or cut off). Seconds, from another machine, are not "
    "judged."
)


def number(measure: str, value: float | None) -> str:
    """Format a value of a measure."""
    if value is None:
        return ""
    if measure in COUNTS:
        return f"{value:,.0f}"
    if measure.endswith("similarity"):
        return f"{value:.2f}"
    if measure in ("seconds", "peak_memory", "epochs"):
        return f"{value:,.1f}" if value >= 10 else f"{value:.2f}"
    if measure.endswith(("accuracy", "_rate")):
        return f"{value:.1f}"
    return f"{value:.3g}"


def mean_sd(measure: str, value: float | None, sd: float | None) -> str:
    """Format mean ± standard deviation; accuracies with one digit more than the paper."""
    if value is not None and measure.endswith("accuracy"):
        return f"{value:.2f}" + (f" ± {sd:.2f}" if sd is not None else "")
    return number(measure, value) + (f" ± {number(measure, sd)}" if sd and measure not in COUNTS else "")


def published(cell: Cell) -> str:
    """Format the published number as printed."""
    return number(cell.measure, cell.published) + (f" ± {cell.published_sd:.1f}" if cell.published_sd else "")


def difference(cell: Cell) -> str:
    """Format our mean less the published one."""
    if cell.difference is None:
        return ""
    if cell.measure in COUNTS:
        return f"{cell.difference:+,.0f}"
    return f"{cell.difference:+z.1f}" if cell.measure == "seconds" else f"{cell.difference:+z.2f}"


def mark(cell: Cell) -> str:
    """Return a dagger for an accuracy whose settings were chosen with a look at test accuracy."""
    return " †" if cell.saw_test and cell.measure.endswith("accuracy") else ""


def terminal_tables(target: str, cells: Sequence[Cell], width: int) -> list[Group]:
    """Return a target's tables within a width: one line per cell, or one per row where something is varied."""
    flat = [cell for cell in cells if not cell.at and cell.measure != "picture"]
    varied = [cell for cell in cells if cell.at]
    tables = _lists(target, flat, width)
    for measure, graph in dict.fromkeys((cell.measure, cell.graph) for cell in varied):
        axis, lines, values, places = pivot([cell for cell in varied if (cell.measure, cell.graph) == (measure, graph)])
        numbers = [Column(f"{value:g}", [short(places.get((line, value))) for line in lines]) for value in values]
        parts = blocks(Column(axis, lines, "left", wraps=True), numbers, width)
        heading = _heading(f"{target}: {MEASURES.get(measure, measure)}, {title(graph)}")
        tables.append(Group(heading, *(part for block in parts for part in (block, ""))))
    return tables


def _heading(words: str) -> Text:
    return Text(words, style="bold")


COLOURS = {"holds": "green", "higher": "cyan", "lower": "red", "": ""}


def _lists(target: str, cells: Sequence[Cell], width: int) -> list[Group]:
    """Return one table with a column for the measure, or one per measure where there is one only, or no room."""
    names = dict.fromkeys(MEASURES.get(cell.measure, cell.measure) for cell in cells)
    columns = _columns(cells, with_measure=True)
    if len(names) > 1 and natural(columns) <= width:
        return [Group(_heading(target), fitted(columns, width), "")]
    tables = []
    for name in names:
        own = [cell for cell in cells if MEASURES.get(cell.measure, cell.measure) == name]
        tables.append(Group(_heading(f"{target}: {name}"), fitted(_columns(own, with_measure=False), width), ""))
    return tables


def _columns(cells: Sequence[Cell], with_measure: bool) -> list[Column]:
    outcomes = [
        Text(cell.reason or "", "yellow") if cell.mean is None else Text(cell.outcome, COLOURS[cell.outcome])
        for cell in cells
    ]
    ours = ["" if cell.mean is None else mean_sd(cell.measure, cell.mean, cell.sd) + mark(cell) for cell in cells]
    columns = [
        Column("", [cell.row for cell in cells], "left", wraps=True),
        Column("graph", [cell.graph for cell in cells], "left"),
        Column("measure", [MEASURES.get(cell.measure, cell.measure) for cell in cells if with_measure], "left"),
        Column("published", [published(cell) for cell in cells]),
        Column("ours", ours),
        Column("runs", [str(cell.runs or "") for cell in cells]),
        Column("off by", [difference(cell) for cell in cells]),
        Column("", outcomes, "left", wraps=True),
    ]
    return [column for column in columns if any(column.cells)]


def pivot(cells: Sequence[Cell]) -> tuple[str, list[str], list[float], dict[tuple[str, float], Cell]]:
    """Return the axis of a grid, its lines (row and other varied values), the axis' values, and cells by both."""
    axis = "layer" if any("layer" in cell.at for cell in cells) else "steps"
    places = {(_line(cell, axis), cell.at.get(axis, 0)): cell for cell in cells}
    return axis, list(dict.fromkeys(line for line, _ in places)), sorted({value for _, value in places}), places


def _line(cell: Cell, axis: str) -> str:
    rest = ", ".join(f"{name} = {value:g}" for name, value in cell.at.items() if name != axis)
    return f"{cell.row}, {rest}" if rest else cell.row


def short(cell: Cell | None) -> str:
    """Format a mean without its standard deviation; a dash where there is none."""
    if cell is None or cell.mean is None:
        return "–"
    return mean_sd(cell.measure, cell.mean, None) if cell.measure == "accuracy" else number(cell.measure, cell.mean)


def markdown(cells: Sequence[Cell]) -> str:
    """Return a target's cells as Markdown tables: rows by graphs, or rows by steps."""
    parts = []
    flat = [cell for cell in cells if not cell.at and cell.measure != "picture"]
    if flat:
        parts.append(_by_graph(flat))
    varied = [cell for cell in cells if cell.at]
    for measure, graph in dict.fromkeys((cell.measure, cell.graph) for cell in varied):
        axis, lines, values, places = pivot([cell for cell in varied if (cell.measure, cell.graph) == (measure, graph)])
        table = [f"**{title(graph)}: {MEASURES.get(measure, measure)}**", ""]
        table.append(f"| {axis} | {' | '.join(f'{value:g}' for value in values)} |")
        table.append("|---|" + "--:|" * len(values))
        table += [
            f"| {line} | " + " | ".join(short(places.get((line, value))) for value in values) + " |" for line in lines
        ]
        parts.append("\n".join(table))
    return "\n\n".join(parts)


def _by_graph(cells: Sequence[Cell]) -> str:
    graphs = list(dict.fromkeys(cell.graph for cell in cells))
    several = len({cell.measure for cell in cells}) > 1
    corner = "" if several else MEASURES.get(cells[0].measure, cells[0].measure)
    lines = [f"| {corner} | " + " | ".join(title(graph) for graph in graphs) + " |", "|---|" + "---|" * len(graphs)]
    places = {(cell.row, cell.measure, cell.graph): cell for cell in cells}
    for row, measure in dict.fromkeys((cell.row, cell.measure) for cell in cells):
        name = f"{row}: {MEASURES.get(measure, measure)}" if several else row
        shown = (_markdown_cell(places.get((row, measure, graph))) for graph in graphs)
        lines.append(f"| {name} | " + " | ".join(shown) + " |")
    return "\n".join(lines)


def _markdown_cell(cell: Cell | None) -> str:
    if cell is None:
        return ""
    text = f"*{cell.reason or 'not run'}*"
    if cell.mean is not None:
        runs = f" ({cell.runs})" if cell.runs > 1 else ""
        text = f"**{mean_sd(cell.measure, cell.mean, cell.sd)}**{runs}{mark(cell)}"
    if cell.published is not None:
        outcome = f", {difference(cell)} {cell.outcome}".rstrip() if cell.mean is not None else ""
        text += f"<br>paper {published(cell)}{outcome}"
    if cell.elsewhere is not None:
        sd = f" ± {cell.elsewhere_sd:.1f}" if cell.elsewhere_sd is not None else ""
        text += f"<br>elsewhere {number(cell.measure, cell.elsewhere)}{sd}"
    return text


def verdict_lines(judged: Sequence[Verdict]) -> str:
    """Return verdicts as a Markdown table."""
    words = {True: "**holds**", False: "does not hold", None: "open"}
    lines = ["| finding | verdict | numbers | rule |", "|---|---|---|---|"]
    lines += [f"| {each.finding} | {words[each.holds]} | {each.numbers} | {each.rule} |" for each in judged]
    return "\n".join(lines)


def verdict_table(judged: Sequence[Verdict]) -> Table:
    """Return verdicts for a terminal."""
    table = Table(box=None, pad_edge=False, show_header=False)
    words = {True: "[green]holds[/]", False: "[red]does not hold[/]", None: "[yellow]open[/]"}
    for each in judged:
        table.add_row(words[each.holds], f"{each.finding}: {each.numbers}")
    return table
