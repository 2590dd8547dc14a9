"""A verdict: whether a finding holds, and by which numbers; and the paired comparison most of them rest on."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import NamedTuple

from graphpartner.lab.experiments.results import Cell

SIGNIFICANT = 0.05  # a difference counts as more than chance below this p
ENOUGH = 3  # pairs of runs; of two nobody can tell a difference from chance


@dataclass(frozen=True)
class Verdict:
    """A finding, judged.

    Attributes:
        target: the table or figure behind it.
        finding: what is claimed.
        rule: when it holds.
        holds: None where the data behind it is not there.
        numbers: those it follows from, in words.
        ours: whether it is this project's claim rather than the paper's.
    """

    target: str
    finding: str
    rule: str
    holds: bool | None
    numbers: str
    ours: bool = False


class Paired(NamedTuple):
    """The difference of two rows over runs with the same seed, hence the same split."""

    mean: float
    p: float
    """Of a two-sided t-test that the mean is zero."""
    pairs: int

    @property
    def ahead(self) -> bool:
        """Whether the first is ahead by more than chance."""
        return self.mean > 0 and self.p < SIGNIFICANT

    def __str__(self) -> str:
        return f"{self.mean:+.2f} (p = {self.p:.2g}, {self.pairs} pairs)"


def paired(first: Sequence[Cell], second: Sequence[Cell]) -> Paired | None:
    """Differences of cells that belong together, seed by seed; None with too few to tell."""
    differences = []
    for a, b in zip(first, second, strict=True):
        other = dict(zip(b.seeds, b.values, strict=False))
        differences += [value - other[seed] for seed, value in zip(a.seeds, a.values, strict=False) if seed in other]
    if len(differences) < ENOUGH:
        return None
    if stdev(differences) == 0:
        return Paired(differences[0], 1.0 if differences[0] == 0 else 0.0, len(differences))
    from scipy import stats

    p = float(stats.ttest_1samp(differences, 0.0).pvalue)
    return Paired(fmean(differences), p, len(differences))


def find_cell(cells: Sequence[Cell], row: str, graph: str, measure: str = "accuracy") -> Cell | None:
    """The cell of a row on a graph that has a mean."""
    for cell in cells:
        if (cell.row, cell.graph, cell.measure) == (row, graph, measure) and cell.mean is not None:
            return cell
    return None


def curve(cells: Sequence[Cell], row: str, graph: str, measure: str = "accuracy", over: str = "steps") -> list[Cell]:
    """The cells of a row along a varied value, in its order."""
    found = [
        cell
        for cell in cells
        if (cell.row, cell.graph, cell.measure) == (row, graph, measure) and cell.mean is not None and over in cell.at
    ]
    return sorted(found, key=lambda cell: cell.at[over])


def means(cells: Sequence[Cell]) -> list[float]:
    """The means of cells that have one."""
    return [cell.mean for cell in cells if cell.mean is not None]


def graphs_of(cells: Sequence[Cell]) -> list[str]:
    """The graphs that have a number, in the order they come."""
    return list(dict.fromkeys(cell.graph for cell in cells if cell.mean is not None))
