"""Experiments as files: what is run, and what was published, side by side.

An experiment compares some **rows** (a method with its settings) on some **graphs**, perhaps over a grid of values that
are **varied** (propagation steps, α). One row on one graph at one point of the grid is a cell: as many runs as the file
says, and for each of its measures a mean beside the published number.
"""

import types
import typing
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any

from graphpartner.graph.catalogue import CATALOGUE
from graphpartner.system.errors import InputError

FOLDER = Path(__file__).parent
TARGETS = ("table1", "table2", "table3", "table4", "fig1", "fig3", "fig4", "fig5", "bounds", "scores", "beyond")
"""What ``gpnn reproduce`` takes, in the order of the results page."""

Number = float | list[float]
"""A mean, or [mean, standard deviation]."""


@dataclass(frozen=True)
class Row:
    """One of the things compared.

    Attributes:
        method: ``gpnn``, a baseline, or a look at the graph without training (``statistics``, ``edge-quality``).
        preset: the family of presets that GPNN's settings come from.
        changes: settings that differ from the preset's, or from the baseline's own.
        members: how many runs are averaged to one ensemble; 1 is a run as it is.
        runs: of each cell of this row, where it is not the experiment's number.
        timing: ``alone``: each run by itself, timed; ``together``: all runs of a cell in one call, timed.
        measures: what becomes a cell.
    """

    method: str
    preset: str | None = None
    changes: dict[str, Any] = field(default_factory=dict)
    members: int = 1
    runs: int | None = None
    timing: str = ""
    measures: list[str] = field(default_factory=lambda: ["accuracy"])


@dataclass(frozen=True)
class Quick:
    """What ``--quick`` makes of the experiment on the built-in graph.

    Attributes:
        runs: of each cell.
        epochs: at most so many.
        vary: a smaller grid.
    """

    runs: int = 2
    epochs: int = 20
    vary: dict[str, list[float]] = field(default_factory=dict)


@dataclass(frozen=True)
class Experiment:
    """One file.

    Attributes:
        name: of the file.
        target: the table or figure it belongs to.
        title: what a heading says.
        order: its place among the experiments of the target.
        source: where the published numbers are printed.
        runs: how many runs a cell has, by graph.
        rows: what is compared, by name.
        vary: a grid of values; ``steps`` stands for GPNN's ``num_steps`` and a baseline's ``layers``.
        choose: a grid of settings of which every cell takes the point with the best mean validation accuracy.
        published: the paper's numbers, by row, measure and graph, as printed.
        elsewhere: numbers of other sources, in the same form.
        elsewhere_source: which those are.
        tolerance: how far a mean may lie from the published one; two standard errors of ours if not given.
        digits: how many digits after the point a published number of a measure has, where ours must be the same.
        remarks: the best explanation of a difference, by graph, or for ``all``.
        quick: the preview.
    """

    name: str
    target: str
    title: str
    source: str
    runs: dict[str, int]
    rows: dict[str, Row]
    order: int = 0
    vary: dict[str, list[float]] = field(default_factory=dict)
    choose: dict[str, list[float]] = field(default_factory=dict)
    published: dict[str, dict[str, dict[str, Number]]] = field(default_factory=dict)
    elsewhere: dict[str, dict[str, dict[str, Number]]] = field(default_factory=dict)
    elsewhere_source: str | None = None
    tolerance: float | None = None
    digits: dict[str, int] = field(default_factory=dict)
    remarks: dict[str, str] = field(default_factory=dict)
    quick: Quick = field(default_factory=Quick)


def load_experiments(target: str | None = None) -> list[Experiment]:
    """The packaged experiments of a target, or all of them, in the order of the targets and then of the files."""
    found = [read_experiment(path) for path in sorted(FOLDER.glob("*.yaml"))]
    found.sort(key=lambda experiment: (TARGETS.index(experiment.target), experiment.order))
    return [experiment for experiment in found if target in (None, experiment.target)]


def read_experiment(path: Path) -> Experiment:
    """One file, checked: an :class:`InputError` names the file, the key, and what would be right."""
    import yaml

    try:
        content = yaml.safe_load(path.read_text())
    except (OSError, yaml.YAMLError) as error:
        raise InputError(f"{path.name} cannot be read: {' '.join(str(error).split())}") from None
    if not isinstance(content, dict):
        raise InputError(f"{path.name} must hold keys and values")
    content = {key: value for key, value in content.items() if not key.startswith(".")}  # anchors used further down
    experiment = _made(Experiment, {"name": path.stem} | content, path.name, "")
    _check_names(experiment, path.name)
    return experiment


def _made(kind: type, content: Any, file: str, place: str) -> Any:
    """A dataclass from a mapping: no key unknown, none missing, every value of the right type."""
    if not isinstance(content, dict):
        raise InputError(f"{file}: {place or 'the file'} must hold keys and values, not {content!r}")
    hints, known = typing.get_type_hints(kind), {item.name: item for item in fields(kind)}
    dot = f"{place}." if place else ""
    for key in content:
        if key not in known:
            raise InputError(f"{file}: unknown key {dot}{key}; known are {', '.join(known)}")
    for name, item in known.items():
        if name not in content and item.default is MISSING and item.default_factory is MISSING:
            raise InputError(f"{file}: the key {dot}{name} is missing")
    return kind(**{key: _value(hints[key], value, file, f"{dot}{key}") for key, value in content.items()})


def _value(hint: Any, value: Any, file: str, place: str) -> Any:
    """The value if it is what the type says; numbers may be written without a point."""
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if hint in (Row, Quick):
        return _made(hint, value, file, place)
    if origin is dict and isinstance(value, dict):
        return {key: _value(parts[1], each, file, f"{place}.{key}") for key, each in value.items()}
    if origin is list and isinstance(value, list):
        return [_value(parts[0], each, file, place) for each in value]
    if origin in (typing.Union, types.UnionType):
        for part in parts:
            try:
                return _value(part, value, file, place)
            except InputError:
                continue
    elif hint is Any or type(value) is hint or (hint is float and type(value) is int):
        return value
    raise InputError(f"{file}: {place} = {value!r} must be {_said(hint)}")


def _said(hint: Any) -> str:
    words = {str: "text", int: "a whole number", float: "a number", type(None): "nothing"}
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return " or ".join(_said(part) for part in typing.get_args(hint))
    return {dict: "keys and values", list: "a list of numbers"}.get(typing.get_origin(hint)) or words.get(hint, "else")


def _check_names(experiment: Experiment, file: str) -> None:
    """Targets, graphs and rows that are named must exist."""
    graphs, rows = set(experiment.runs), set(experiment.rows)
    if experiment.target not in TARGETS:
        raise InputError(f"{file}: target = {experiment.target!r} must be one of {', '.join(TARGETS)}")
    for graph in sorted(graphs - set(CATALOGUE)):
        raise InputError(f"{file}: runs.{graph} is no graph; choose among {', '.join(CATALOGUE)}")
    for graph in sorted(set(experiment.remarks) - {*CATALOGUE, "all"}):
        raise InputError(f"{file}: remarks.{graph} must be a graph, or all")
    for kind in ("published", "elsewhere"):
        for row, measures in getattr(experiment, kind).items():
            if row not in rows:
                raise InputError(f"{file}: {kind}.{row} is no row; there are {', '.join(experiment.rows)}")
            for measure, numbers in measures.items():
                if measure not in experiment.rows[row].measures:
                    raise InputError(f"{file}: {kind}.{row}.{measure} is not among the measures of {row}")
                for graph in sorted(set(numbers) - graphs):
                    raise InputError(f"{file}: {kind}.{row}.{measure}.{graph} is published, but runs has no {graph}")
    for name, row in experiment.rows.items():
        if (row.method == "gpnn") != (row.preset is not None):
            raise InputError(f"{file}: rows.{name}.preset must be given for the method gpnn, and for no other")
        if row.timing not in ("", "alone", "together"):
            raise InputError(f"{file}: rows.{name}.timing = {row.timing!r} must be alone or together")
