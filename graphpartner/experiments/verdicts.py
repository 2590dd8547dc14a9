"""All verdicts that the results at hand allow."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from graphpartner.experiments import depth_findings, table_findings
from graphpartner.experiments.cells import Cell
from graphpartner.experiments.verdict import Verdict
from graphpartner.graph.packed import write_atomically

FINDINGS: dict[str, Callable[[Sequence[Cell]], Iterator[Verdict]]] = {
    "table1": table_findings.table1,
    "table3": table_findings.table3,
    "table4": table_findings.table4,
    "fig1": depth_findings.fig1,
    "fig3": depth_findings.fig3,
    "fig4": depth_findings.fig4,
    "fig5": depth_findings.fig5,
    "bounds": table_findings.bounds,
    "scores": table_findings.scores,
    "beyond": table_findings.beyond,
}
"""What each target says, as a function of its cells."""


def verdicts(results: Mapping[str, Sequence[Cell]]) -> list[Verdict]:
    """The verdicts on every finding whose data is there."""
    return [verdict for target, judge in FINDINGS.items() if target in results for verdict in judge(results[target])]


def write_verdicts(path: Path, found: list[Verdict]) -> None:
    """Write them as JSON."""
    text = json.dumps([asdict(verdict) for verdict in found], indent=1, ensure_ascii=False)
    write_atomically(path, f"{text}\n".encode())
