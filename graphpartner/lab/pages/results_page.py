"""The results page: everything that ``gpnn reproduce`` measured, from its files alone.

The results page in a few lines: GPNN beside the published numbers and the best of all others.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from graphpartner.graph.catalogue import title
from graphpartner.lab.experiments.findings import AHEAD_OF_ALL, NEAR, PAPER_ROW, nearly, verdicts
from graphpartner.lab.experiments.reproduce import read_results
from graphpartner.lab.experiments.results import Cell
from graphpartner.lab.experiments.schema import TARGETS
from graphpartner.lab.experiments.verdict import Verdict, find_cell, graphs_of
from graphpartner.lab.pages.alt_texts import alt_text
from graphpartner.lab.pages.comparison import COUNTS, RULE, difference, mark, markdown, number, published, verdict_lines
from graphpartner.lab.pages.result_figures import FIGURES, draw
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


def write_target(target: str, cells: Sequence[Cell], folder: Path) -> None:
    """Write a target's tables as Markdown and its figure as SVG and PNG beside its JSON file."""
    text = f"# {TITLES[target]}\n\n{target_text(cells)}\n"
    write_atomically(folder / f"{target}.md", text.encode())
    draw(target, cells, folder)


CHOSEN = (
    "GPNN's settings come from `gpnn search`, on validation nodes alone, unless a preset "
    "says otherwise. The rule of the search, likelihood where accuracies are too close to tell, was settled after a "
    "comparison with test accuracy on Cora and CiteSeer; the other graphs had no part in it. Where all splits are "
    "random, no run of a search sees a label of its own split's test nodes, but a node that one split validates on is "
    "a test node of others. Most presets were searched again when the test accuracy of an earlier winner was known; "
    "validation chose each of them. Baselines have their authors' settings where these serve, otherwise the best of a "
    "search on validation nodes, most often of 2 to 50 configurations where GPNN had 48 to 276."
)
FINDINGS, SHORTFALLS, CLAIMS = "The paper's findings", "Where we fall short", "What we claim ourselves"
PREVIEW = (
    "A preview: two runs of a cell, cut short where they take long, small grids and ensembles, on the built-in graph "
    "alone. Nothing here is a result, and two runs seldom tell more than chance."
)


def write_results_page(folder: Path, page: Path, preview: bool = False) -> None:
    """Write the whole page from the results files of a folder."""
    page.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(page, results_page(folder, page, preview).encode())


def results_page(folder: Path, page: Path, preview: bool = False) -> str:
    """The page as text; its figures are linked from where the page lies."""
    results = read_results(folder)
    there = [target for target in TARGETS if target in results]
    found = verdicts(results)
    of_paper, ours = ([verdict for verdict in found if verdict.ours == own] for own in (False, True))
    everything = [cell for cells in results.values() for cell in cells]
    parts = [
        "# Results",
        PREVIEW if preview else "",
        in_short(results.get("table1", []), found),
        " · ".join(_link(heading) for heading in (FINDINGS, SHORTFALLS, *(TITLES[target] for target in there), CLAIMS)),
        "Written by `gpnn reproduce` from the files under `results/`; no cell of a table is typed. Accuracies are in "
        "percent, mean ± standard deviation over the runs counted in parentheses; lines in figures are means over "
        "runs, bands one standard deviation. † marks settings that were picked with a look at test accuracy and have "
        "won no search on validation nodes since: such a row shows what the method can do, not what a fair selection "
        "finds.",
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
            seen = alt_text(target, results[target])
            parts.append(f"![{seen}]({quote(Path(os.path.relpath(figure, page.parent)).as_posix())})")
            if target != "table1":  # whose numbers are what people come for
                tables = f"<details><summary>The numbers behind the figure</summary>\n\n{tables}\n\n</details>"
        parts += [tables, _notes(results[target])]
    parts += [f"## {CLAIMS}", _counted(ours)]
    return "\n\n".join(part for part in parts if part) + "\n"


def target_text(cells: Sequence[Cell]) -> str:
    """A target's tables, sources and remarks."""
    return "\n\n".join(part for part in (markdown(cells), _notes(cells)) if part)


def _notes(cells: Sequence[Cell]) -> str:
    """Sources and remarks."""
    parts = []
    sources = dict.fromkeys(cell.source for cell in cells if cell.source)
    elsewhere = dict.fromkeys((cell.row, cell.elsewhere_source) for cell in cells if cell.elsewhere_source)
    if sources:
        parts.append(f"Published: {'; '.join(str(source) for source in sources)}.")
    if elsewhere:
        parts.append("Elsewhere:\n\n" + "\n".join(f"- {row}: {source}." for row, source in elsewhere))
    several = len({cell.experiment for cell in cells}) > 1  # whose remark is it?
    grouped: dict[str, dict[str, None]] = {}
    for cell in cells:
        if cell.remark and (cell.outcome != "holds" or _behind_elsewhere(cell)):
            about = f"{cell.row} on {title(cell.graph)}" if several else title(cell.graph)
            grouped.setdefault(cell.remark, {})[about] = None
    if grouped:
        parts.append("\n".join(f"- {', '.join(about)}: {remark}" for remark, about in grouped.items()))
    return "\n\n".join(parts)


def _link(heading: str) -> str:
    """A link to a heading of the page, as GitHub names its place."""
    place = "".join(letter for letter in heading.lower() if letter.isalnum() or letter in " -").replace(" ", "-")
    return f"[{heading}](#{place})"


def _behind_elsewhere(cell: Cell) -> bool:
    """Whether it is more than a point below what the method's own authors print."""
    return not nearly(_less(cell))


def _less(cell: Cell) -> float:
    """Our mean less that of its own authors; 0 where one is missing."""
    return 0.0 if cell.mean is None or cell.elsewhere is None else cell.mean - cell.elsewhere


def _counted(found: Sequence[Verdict]) -> str:
    """Verdicts, and how many of them hold."""
    if not found:
        return "None yet."
    held, failed = (sum(verdict.holds is each for verdict in found) for each in (True, False))
    unknown = len(found) - held - failed
    counts = f"Of {len(found)}, {held} hold and {failed} do not" + (f"; {unknown} are open." if unknown else ".")
    return f"{counts}\n\n{verdict_lines(found)}"


def _shortfalls(cells: Sequence[Cell]) -> str:
    """Every cell lower than published, or than its own authors print, with its remark; the same numbers once.

    Counts are not among them: another number of edges is another definition, not less of anything.
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
        return "Nowhere, among what has been run."
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


def in_short(table1: Sequence[Cell], found: Sequence[Verdict]) -> str:
    """Accuracies of Table 1 less the published ones, who else is best, and how many findings hold."""
    told = []
    ours = [cell for cell in table1 if cell.method == "gpnn" and cell.mean is not None]
    others = [cell for cell in table1 if cell.method != "gpnn" and cell.mean is not None]
    if ours:
        told.append(_table(ours, others))
    alone = [
        cell.outcome in ("holds", "higher") for cell in ours if cell.row == PAPER_ROW and cell.published is not None
    ]
    if alone:
        told.append(f"- The paper's method alone reaches the published number on {sum(alone)} of {len(alone)} graphs.")
    ahead = [verdict.holds is True for verdict in found if verdict.finding.startswith(AHEAD_OF_ALL)]
    if ahead:
        told.append(
            f"- GPNN (best), which goes beyond the paper, is ahead of every baseline on {sum(ahead)} of {len(ahead)} "
            "graphs by a paired test."
        )
    near = [nearly(cell.difference) for cell in others if cell.difference is not None]
    if near:
        told.append(
            f"- The paper's baselines reach its numbers, or come within {NEAR:g} point, in {sum(near)} of {len(near)} "
            "cells of Table 1."
        )
    judged = [verdict for verdict in found if not verdict.ours and verdict.holds is not None]
    for name, part in (
        ("findings of the paper's experiments", [verdict for verdict in judged if verdict.target != "bounds"]),
        ("cases of its two propositions", [verdict for verdict in judged if verdict.target == "bounds"]),
    ):
        if part:
            told.append(f"- Of {len(part)} {name} {sum(verdict.holds is True for verdict in part)} hold.")
    return "\n".join(told)


def _table(ours: Sequence[Cell], others: Sequence[Cell]) -> str:
    """GPNN's rows with the difference to the published number, and the best baseline, graph by graph."""
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
