"""The label of every node, and which nodes are for training, validation and test."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graphpartner.tables.columns import SPLIT_VALUES
from graphpartner.tables.ids import positions, without_point_zero
from graphpartner.tables.parse_cells import all_match, as_text
from graphpartner.tables.problems import Problems, many, quoted
from graphpartner.tables.table import Table


def read_labels(
    nodes: Table, column: str, problems: Problems, notes: list[str], classes: list[str] | None = None
) -> tuple[NDArray[np.int64], list[str]]:
    """The class of every node, −1 where the cell says nothing, and the names of the classes in order.

    Classes that are numbers are ordered as numbers. −1 among classes from 0 on means that a node has no label.

    Args:
        nodes: the node table.
        column: its label column.
        problems: where to report: no label at all, one class only, a class with one member.
        notes: where to note what was decided.
        classes: the classes of a model; labels then need not be there, but must be among them.
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
    known = classes if classes is not None else in_order(found)
    label = positions(text, pa.array(known, pa.large_string()))
    if classes is not None:
        said = np.asarray(text.is_valid())
        problems.add_rows(
            nodes.locate,
            np.flatnonzero(said & (label < 0)).tolist(),
            lambda row: (
                f"label {str(text[row])!r} in column {column!r} is no class of the model ({quoted(known)}); "
                "correct it, or leave the cell empty."
            ),
        )
        return label, known
    if not known:
        problems.add(f"{nodes.name}: no node has a label in column {column!r}; fill in some, at least two a class.")
    elif len(known) == 1:
        problems.add(f"{nodes.name}: all labels in column {column!r} are {known[0]!r}; give at least two classes.")
    counts = np.bincount(label[label >= 0], minlength=len(known))
    single = np.flatnonzero((label >= 0) & (counts[label] == 1)) if known else np.zeros(0, np.int64)
    problems.add_rows(
        nodes.locate,
        single.tolist(),
        lambda row: (
            f"the only node of class {known[label[row]]!r} (column {column!r}); "
            "label another one, or merge the class with one like it."
        ),
    )
    missing = int((label < 0).sum())
    notes.append(f"{nodes.name}: {len(known)} classes in {column!r}; {many(missing, 'node')} without a label.")
    return label, known


def read_split(
    nodes: Table, column: str, labels: NDArray[np.int64] | None, problems: Problems, notes: list[str]
) -> dict[str, Tensor]:
    """The masks train_mask, val_mask and test_mask, as far as there are such nodes; an empty cell is in none.

    Where no cell says train but some say val or test, all nodes with an empty one are for training: nobody who marks
    nodes for testing wants them learned from.

    Args:
        nodes: the node table.
        column: its column of parts.
        labels: of its rows, −1 for none: those for training must tell two classes apart. None for a table that nothing
            is learned from.
        problems: where to report.
        notes: where to note what was decided.
    """
    from pyarrow import compute

    text = compute.utf8_lower(as_text(nodes.frame[column]))
    words = np.array(text.fill_null("").to_pylist())
    meaning = np.array([SPLIT_VALUES.get(str(word), "") for word in words])
    wrong = np.flatnonzero((meaning == "") & (words != ""))
    problems.add_rows(
        nodes.locate,
        wrong.tolist(),
        lambda row: f"{str(words[row])!r} in the split column {column!r}; write train, val or test, or nothing.",
    )
    if labels is not None and (meaning != "").any():
        if not (meaning == "train").any():
            meaning = np.where(meaning == "", "train", meaning)
            notes.append(f"{nodes.name}: {column!r} says train of no node; those it says nothing of are for training.")
        classes = np.unique(labels[(meaning == "train") & (labels >= 0)]).size
        if classes < 2 and not wrong.size:
            problems.add(
                f"{nodes.name}: the nodes for training by the split column {column!r} have labels of "
                f"{classes or 'no'} class; mark labelled nodes of 2 classes or more."
            )
    masks = {f"{name}_mask": torch.from_numpy(meaning == name) for name in ("train", "val", "test")}
    return {name: mask for name, mask in masks.items() if bool(mask.any())}


def in_order(classes: set[str]) -> list[str]:
    """Class names sorted, numbers by their value."""
    try:
        return sorted(classes, key=lambda name: (float(name), name))
    except ValueError:
        return sorted(classes)
