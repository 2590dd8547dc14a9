"""Write the results page: a summary, then everything that ``gpnn reproduce`` measured, from its files alone."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

from graphpartner.graph.catalogue import title
from graphpartner.lab.experiments.experiment import TARGETS
from graphpartner.lab.experiments.findings import AHEAD_OF_ALL, NEAR, PAPER_ROW, Verdict, nearly
from graphpartner.lab.experiments.results import Cell, find_cell, graphs_of
from graphpartner.lab.pages.comparison import COUNTS, RULE, difference, mark, markdown, number, published, verdict_lines
from graphpartner.lab.pages.result_figures import FIGURES, alt_text
from graphpartner.system.files import write_atomically

TITLES = {
    "table1": "Table 1: accuracy",
    "table2": "Table 2: the graphs",
    "table3": "Table 3: graph enhancement",
    "table4": "Table 4: wall time against GCNII",
    "fig1": "Figure 1: a deep GCN, layer by layer",
    "fig3": "Figure 3: over-smoothing",
    "fig4": "Figure 4: partner and rectification",
    "fig5": "Figure 5: the contrastive loss",
    "bounds": "Propositions 1 and 2",
    "scores": "Scores of the contrastive loss",
    "beyond": "Beyond the paper",
}


Results = Mapping[str, Sequence[Cell]]
"""Cells by target."""

CHOSEN = (
    "GPNN's settings come from `gpnn search`, on validation nodes alone, unless a preset "
    "says otherwise. The rule of the search, likelihood where accuracies differ too little to decide, was fixed after "
    "a comparison with test accuracy on Cora and CiteSeer; the other graphs played no part in it. Where all splits "
    "are random, no run of a search sees the labels of its own split's test nodes, but a validation node of one split "
    "is a test node of others. Most presets were searched again after the test accuracy of an earlier winner was "
    "known; validation chose each of them. Baselines have their authors' settings where these do well, otherwise the "
    "best of a search on validation nodes, usually of 2 to 50 configurations where GPNN had 48 to 276."
)
FINDINGS, SHORTFALLS, CLAIMS = "The paper's findings", "Where we fall short", "What we claim ourselves"
PREVIEW = (
    "A preview: two runs per cell, with fewer epochs where they take long, small grids and ensembles, on the built-in "
    "graph alone. Nothing here is a result: two runs seldom show more than chance."
)


def write_results_page(
    results: Results, judged: Sequence[Verdict], folder: Path, page: Path, preview: bool = False
) -> None:
    """Write the whole page; see :func:`results_page`."""
    page.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(page, results_page(results, judged, folder, page, preview).encode())


def results_page(results: Results, judged: Sequence[Verdict], folder: Path, page: Path, preview: bool = False) -> str:
    """Return the page as text.

    Args:
        results: the cells of every target that has any.
        judged: the verdicts on them.
        folder: where the figures are; they are linked from the place of the page.
        page: the file that the text is written to.
        preview: whether the results are a preview, ``--quick``.
    """
    there = [target for target in TARGETS if target in results]
    of_paper, ours = ([verdict for verdict in judged if verdict.ours == own] for own in (False, True))
    everything = [cell for cells in results.values() for cell in cells]
    parts = [
        "# Results",
        PREVIEW if preview else "",
        in_short(results.get("table1", []), judged),
        " · ".join(_link(heading) for heading in (FINDINGS, SHORTFALLS, *(TITLES[target] for target in there), CLAIMS)),
        "Written by `gpnn reproduce` from the files under `results/`; no number is typed by hand. Accuracies are in "
        "percent, mean ± standard deviation over the number of runs in parentheses; lines in figures are means over "
        "runs, bands one standard deviation. † marks settings that were chosen with a look at test accuracy and have "
        "won no search on validation nodes since: such a row shows what the method can reach, not what a fair "
        "selection finds.",
        CHOSEN,
        _machines(everything),
        RULE,
        f"## {FINDINGS}",
        _counted(of_paper),
        f"## {SHORTFALLS}",
        _shortfalls(everything),
    ]
    for target in there:
        parts.append(f"## {TITLES[target]}")
        tables = markdown(results[target])
        figure = folder / f"{target}.svg"
        if target in FIGURES and graphs_of(results[target]) and figure.exists():
            text = alt_text(target, results[target])
            parts.append(f"![{text}]({quote(Path(os.path.relpath(figure, page.parent)).as_posix())})")
            if target != "table1":  # its numbers stay open: most readers come for them
                tables = f"<details><summary>The numbers behind the figure</summary>\n\n{tables}\n\n</details>"
        parts += [tables, notes(results[target])]
    parts += [f"## {CLAIMS}", _counted(ours)]
    return "\n\n".join(part for part in parts if part) + "\n"


def notes(cells: Sequence[Cell]) -> str:
    """Return the sources of a target's numbers, and remarks on cells that differ from them."""
    parts = []
    sources = dict.fromkeys(cell.source for cell in cells if cell.source)
    elsewhere = dict.fromkeys((cell.row, cell.elsewhere_source) for cell in cells if cell.elsewhere_source)
    if sources:
        parts.append(f"Published: {'; '.join(str(source) for source in sources)}.")
    if elsewhere:
        parts.append("Elsewhere:\n\n" + "\n".join(f"- {row}: {source}." for row, source in elsewhere))
    several = len({cell.experiment for cell in cells}) > 1
    grouped: dict[str, dict[str, None]] = {}
    for cell in cells:
        if cell.remark and (cell.outcome != "holds" or _behind_elsewhere(cell)):
            about = f"{cell.row} on {title(cell.graph)}" if several else title(cell.graph)
            grouped.setdefault(cell.remark, {})[about] = None
    if grouped:
        parts.append("\n".join(f"- {', '.join(about)}: {remark}" for remark, about in grouped.items()))
    return "\n\n".join(parts)


def _link(heading: str) -> str:
    """Return a link to a heading of the page, by the anchor that GitHub gives it."""
    place = "".join(letter for letter in heading.lower() if letter.isalnum() or letter in " -").replace(" ", "-")
    return f"[{heading}](#{place})"


def _behind_elsewhere(cell: Cell) -> bool:
    """Return whether a cell is more than a point below the number of the method's own authors."""
    return not nearly(_less(cell))


def _less(cell: Cell) -> float:
    """Return our mean less that of the method's own authors; 0 where one is missing."""
    return 0.0 if cell.mean is None or cell.elsewhere is None else cell.mean - cell.elsewhere


def _counted(judged: Sequence[Verdict]) -> str:
    """Return verdicts as a table, and the number of them that hold."""
    if not judged:
        return "None yet."
    held, failed = (sum(verdict.holds is value for verdict in judged) for value in (True, False))
    unknown = len(judged) - held - failed
    counts = f"Of {len(judged)}, {held} hold and {failed} do not" + (f"; {unknown} are open." if unknown else ".")
    return f"{counts}\n\n{verdict_lines(judged)}"


def _shortfalls(cells: Sequence[Cell]) -> str:
    """Return a table of all cells lower than published here or elsewhere, with their remarks; equal numbers once.

    Counts are left out: another number of edges is another definition, not a shortfall.
    """
    lines: dict[tuple[object, ...], str] = {}
    for cell in cells:
        elsewhere = _behind_elsewhere(cell)
        if cell.measure in COUNTS or not (cell.outcome == "lower" or elsewhere):
            continue
        ours = f"{cell.mean:.2f}" if cell.measure == "accuracy" else number(cell.measure, cell.mean)
        where = TITLES.get(cell.experiment.split("-")[0], cell.experiment).split(":")[0]
        named, less = published(cell), difference(cell)
        if elsewhere:
            named, less = f"{number(cell.measure, cell.elsewhere)} elsewhere", f"{_less(cell):+.2f}"
        lines.setdefault(
            (cell.graph, cell.measure, cell.mean, named),
            f"| {where} | {cell.row} | {title(cell.graph)} | {named} | {ours} | {less} | {cell.remark or ''} |",
        )
    if not lines:
        return "Nowhere, among the cells that were run."
    head = ["| where | row | graph | published | ours | difference | best explanation found |"]
    head.append("|---|---|---|--:|--:|--:|---|")
    return "\n".join(["And wherever a finding above does not hold.\n", *head, *lines.values()])


def _machines(cells: Sequence[Cell]) -> str:
    machines = dict.fromkeys(cell.device for cell in cells if cell.device and cell.device not in ("cpu", "cuda"))
    versions = dict.fromkeys(cell.version for cell in cells if cell.version)
    if not machines:
        return ""
    named = "; ".join(map(str, machines)).replace(", 1 threads", ", 1 thread")  # as journals have it
    return f"Measured on {named}; graphpartner {', '.join(map(str, versions))}."


def in_short(table1: Sequence[Cell], judged: Sequence[Verdict]) -> str:
    """Summarise Table 1 (our accuracies, published ones, the best baseline) and the number of findings that hold."""
    lines = []
    ours = [cell for cell in table1 if cell.method == "gpnn" and cell.mean is not None]
    others = [cell for cell in table1 if cell.method != "gpnn" and cell.mean is not None]
    if ours:
        lines.append(_table(ours, others))
    reached = [
        cell.outcome in ("holds", "higher") for cell in ours if cell.row == PAPER_ROW and cell.published is not None
    ]
    if reached:
        lines.append(
            f"- The paper's method alone reaches the published number on {sum(reached)} of {len(reached)} graphs."
        )
    ahead = [verdict.holds is True for verdict in judged if verdict.finding.startswith(AHEAD_OF_ALL)]
    if ahead:
        lines.append(
            f"- GPNN (best), which goes beyond the paper, is ahead of every baseline on {sum(ahead)} of {len(ahead)} "
            "graphs by a paired test."
        )
    near = [nearly(cell.difference) for cell in others if cell.difference is not None]
    if near:
        lines.append(
            f"- The paper's baselines reach its numbers, or come within {NEAR:g} point, in {sum(near)} of {len(near)} "
            "cells of Table 1."
        )
    settled = [verdict for verdict in judged if not verdict.ours and verdict.holds is not None]
    for name, part in (
        ("findings of the paper's experiments", [verdict for verdict in settled if verdict.target != "bounds"]),
        ("cases of its two propositions", [verdict for verdict in settled if verdict.target == "bounds"]),
    ):
        if part:
            lines.append(f"- Of {len(part)} {name} {sum(verdict.holds is True for verdict in part)} hold.")
    return "\n".join(lines)


def _table(ours: Sequence[Cell], others: Sequence[Cell]) -> str:
    """Return GPNN's rows with their differences from the published numbers, and the best baseline per graph."""
    graphs = graphs_of(ours)
    lines = ["| test accuracy, % | " + " | ".join(title(graph) for graph in graphs) + " |"]
    lines.append("|---|" + "---|" * len(graphs))
    for row in dict.fromkeys(cell.row for cell in ours):
        lines.append(f"| {row} | " + " | ".join(_beside(find_cell(ours, row, graph)) for graph in graphs) + " |")
    lines.append("| best baseline | " + " | ".join(_highest(others, graph) for graph in graphs) + " |")
    return "\n".join([*lines, "", "In parentheses: less the published number.", ""])


def _beside(cell: Cell | None) -> str:
    if cell is None or cell.mean is None:
        return ""
    return f"**{cell.mean:.1f}**{mark(cell)}" + (f" ({cell.difference:+.1f})" if cell.difference is not None else "")


def _highest(cells: Sequence[Cell], graph: str) -> str:
    own = [cell for cell in cells if cell.graph == graph]
    if not own:
        return ""
    best = max(own, key=lambda cell: cell.mean or 0.0)
    return f"{best.mean:.1f} {best.row}"
