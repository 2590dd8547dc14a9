"""Make, merge, query, read and write cells: a published number each, beside the mean of our runs."""

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
        row: name of the row in the file.
        method: of the row.
        graph: by name.
        measure: name of the measure; accuracies and rates are in percent.
        at: the varied values, e.g. ``{"steps": 8}``; and ``layer`` where a run has one value per layer.
        mean: over our runs; None where there are none, and ``reason`` says why.
        sd: standard deviation over runs, None for a single one.
        runs: number of runs.
        published: the paper's mean.
        published_sd: as printed.
        source: where it is printed.
        elsewhere: another source's mean, e.g. that of the method's own authors.
        elsewhere_sd: as printed there.
        elsewhere_source: where it is printed.
        seeds: of the runs.
        values: of the runs, in the order of the seeds.
        preset: the family of presets, with ``, changed`` where settings differ from it.
        saw_test: whether the preset was chosen with a look at test accuracy.
        version: of the package.
        device: the machine.
        outcome: ``holds``, ``higher`` or ``lower`` than published; empty without a published number.
        reason: why the cell is empty.
        remark: the best explanation of a difference.
        detail: data of a picture.
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
        """What identifies the cell among those of its target."""
        return self.experiment, self.row, self.graph, self.measure, *sorted(self.at.items())

    @property
    def standard_error(self) -> float:
        """Standard error of the mean; 0 for a single run."""
        return (self.sd or 0.0) / math.sqrt(max(1, self.runs))

    @property
    def difference(self) -> float | None:
        """Our mean less the published one."""
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
    """Return the cells of one row on one graph at one point of the grid, from the lines of its runs."""
    row = experiment.rows[name]
    cells: list[Cell] = []
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
        values = [line["measured"][measure] for line in lines]
        if measure == "picture":
            cells.append(dataclasses.replace(cell, detail=next((value for value in values if value), None)))
        elif values and isinstance(values[0], list):  # one value per layer
            cells += [
                filled(dataclasses.replace(cell, at=at | {"layer": layer}), of_layer, experiment)
                for layer, of_layer in enumerate(zip(*values, strict=True), start=1)
            ]
        else:
            cells.append(filled(cell, values, experiment))
    return cells


def filled(cell: Cell, values: Iterable[float | None], experiment: Experiment) -> Cell:
    """Return a cell with the mean of these values; a missing value leaves it empty, and becomes its reason."""
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
    """Compare our mean with the published one.

    ``holds``: equal in the digits printed, where the file gives their number; else within the file's tolerance; else
    within two standard errors of our mean, 0.05 at least (rounding). Seconds, of another machine, are not judged.
    """
    if cell.difference is None or cell.measure in ("seconds", "peak_memory"):
        return ""
    digits = experiment.digits.get(cell.measure)
    if digits is not None:
        unit = 10.0**-digits
        same = -unit / 2 - 1e-9 <= cell.difference < unit - 1e-9  # rounded or truncated: Cora's new rate is 90.15
    else:
        allowed = experiment.tolerance if experiment.tolerance is not None else max(2 * cell.standard_error, 0.05)
        same = abs(cell.difference) <= allowed
    if same:
        return "holds"
    return "higher" if cell.difference > 0 else "lower"


def grid(vary: dict[str, list[float]]) -> list[dict[str, float]]:
    """Return all combinations of the varied values; one empty point where nothing is varied."""
    return [dict(zip(vary, point, strict=True)) for point in itertools.product(*vary.values())]


def merged(old: list[Cell], new: list[Cell], places: Sequence[tuple[Any, ...]]) -> list[Cell]:
    """Replace old cells by new ones, in the order of ``places``, which name no layer.

    An old cell with numbers stays if the new one could not be run, or has a part of the same runs; not if the new one
    was never run, because then the old numbers are of other settings. Old cells without a new one stay as long as their
    experiment still has them.
    """
    order = {place: number for number, place in enumerate(places)}
    result = {base: cells for base, cells in _by_base(old).items() if base in order}
    for base, cells in _by_base(new).items():
        before = result.get(base, [])
        never_run = any(cell.reason == NOT_RUN for cell in cells)
        if never_run or not _has_data(before) or (_has_data(cells) and not _part_of(cells, before)):
            result[base] = cells
    return [cell for base in sorted(result, key=lambda base: order[base]) for cell in result[base]]


def _by_base(cells: Iterable[Cell]) -> dict[tuple[Any, ...], list[Cell]]:
    """Group cells that are replaced together: all layers of one measure, and every other cell by itself."""
    groups: dict[tuple[Any, ...], list[Cell]] = {}
    for cell in cells:
        at = {name: value for name, value in cell.at.items() if name != "layer"}
        groups.setdefault(dataclasses.replace(cell, at=at).place, []).append(cell)
    return groups


def _has_data(cells: Iterable[Cell]) -> bool:
    return any(cell.mean is not None or cell.detail is not None for cell in cells)


def _part_of(cells: Iterable[Cell], others: Iterable[Cell]) -> bool:
    """Return whether cells are of a part of the runs of others."""
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
    """Write a results file, one cell per line."""
    lines = [json.dumps(dataclasses.asdict(cell), ensure_ascii=False) for cell in cells]
    write_atomically(path, ("[\n" + ",\n".join(lines) + "\n]\n").encode())


def _number(numbers: dict[str, dict[str, dict[str, Number]]], row: str, measure: str, graph: str) -> tuple[Any, Any]:
    number = numbers.get(row, {}).get(measure, {}).get(graph)
    return (number[0], number[1]) if isinstance(number, list) else (number, None)


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
