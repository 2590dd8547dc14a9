"""Which column is what: the id, the label, the split, the ends of an edge, its weight, and the features.

What the user names is taken; what is not named is guessed and the guess is noted; a guess that could as well be another
one is an error that lists the candidates and the option to give.
"""

from collections.abc import Sequence
from typing import Any

from graphpartner.tables.ids import as_keys, positions
from graphpartner.tables.problems import Problems, quoted
from graphpartner.tables.table import Table

ID_NAMES = ("id", "node", "node_id", "nodeid", "name", "key", "uuid")
END_NAMES = (
    ("source", "target"), ("src", "dst"), ("src", "dest"), ("from", "to"), ("u", "v"), ("start", "end"),
    ("source_id", "target_id"), ("node1", "node2"), ("id1", "id2"), ("citing", "cited"),
)  # fmt: skip
WEIGHT_NAME = "weight"
SPLIT_NAME = "split"
SPLIT_VALUES = {"train": "train", "val": "val", "valid": "val", "validation": "val", "test": "test"}
PROBE = 1000  # as many edge ends are looked up in a column that may be the id


def named_column(table: Table, name: str, option: str, problems: Problems) -> str | None:
    """A column that the user named, if it is there."""
    if name in table.columns:
        return name
    perhaps = (
        "; perhaps the columns are separated otherwise: name the separator with --sep"
        if len(table.columns) == 1
        else ""
    )
    problems.add(f"{table.name} has no column {name!r} ({option}); its columns are {quoted(table.columns)}{perhaps}.")
    return None


def end_columns(
    edges: Table, source: str | None, target: str | None, problems: Problems, notes: list[str]
) -> tuple[str, str] | None:
    """The two columns of an edge table that hold the ids of its ends."""
    if source is not None or target is not None:
        ends = [
            named_column(edges, name, option, problems) if name is not None else None
            for name, option in ((source, "--source"), (target, "--target"))
        ]
        if source is None or target is None:
            problems.add(f"{edges.name}: one end of the edges is named; give both --source and --target.")
        return (ends[0], ends[1]) if ends[0] is not None and ends[1] is not None else None
    if len(edges.columns) < 2:
        problems.add(
            f"{edges.name}, line 1: one column only, {edges.columns[0]!r}, but an edge table has two ids in a row; "
            "separate the columns by comma, tab, semicolon or bar, or name the separator with --sep."
        )
        return None
    lower = {column.lower(): column for column in edges.columns}
    pairs = [(lower[one], lower[other]) for one, other in END_NAMES if one in lower and other in lower]
    if len(pairs) > 1:
        candidates = " or ".join(f"{one!r} and {other!r}" for one, other in pairs)
        problems.add(f"{edges.name}: the ends of an edge may be {candidates}; say which with --source and --target.")
        return None
    chosen = pairs[0] if pairs else (edges.columns[0], edges.columns[1])
    how = "by their names" if pairs else "the first two columns"
    notes.append(f"{edges.name}: edges go from {chosen[0]!r} to {chosen[1]!r} ({how}).")
    return chosen


def id_column(
    nodes: Table, given: str | None, ends: Sequence[Any], taken: set[str], problems: Problems, notes: list[str]
) -> str | None:
    """The column of the node ids; None means that a node is known by its row number.

    Args:
        nodes: the node table.
        given: what the user named.
        ends: the columns with the ids that edges refer to; none where edges have no ids.
        taken: columns with another meaning (label, split, weight).
        problems: where to report.
        notes: where to note the guess.
    """
    if given is not None:
        return named_column(nodes, given, "--id", problems)
    free = [column for column in nodes.columns if column not in taken]
    named = sorted((c for c in free if c.lower() in ID_NAMES), key=lambda c: ID_NAMES.index(c.lower()))
    if len(named) == 1:
        notes.append(f"{nodes.name}: the id of a node is in {named[0]!r} (by its name).")
        return named[0]
    candidates = named or free
    if not ends:
        if named:
            notes.append(f"{nodes.name}: the id of a node is in {named[0]!r} (by its name).")
            return named[0]
        notes.append(f"{nodes.name}: no id column; a node is known by its row number from 0.")
        return None
    fitting = [column for column in candidates if _refers(nodes.frame[column], ends)]
    if len(fitting) == 1:
        notes.append(
            f"{nodes.name}: the id of a node is in {fitting[0]!r} (its values differ and edges refer to them)."
        )
        return fitting[0]
    why = "edges refer to none of its columns" if not fitting else f"the ids may be {quoted(fitting)}"
    problems.add(f"{nodes.name}: {why}; say which column has the ids with --id (there are {quoted(nodes.columns)}).")
    return None


def _refers(column: Any, ends: Sequence[Any]) -> bool:
    """Whether the values of a column differ and most of the first edges' ends are among them."""
    keys = as_keys(column)
    if keys is None or column.isna().any() or not column.is_unique:
        return False
    probe = [positions(as_keys(end.iloc[:PROBE]), keys) for end in ends]
    found = sum(int((place >= 0).sum()) for place in probe)
    return 2 * found > sum(place.size for place in probe)


def split_column(nodes: Table, given: str | None, problems: Problems, notes: list[str]) -> str | None:
    """The column that says train, val or test: the one named, or one called "split" that holds such words only."""
    if given is not None:
        return named_column(nodes, given, "--split", problems)
    for column in nodes.columns:
        if column.lower() == SPLIT_NAME:
            values = nodes.frame[column].dropna().unique()
            if len(values) <= 20 and all(str(value).strip().lower() in SPLIT_VALUES for value in values):
                notes.append(f"{nodes.name}: {column!r} says which nodes are for training, validation and test.")
                return column
    return None


def weight_column(edges: Table, given: str | None, problems: Problems, notes: list[str]) -> str | None:
    """The column of the edge weights: the one named, or one called "weight"."""
    if given is not None:
        return named_column(edges, given, "--weight", problems)
    found = next((column for column in edges.columns if column.lower() == WEIGHT_NAME), None)
    if found is not None:
        notes.append(f"{edges.name}: the weight of an edge is in {found!r} (by its name).")
    return found


def feature_columns(
    nodes: Table, given: Sequence[str] | None, id: str | None, taken: set[str], problems: Problems, notes: list[str]
) -> list[str]:
    """The columns that are features: those named, else all without another meaning and not named like an id."""
    if given is not None:
        found = [named_column(nodes, name, "--features", problems) for name in given]
        clash = sorted(set(given) & (taken | {id}))
        if clash:
            problems.add(f"{nodes.name}: {quoted(clash)} is the id, label or split and cannot be a feature as well.")
        return [name for name in found if name is not None]
    free = [column for column in nodes.columns if column not in taken and column != id]
    left_out = [c for c in free if c.lower() in ID_NAMES or c == "" or c.startswith("Unnamed: ")]
    if left_out:
        notes.append(
            f"{nodes.name}: {quoted(left_out)} left out of the features (named like an id, or not at all); "
            "name the features with --features to have them."
        )
    return [column for column in free if column not in left_out]
