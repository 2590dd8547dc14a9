"""Read experiments: what is run and what was published, side by side in one YAML file each.

An experiment compares **rows** (a method with its settings) on **graphs**, possibly over a grid of values that **vary**
(propagation steps, α). One measure of one row on one graph at one point of the grid is a cell: the mean of a number of
runs beside the published number.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from graphpartner.graph.catalogue import CATALOGUE
from graphpartner.system.errors import InputError
from graphpartner.system.schema import check_content, read_yaml

FOLDER = Path(__file__).parent
Target = Literal["table1", "table2", "table3", "table4", "fig1", "fig3", "fig4", "fig5", "bounds", "scores", "beyond"]
TARGETS: tuple[str, ...] = get_args(Target)
"""What ``gpnn reproduce`` takes, in the order of the results page."""

Real = int | float
"""A number that stays whole where it is written whole: it may become a setting."""
Number = Real | list[Real]
"""A mean, or [mean, standard deviation]."""


@dataclass(frozen=True)
class Row:
    """One of the things compared.

    Attributes:
        method: ``gpnn``, a baseline, or a measurement of the graph without training (``statistics``, ``edge-quality``).
        preset: the family of presets that GPNN's settings come from.
        changes: settings that differ from those of the preset or of the baseline.
        members: number of runs averaged to one ensemble; 1 for single runs.
        runs: per cell of this row, where it differs from the experiment's number.
        timing: ``alone``: each run by itself, timed; ``together``: all runs of a cell in one call, timed.
        measures: each becomes a cell.
    """

    method: str
    preset: str | None = None
    changes: dict[str, Any] = field(default_factory=dict)
    members: int = 1
    runs: int | None = None
    timing: Literal["", "alone", "together"] = ""
    measures: list[str] = field(default_factory=lambda: ["accuracy"])


@dataclass(frozen=True)
class Quick:
    """The preview of an experiment on the built-in graph, ``--quick``.

    Attributes:
        runs: per cell.
        epochs: maximum number of epochs.
        vary: a smaller grid.
    """

    runs: int = 2
    epochs: int = 20
    vary: dict[str, list[Real]] = field(default_factory=dict)


@dataclass(frozen=True)
class Experiment:
    """The content of one file.

    Attributes:
        name: of the file.
        target: the table or figure it belongs to.
        title: for a heading.
        order: its place among the experiments of the target.
        source: where the published numbers are printed.
        runs: number of runs per cell, by graph.
        rows: what is compared, by name.
        vary: a grid of values; ``steps`` stands for GPNN's ``num_steps`` and a baseline's ``layers``.
        choose: a grid of settings from which every cell takes the point with the best mean validation accuracy.
        published: the paper's numbers, by row, measure and graph, as printed.
        elsewhere: numbers of other sources, in the same form.
        elsewhere_source: where those are printed.
        tolerance: maximum distance between a mean and the published one; two standard errors of ours if not given.
        digits: by measure, the digits after the point in which ours must equal the published number.
        remarks: the best explanation of a difference, by graph, or for ``all``.
        quick: the preview.
    """

    name: str
    target: Target
    title: str
    source: str
    runs: dict[str, int]
    rows: dict[str, Row]
    order: int = 0
    vary: dict[str, list[Real]] = field(default_factory=dict)
    choose: dict[str, list[Real]] = field(default_factory=dict)
    published: dict[str, dict[str, dict[str, Number]]] = field(default_factory=dict)
    elsewhere: dict[str, dict[str, dict[str, Number]]] = field(default_factory=dict)
    elsewhere_source: str | None = None
    tolerance: Real | None = None
    digits: dict[str, int] = field(default_factory=dict)
    remarks: dict[str, str] = field(default_factory=dict)
    quick: Quick = field(default_factory=Quick)


def load_experiments(target: str | None = None) -> list[Experiment]:
    """Return the packaged experiments of one target, or of all, in the order of the results page."""
    loaded = [read_experiment(path) for path in sorted(FOLDER.glob("*.yaml"))]
    loaded.sort(key=lambda experiment: (TARGETS.index(experiment.target), experiment.order))
    return [experiment for experiment in loaded if target in (None, experiment.target)]


def read_experiment(path: Path) -> Experiment:
    """Read and check one file; an :class:`InputError` names the file, the key, and what would be right."""
    content = {key: value for key, value in read_yaml(path).items() if not key.startswith(".")}  # anchors
    experiment = check_content(Experiment, {"name": path.stem} | content, path.name)
    _check_names(experiment, path.name)
    return experiment


def _check_names(experiment: Experiment, file: str) -> None:
    """Raise an error where a graph, row or measure is named that does not exist."""
    graphs, rows = set(experiment.runs), experiment.rows
    for graph in sorted(graphs - set(CATALOGUE)):
        raise InputError(f"{file}: runs.{graph}: must be one of {', '.join(CATALOGUE)}")
    for graph in sorted(set(experiment.remarks) - {*CATALOGUE, "all"}):
        raise InputError(f"{file}: remarks.{graph}: must be one of all, {', '.join(CATALOGUE)}")
    for kind in ("published", "elsewhere"):
        for row, measures in getattr(experiment, kind).items():
            if row not in rows:
                raise InputError(f"{file}: {kind}.{row}: must be one of the rows {', '.join(rows)}")
            for measure, numbers in measures.items():
                if measure not in rows[row].measures:
                    known = ", ".join(rows[row].measures)
                    raise InputError(f"{file}: {kind}.{row}.{measure}: must be one of the row's measures {known}")
                for graph in sorted(set(numbers) - graphs):
                    raise InputError(f"{file}: {kind}.{row}.{measure}.{graph}: must be one of the graphs of runs")
    for name, row in rows.items():
        if (row.method == "gpnn") != (row.preset is not None):
            raise InputError(f"{file}: rows.{name}.preset: must be given for the method gpnn, and for no other")
