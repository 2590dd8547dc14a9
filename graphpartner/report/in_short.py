"""The results page in a few lines: GPNN beside the published numbers and the best of all others."""

from collections.abc import Sequence

from graphpartner.experiments.cells import Cell
from graphpartner.experiments.table_findings import AHEAD_OF_ALL, NEAR, PAPER_ROW, nearly
from graphpartner.experiments.verdict import Verdict, find, graphs_of
from graphpartner.graph.catalogue import title
from graphpartner.report.reproduction import mark


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
        lines.append(f"| {row} | " + " | ".join(_beside(find(ours, row, graph)) for graph in graphs) + " |")
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
