"""The results page: everything that ``gpnn reproduce`` measured, from its files alone."""

import os
from collections.abc import Sequence
from pathlib import Path

from graphpartner.experiments.cells import Cell
from graphpartner.experiments.files import TARGETS
from graphpartner.experiments.reproduce import read_results
from graphpartner.experiments.table_findings import NEAR
from graphpartner.experiments.verdicts import verdicts
from graphpartner.graph.packed import write_atomically
from graphpartner.report.alt_texts import alt_text
from graphpartner.report.curves import FIGURES, draw
from graphpartner.report.reproduction import RULE, difference, markdown, number, published, title, verdict_lines

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
    text = f"# {TITLES[target]}\n\n{target_text(target, cells)}\n"
    write_atomically(folder / f"{target}.md", text.encode())
    draw(target, cells, folder)


CHOSEN = (
    "GPNN's settings come from `gpnn search` and `scripts/generations.py`, on validation nodes alone, unless a preset "
    "says otherwise. The rule of the search, likelihood where accuracies are too close to tell, was settled after a "
    "comparison with test accuracy on Cora and CiteSeer; the other graphs had no part in it."
)
FINDINGS, SHORTFALLS = "The paper's findings", "Where we fall short of the paper"
PREVIEW = "A preview: few runs, few epochs, small grids, on the built-in graph alone. Nothing here is a result."


def write_results_page(folder: Path, page: Path, preview: bool = False) -> None:
    """Write the whole page from the results files of a folder."""
    page.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(page, results_page(folder, page, preview).encode())


def results_page(folder: Path, page: Path, preview: bool = False) -> str:
    """The page as text; its figures are linked from where the page lies."""
    results = read_results(folder)
    there = [target for target in TARGETS if target in results]
    found = verdicts(results)
    everything = [cell for cells in results.values() for cell in cells]
    parts = [
        "# Results",
        PREVIEW if preview else "",
        "Written by `gpnn reproduce` from the files under `results/`; no cell of a table is typed. Accuracies are in "
        "percent, mean ± standard deviation over the runs counted in parentheses; lines in figures are means over "
        "runs, bands one standard deviation. † marks settings that were picked with a look at test accuracy: such a "
        "row shows what the method can do, not what a fair selection finds.",
        CHOSEN,
        _machines(everything),
        RULE,
        " · ".join(_link(heading) for heading in (FINDINGS, SHORTFALLS, *(TITLES[target] for target in there))),
        f"## {FINDINGS}",
        verdict_lines(found) if found else "None yet.",
        f"## {SHORTFALLS}",
        _shortfalls(everything),
    ]
    for target in there:
        parts.append(f"## {TITLES[target]}")
        parts.append(target_text(target, results[target]))
        figure = folder / f"{target}.svg"
        if target in FIGURES and figure.exists():
            seen = alt_text(target, results[target])
            parts.append(f"![{seen}]({Path(os.path.relpath(figure, page.parent)).as_posix()})")
    return "\n\n".join(part for part in parts if part) + "\n"


def target_text(target: str, cells: Sequence[Cell]) -> str:
    """A target's tables, sources and remarks."""
    parts = [markdown(cells)]
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
    return cell.mean is not None and cell.elsewhere is not None and cell.mean < cell.elsewhere - NEAR


def _shortfalls(cells: Sequence[Cell]) -> str:
    """Every cell that is lower than published, by how much, with its remark."""
    lines = [
        "| target | row | graph | paper | ours | difference | best explanation found |",
        "|---|---|---|--:|--:|--:|---|",
    ]
    for cell in cells:
        if cell.outcome == "lower":
            ours = f"{cell.mean:.2f}" if cell.measure == "accuracy" else number(cell.measure, cell.mean)
            target = cell.experiment.split("-")[0]
            lines.append(
                f"| {target} | {cell.row} | {title(cell.graph)} | {published(cell)} | {ours} | {difference(cell)} | "
                f"{cell.remark or ''} |"
            )
    return "\n".join(lines) if len(lines) > 2 else "Nowhere, among what has been run."


def _machines(cells: Sequence[Cell]) -> str:
    machines = dict.fromkeys(cell.device for cell in cells if cell.device and cell.device not in ("cpu", "cuda"))
    versions = dict.fromkeys(cell.version for cell in cells if cell.version)
    if not machines:
        return ""
    return f"Measured on {'; '.join(map(str, machines))}; graphpartner {', '.join(map(str, versions))}."
