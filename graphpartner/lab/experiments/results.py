"""Cells: what a table or figure is made of, a published number beside the mean of our runs."""

import dataclasses
import itertools
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from graphpartner.lab.experiments.experiment import Experiment, Number, Real
from graphpartner.lab.experiments.journal import Line
from graphpartner.system.errors import InputError
from graphpartner.system.files import write_atomically
from graphpartner.system.schema import check_json

NOT_RUN = "not run"


@dataclass(frozen=True)
class Cell:
    """One measure of one row on one graph at one point of the grid.

    Attributes:
        experiment: the file it comes from.
        row: what is compared, by the name the file gives it.
        method: ``gpnn`` or another.
        graph: by name.
        measure: what ``mean`` is of; accuracies and rates in percent.
        at: the varied values, e.g. ``{"steps": 8}``; and ``layer`` where a run has one value a layer.
        mean: of our runs; None where there are none, and ``reason`` says why.
        sd: standard deviation over runs, None for a single one.
        runs: how many.
        published: the paper's mean.
        published_sd: as printed.
        source: where it is printed.
        elsewhere: another source's mean, e.g. the method's own authors'.
        elsewhere_sd: as printed there.
        elsewhere_source: which that is.
        seeds: of the runs.
        values: of the runs, in the order of the seeds.
        preset: the family of presets, with ``, changed`` where settings differ from it.
        saw_test: whether test accuracy was looked at when the preset was chosen.
        version: of the package.
        device: the machine.
        outcome: ``holds``, ``higher`` or ``lower`` than published; empty where there is nothing to compare.
        reason: why it is empty.
        remark: the best explanation found of a difference.
        detail: what is drawn and not averaged.
    """

    experiment: str
    row: str
    method: str
    graph: str
    measure: str
    at: dict[str, Real] = field(default_factory=dict)
    mean: Real | None = None
    sd: Real | None = None
    runs: int = 0
    published: Real | None = None
    published_sd: Real | None = None
    source: str | None = None
    elsewhere: Real | None = None
    elsewhere_sd: Real | None = None
    elsewhere_source: str | None = None
    seeds: list[int] = field(default_factory=list)
    values: list[Real] = field(default_factory=list)
    preset: str | None = None
    saw_test: bool = False
    version: str | None = None
    device: str | None = None
    outcome: str = ""
    reason: str | None = None
    remark: str | None = None
    detail: Any = None

    @property
    def place(self) -> tuple[Any, ...]:
        """What tells it from the other cells of its target."""
        return self.experiment, self.row, self.graph, self.measure, *sorted(self.at.items())

    @property
    def standard_error(self) -> float:
        """Of the mean; 0 for a single run."""
        return (self.sd or 0.0) / math.sqrt(max(1, self.runs))

    @property
    def difference(self) -> float | None:
        """Ours less the published."""
        return None if self.mean is None or self.published is None else self.mean - self.published


def cells_of(
    experiment: Experiment,
    name: str,
    graph: str,
    at: dict[str, float],
    lines: Sequence[Line],
    reason: str | None = None,
    preset: str | None = None,
    saw_test: bool = False,
) -> list[Cell]:
    """The cells of one row on one graph at one point of the grid, from the lines of its runs."""
    row = experiment.rows[name]
    made = []
    for measure in row.measures:
        published, published_sd = _number(experiment.published, name, measure, graph)
        elsewhere, elsewhere_sd = _number(experiment.elsewhere, name, measure, graph)
        cell = Cell(
            experiment=experiment.name,
            row=name,
            method=row.method,
            graph=graph,
            measure=measure,
            at=at,
            published=published,
            published_sd=published_sd,
            source=None if published is None else experiment.source,
            elsewhere=elsewhere,
            elsewhere_sd=elsewhere_sd,
            elsewhere_source=None if elsewhere is None else experiment.elsewhere_source,
            seeds=[line["seed"] for line in lines],
            preset=preset,
            saw_test=saw_test,
            version=", ".join(dict.fromkeys(line["version"] for line in lines)) or None,
            device=", ".join(dict.fromkeys(str(line.get("machine", line["device"])) for line in lines)) or None,
            reason=reason,
            remark=experiment.remarks.get(graph, experiment.remarks.get("all")),
        )
        found = [line["measured"][measure] for line in lines]
        if measure == "picture":
            made.append(dataclasses.replace(cell, detail=next((each for each in found if each is not None), None)))
        elif found and isinstance(found[0], list):  # one value a layer
            made += [
                filled(dataclasses.replace(cell, at=at | {"layer": layer}), values, experiment)
                for layer, values in enumerate(zip(*found, strict=True), start=1)
            ]
        else:
            made.append(filled(cell, found, experiment))
    return made


def filled(cell: Cell, values: Iterable[float | None], experiment: Experiment) -> Cell:
    """The cell with the mean of these values; a run whose value is not a number makes the cell empty, and says so."""
    numbers = list(values)
    known = [value for value in numbers if value is not None]
    if not numbers:
        return cell
    if len(known) < len(numbers):
        return dataclasses.replace(cell, reason=f"{len(numbers) - len(known)} of {len(numbers)} runs gave no number")
    sd = stdev(known) if len(known) > 1 else None
    cell = dataclasses.replace(cell, mean=fmean(known), sd=sd, runs=len(known), values=known)
    return dataclasses.replace(cell, outcome=outcome(cell, experiment))


def outcome(cell: Cell, experiment: Experiment) -> str:
    """Whether our mean holds the published one.

    ``holds``: within the file's tolerance, or equal in the digits that are printed, or else within two standard errors
    of our mean (and 0.05, what rounding hides). Seconds, measured on another machine, are not judged.
    """
    if cell.difference is None or cell.measure in ("seconds", "peak_memory"):
        return ""
    digits = experiment.digits.get(cell.measure)
    if digits is not None:
        unit = 10.0**-digits
        same = -unit / 2 - 1e-9 <= cell.difference < unit - 1e-9  # rounded, or cut off: Cora's new rate is 90.15
    else:
        allowed = experiment.tolerance if experiment.tolerance is not None else max(2 * cell.standard_error, 0.05)
        same = abs(cell.difference) <= allowed
    if same:
        return "holds"
    return "higher" if cell.difference > 0 else "lower"


def grid(vary: dict[str, list[float]]) -> list[dict[str, float]]:
    """All combinations of the varied values; one empty point where nothing is varied."""
    return [dict(zip(vary, point, strict=True)) for point in itertools.product(*vary.values())]


def merged(old: list[Cell], new: list[Cell], places: Sequence[tuple[Any, ...]]) -> list[Cell]:
    """New cells in place of old ones; one that could not be run does not replace one with numbers.

    One that has never been run does: the old numbers are of other settings. Nor does one of fewer of the same runs. Old
    cells that were not asked for this time stay, as long as their experiment still has them; all are in the order of
    ``places``, which name no layer.
    """
    order = {place: number for number, place in enumerate(places)}
    kept = {base: cells for base, cells in _by_base(old).items() if base in order}
    for base, cells in _by_base(new).items():
        before = kept.get(base, [])
        never = any(cell.reason == NOT_RUN for cell in cells)
        if never or not _has_data(before) or (_has_data(cells) and not _part_of(cells, before)):
            kept[base] = cells
    return [cell for base in sorted(kept, key=lambda base: order[base]) for cell in kept[base]]


def _by_base(cells: Iterable[Cell]) -> dict[tuple[Any, ...], list[Cell]]:
    """Cells that are made and replaced together: all layers of one measure, and every other cell by itself."""
    found: dict[tuple[Any, ...], list[Cell]] = {}
    for cell in cells:
        at = {name: value for name, value in cell.at.items() if name != "layer"}
        found.setdefault(dataclasses.replace(cell, at=at).place, []).append(cell)
    return found


def _has_data(cells: Iterable[Cell]) -> bool:
    return any(cell.mean is not None or cell.detail is not None for cell in cells)


def _part_of(cells: Iterable[Cell], others: Iterable[Cell]) -> bool:
    """Whether these are of fewer of the same runs."""
    places = {cell.place: cell for cell in others}
    for cell in cells:
        other = places.get(cell.place)
        whole = dict(zip(other.seeds, other.values, strict=False)) if other is not None else {}
        part = dict(zip(cell.seeds, cell.values, strict=False))
        if not part or len(part) >= len(whole) or not part.items() <= whole.items():
            return False
    return True


def read_cells(path: Path) -> list[Cell]:
    """Return the cells of a results file; none where there is no file."""
    if not path.exists():
        return []
    try:
        return check_json(list[Cell], path.read_bytes(), path)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); move it away") from None
    except InputError as error:
        raise InputError(f"{error}; delete the file to have it written again") from None


def write_cells(path: Path, cells: list[Cell]) -> None:
    """Write a results file, one cell a line."""
    lines = [json.dumps(dataclasses.asdict(cell), ensure_ascii=False) for cell in cells]
    write_atomically(path, ("[\n" + ",\n".join(lines) + "\n]\n").encode())


def _number(numbers: dict[str, dict[str, dict[str, Number]]], row: str, measure: str, graph: str) -> tuple[Any, Any]:
    found = numbers.get(row, {}).get(measure, {}).get(graph)
    if isinstance(found, list):
        return found[0], found[1]
    return found, None


def find_cell(cells: Sequence[Cell], row: str, graph: str, measure: str = "accuracy") -> Cell | None:
    """Return the cell of a row on a graph that has a mean."""
    for cell in cells:
        if (cell.row, cell.graph, cell.measure) == (row, graph, measure) and cell.mean is not None:
            return cell
    return None


def curve(cells: Sequence[Cell], row: str, graph: str, measure: str = "accuracy", over: str = "steps") -> list[Cell]:
    """Return the cells of a row over a varied value, in its order."""
    own = [
        cell
        for cell in cells
        if (cell.row, cell.graph, cell.measure) == (row, graph, measure) and cell.mean is not None and over in cell.at
    ]
    return sorted(own, key=lambda cell: cell.at[over])


def means(cells: Sequence[Cell]) -> list[float]:
    """Return the means of the cells that have one."""
    return [cell.mean for cell in cells if cell.mean is not None]


def graphs_of(cells: Sequence[Cell]) -> list[str]:
    """Return the graphs that have a mean, in the order of the cells."""
    return list(dict.fromkeys(cell.graph for cell in cells if cell.mean is not None))
