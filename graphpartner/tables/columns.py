"""The roles of columns: id, label, split, ends and weight of an edge, features; and the values of label and split.

A column that the user names is taken; one that is not named is guessed, and the guess is noted. Where several columns
fit equally well, an error lists them and the option that names one.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphpartner.tables.ids import as_keys, positions, without_point_zero
from graphpartner.tables.parse_cells import all_match, as_text
from graphpartner.tables.problems import Problems, pluralise, quoted
from graphpartner.tables.read_table import Table

ID_NAMES = ("id", "node", "node_id", "nodeid", "name", "key", "uuid")
END_NAMES = (
    ("source", "target"), ("src", "dst"), ("src", "dest"), ("from", "to"), ("u", "v"), ("start", "end"),
    ("source_id", "target_id"), ("node1", "node2"), ("id1", "id2"), ("citing", "cited"),
)  # fmt: skip
WEIGHT_NAME = "weight"
SPLIT_NAME = "split"
SPLIT_VALUES = {"train": "train", "val": "val", "valid": "val", "validation": "val", "test": "test"}
PROBE = 1000  # number of edges whose ends are looked up in a column that may be the id


def assign_columns(
    nodes: Table, edges: Table | None, named: Mapping[str, str | None], problems: Problems, notes: list[str]
) -> dict[str, str | None]:
    """Return the column of every role; None for a role without one.

    ``named`` has the known columns by role: id, label, split, source, target, weight.
    """
    columns: dict[str, str | None] = dict.fromkeys(named)
    if named["label"] is not None:
        columns["label"] = _named_column(nodes, named["label"], "--label", problems)
    columns["split"] = _split_column(nodes, named["split"], problems, notes)
    ends: list[Any] = []
    if edges is not None:
        found = _end_columns(edges, named["source"], named["target"], problems, notes)
        columns["weight"] = _weight_column(edges, named["weight"], problems, notes)
        if found is not None:
            columns["source"], columns["target"] = found
            ends = [edges.frame[column] for column in found]
    # A guess needs a table whose label and edges were found; another complaint about the same table would not help.
    can_guess = (edges is None or ends) and columns["label"] == named["label"]
    if named["id"] is not None:
        columns["id"] = _named_column(nodes, named["id"], "--id", problems)
    elif can_guess:
        columns["id"] = _guess_id(nodes, ends, {columns["label"], columns["split"]}, problems, notes)
    return columns


def _named_column(table: Table, name: str, option: str, problems: Problems) -> str | None:
    """Return a column that the user named, if it is there."""
    if name in table.columns:
        return name
    hint = "; perhaps the columns are separated otherwise: name the separator with --sep"
    known = quoted(table.columns) + (hint if len(table.columns) == 1 else "")
    problems.add(f"{table.name}: no column {name!r} ({option}); its columns are {known}")
    return None


def _end_columns(
    edges: Table, source: str | None, target: str | None, problems: Problems, notes: list[str]
) -> tuple[str, str] | None:
    """Return the two columns of an edge table with the ids of the ends."""
    if source is not None or target is not None:
        ends = [
            _named_column(edges, name, option, problems) if name is not None else None
            for name, option in ((source, "--source"), (target, "--target"))
        ]
        if source is None or target is None:
            problems.add(f"{edges.name}: only one end of the edges is named; give both --source and --target")
        return (ends[0], ends[1]) if ends[0] is not None and ends[1] is not None else None
    if len(edges.columns) < 2:
        problems.add(
            f"{edges.name}, line 1: one column only, {edges.columns[0]!r}, but an edge table has two ids per row; "
            "separate the columns by comma, tab, semicolon or bar, or name the separator with --sep"
        )
        return None
    lower = {column.lower(): column for column in edges.columns}
    pairs = [(lower[one], lower[other]) for one, other in END_NAMES if one in lower and other in lower]
    if len(pairs) > 1:
        candidates = " or ".join(f"{one!r} and {other!r}" for one, other in pairs)
        problems.add(f"{edges.name}: the ends of an edge may be {candidates}; name them with --source and --target")
        return None
    chosen = pairs[0] if pairs else (edges.columns[0], edges.columns[1])
    how = "by their names" if pairs else "the first two columns"
    notes.append(f"{edges.name}: edges go from {chosen[0]!r} to {chosen[1]!r} ({how}).")
    return chosen


def _guess_id(
    nodes: Table, ends: Sequence[Any], taken: set[str | None], problems: Problems, notes: list[str]
) -> str | None:
    """Return the column of the node ids; None where a node is known by its row number.

    ``ends`` are the columns of ids that edges refer to, if they have any; ``taken`` have another role.
    """
    free = [column for column in nodes.columns if column not in taken]
    by_name = sorted((c for c in free if c.lower() in ID_NAMES), key=lambda c: ID_NAMES.index(c.lower()))
    if len(by_name) == 1 or (by_name and not ends):
        notes.append(f"{nodes.name}: the id of a node is in {by_name[0]!r} (by its name).")
        return by_name[0]
    if not ends:
        notes.append(f"{nodes.name}: no id column; a node is known by its row number from 0.")
        return None
    fitting = [column for column in by_name or free if _is_referred_to(nodes.frame[column], ends)]
    if len(fitting) == 1:
        notes.append(
            f"{nodes.name}: the id of a node is in {fitting[0]!r} (its values differ and edges refer to them)."
        )
        return fitting[0]
    why = f"the ids may be {quoted(fitting)}" if fitting else "edges refer to none of its columns"
    problems.add(f"{nodes.name}: {why}; name the column of the ids with --id (there are {quoted(nodes.columns)})")
    return None


def _is_referred_to(column: Any, ends: Sequence[Any]) -> bool:
    """Return whether the values of a column differ and most of the first edges' ends are among them."""
    keys = as_keys(column)
    if keys is None or column.isna().any() or not column.is_unique:
        return False
    probe = [positions(as_keys(end.iloc[:PROBE]), keys) for end in ends]
    found = sum(int((place >= 0).sum()) for place in probe)
    return 2 * found > sum(place.size for place in probe)


def _split_column(nodes: Table, given: str | None, problems: Problems, notes: list[str]) -> str | None:
    """Return the column of train, val and test: the one named, or one called "split" with such words only."""
    if given is not None:
        return _named_column(nodes, given, "--split", problems)
    for column in nodes.columns:
        if column.lower() == SPLIT_NAME:
            values = nodes.frame[column].dropna().unique()
            if len(values) <= 20 and all(str(value).strip().lower() in SPLIT_VALUES for value in values):
                notes.append(f"{nodes.name}: {column!r} marks the nodes for training, validation and test.")
                return column
    return None


def _weight_column(edges: Table, given: str | None, problems: Problems, notes: list[str]) -> str | None:
    """Return the column of the edge weights: the one named, or one called "weight"."""
    if given is not None:
        return _named_column(edges, given, "--weight", problems)
    found = next((column for column in edges.columns if column.lower() == WEIGHT_NAME), None)
    if found is not None:
        notes.append(f"{edges.name}: the weight of an edge is in {found!r} (by its name).")
    return found


def feature_columns(
    nodes: Table, given: Sequence[str] | None, columns: Mapping[str, str | None], problems: Problems, notes: list[str]
) -> list[str]:
    """Return the columns of features: those named, else all without a role whose names are not like an id's."""
    taken = {columns[role] for role in ("id", "label", "split")}
    if given is not None:
        found = [_named_column(nodes, name, "--features", problems) for name in given]
        if clash := sorted(set(given) & taken):
            problems.add(f"{nodes.name}: {quoted(clash)} is the id, label or split and cannot be a feature as well")
        return [name for name in found if name is not None]
    free = [column for column in nodes.columns if column not in taken]
    left_out = [c for c in free if c.lower() in ID_NAMES or c == "" or c.startswith("Unnamed: ")]
    if left_out:
        notes.append(
            f"{nodes.name}: {quoted(left_out)} left out of the features (named like an id, or not at all); "
            "name the features with --features to include them."
        )
    return [column for column in free if column not in left_out]


def read_labels(
    nodes: Table, column: str, problems: Problems, notes: list[str], classes: list[str] | None = None
) -> tuple[NDArray[np.int64], list[str]]:
    """Return the class of every node, −1 where the cell is empty, and the names of the classes in order.

    Classes that are numbers are ordered as numbers. −1 among classes from 0 on means that a node has no label. Labels
    must be among the ``classes`` of a model, if given; else there must be two classes and two nodes in each.
    """
    import pyarrow as pa
    from pyarrow import compute

    text = as_text(nodes.frame[column])
    if all_match(text, r"^-?[0-9]+\.0+$"):
        text = without_point_zero(text)
    found = set(compute.unique(text).drop_null().to_pylist())
    if {"-1", "0"} <= found and all_match(text, r"^(-1|[0-9]+)$"):
        notes.append(f"{nodes.name}: label -1 in column {column!r} read as no label.")
        text = compute.if_else(compute.equal(text, "-1"), pa.scalar(None, text.type), text)
        found.discard("-1")
    known = classes if classes is not None else _in_order(found)
    label = positions(text, pa.array(known, pa.large_string()))
    if classes is not None:
        problems.add_rows(
            nodes.locate,
            np.flatnonzero(np.asarray(text.is_valid()) & (label < 0)).tolist(),
            lambda row: (
                f"label {str(text[row])!r} in column {column!r} is no class of the model ({quoted(known)}); "
                "correct it, or leave the cell empty"
            ),
        )
        return label, known
    if not known:
        problems.add(f"{nodes.name}: no node has a label in column {column!r}; fill in some, at least two per class")
    elif len(known) == 1:
        problems.add(f"{nodes.name}: all labels in column {column!r} are {known[0]!r}; give at least two classes")
    counts = np.bincount(label[label >= 0], minlength=len(known))
    single = np.flatnonzero((label >= 0) & (counts[label] == 1)) if known else np.zeros(0, np.int64)
    problems.add_rows(
        nodes.locate,
        single.tolist(),
        lambda row: (
            f"the only node of class {known[label[row]]!r} (column {column!r}); "
            "label another one, or merge the class with one like it"
        ),
    )
    missing = int((label < 0).sum())
    notes.append(f"{nodes.name}: {len(known)} classes in {column!r}; {pluralise(missing, 'node')} without a label.")
    return label, known


def read_split(
    nodes: Table, column: str, labels: NDArray[np.int64] | None, problems: Problems, notes: list[str]
) -> dict[str, NDArray[np.bool_]]:
    """Return train_mask, val_mask and test_mask, as far as there are such nodes; an empty cell is in none.

    Where no cell is train but some are val or test, all nodes with an empty cell are for training: whoever marks nodes
    for testing does not want a model to be trained on them. ``labels`` are those of the rows, −1 for none: training
    nodes need two classes. None: no model is trained.
    """
    from pyarrow import compute

    text = compute.utf8_lower(as_text(nodes.frame[column]))
    words = np.array(text.fill_null("").to_pylist())
    part = np.array([SPLIT_VALUES.get(str(word), "") for word in words])
    wrong = np.flatnonzero((part == "") & (words != ""))
    problems.add_rows(
        nodes.locate,
        wrong.tolist(),
        lambda row: f"{str(words[row])!r} in the split column {column!r}; write train, val or test, or nothing",
    )
    if labels is not None and (part != "").any():
        if not (part == "train").any():
            part = np.where(part == "", "train", part)
            notes.append(f"{nodes.name}: no cell in {column!r} is train; the nodes with an empty one are for training.")
        classes = np.unique(labels[(part == "train") & (labels >= 0)]).size
        if classes < 2 and not wrong.size:
            problems.add(
                f"{nodes.name}: the nodes for training by the split column {column!r} have labels of "
                f"{classes or 'no'} class; mark labelled nodes of 2 classes or more"
            )
    return {f"{name}_mask": part == name for name in ("train", "val", "test") if (part == name).any()}


def _in_order(classes: set[str]) -> list[str]:
    """Return class names sorted, numbers by their value."""
    try:
        return sorted(classes, key=lambda name: (float(name), name))
    except ValueError:
        return sorted(classes)
