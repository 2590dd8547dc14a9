"""The door for people's own graphs: tables, matrices and graph objects in, one :class:`OwnGraph` out.

Problems are told together, up to 20 at once, in three stages, since each needs the one before: files that cannot be
read, columns that are not there, cells that are wrong.

A graph that grows: the nodes it had come first and keep their places, new ones follow as in their table.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from graphpartner.graph.adjacency import to_scipy, to_torch
from graphpartner.graph.checks import MASKS
from graphpartner.graph.record import GraphRecord
from graphpartner.system.errors import InputError
from graphpartner.system.progress import Progress, silent
from graphpartner.tables.choose_encoding import fit_encoder
from graphpartner.tables.columns import (
    end_columns,
    feature_columns,
    id_column,
    named_column,
    split_column,
    weight_column,
)
from graphpartner.tables.edges import Ends, as_edges, common_weight, edge_ends, edge_weights, merged
from graphpartner.tables.encoding import FeatureEncoder
from graphpartner.tables.ids import as_keys, node_ids, positions
from graphpartner.tables.in_memory import Sources, collect_sources
from graphpartner.tables.labels import read_labels, read_split
from graphpartner.tables.problems import Problems, many
from graphpartner.tables.reading import Reading
from graphpartner.tables.structure import Structure
from graphpartner.tables.table import Table


@dataclass
class OwnGraph:
    """Someone's graph, ready for training, with what is needed to read more of it and to write answers back.

    Attributes:
        ids: [n] the ids as they were given (text, or the integers of a typed table), in the order of the file.
        data: ``x`` [n, d] float32, dense or sparse CSR; ``edge_index`` [2, E], both directions, no duplicates;
            ``edge_weight`` [E] where weights differ; ``y`` [n], −1 for a node without a label; ``train_mask``,
            ``val_mask`` and ``test_mask`` as far as a split was given.
        classes: their names; class c is ``classes[c]``.
        encoder: how columns became features.
        notes: what was decided and why, a sentence each.
        columns: which column was taken for id, label, split, source, target and weight.
        rows: for every row of the node table the node it is; 0 … n − 1 unless a graph was extended.
        unit: what an edge weighs that counts as 1: other than 1 where all edges of the first table weighed the same.
    """

    ids: NDArray
    data: GraphRecord
    classes: list[str]
    encoder: FeatureEncoder
    notes: list[str] = field(default_factory=list)
    columns: dict[str, str | None] = field(default_factory=dict)
    rows: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    unit: float = 1.0


def read_graph(
    nodes: Any,
    edges: Any = None,
    *,
    label: str | None = None,
    id: str | None = None,
    split: str | None = None,
    source: str | None = None,
    target: str | None = None,
    weight: str | None = None,
    features: Sequence[str] | None = None,
    encoder: FeatureEncoder | None = None,
    like: OwnGraph | None = None,
    sep: str | None = None,
    progress: Progress = silent,
) -> OwnGraph:
    """Read a graph from a node table and an edge table, or from objects in memory.

    Args:
        nodes: a file (.csv, .tsv, .txt, .jsonl, .ndjson, each also as .gz, or .parquet) or a pandas DataFrame; or a
            whole graph: NetworkX with node attributes, or a PyTorch Geometric ``Data``.
        edges: a file, a DataFrame, a NetworkX graph or a SciPy adjacency matrix in the order of the node table. None:
            a whole graph was given, or there are no edges.
        label: the column of the class, a word or a number; an empty cell is an unlabelled node. None: no labels.
        id: the column of the node ids; None finds it.
        split: the column that says train, val (valid, validation) or test; None takes one called "split".
        source: the column with one end of an edge; None finds it.
        target: the column with the other end; None finds it.
        weight: the column of the edge weights; None takes one called "weight".
        features: the feature columns; None takes all that are left, [] none: structural features.
        encoder: a fitted one is applied as it is; None fits one on this table.
        like: the graph that this one extends: edges may go to its nodes, the result has its nodes first and the new
            ones after them, and its encoder and classes are used. A node that is in both takes its new features.
        sep: the separator of text files, one character; None finds it.
        progress: called with (bytes read, bytes in all) of text files.

    Raises:
        InputError: what is wrong, each with file, line and remedy, up to 20 at once.
    """
    if sep is not None and len(sep) != 1:
        raise InputError(f"sep is {sep!r}, but must be one character, such as ';'.")
    problems, notes = Problems(), []  # type: tuple[Problems, list[str]]
    named = {"id": id, "label": label, "split": split, "source": source, "target": target, "weight": weight}
    text = {column for column in (*named.values(), *(like.columns.values() if like else ())) if column is not None}
    reading = Reading((nodes, edges), sep, text, progress)
    given = collect_sources(nodes, edges, reading, problems, notes)
    problems.stop_if_any()
    table = given.nodes
    if table is None:
        raise InputError("nodes could not be read; give a table or a graph.")
    encoder = encoder or (like.encoder if like else None)
    named |= {key: column for key, column in given.known.items() if named[key] is None}
    if like is not None:
        for key, column in like.columns.items():
            there = table.columns if key in ("id", "split") else given.edges.columns if given.edges else []
            if named[key] is None and key != "label" and column in there:
                named[key] = column
    columns = _columns(given, table, named, problems, notes)
    taken = {column for key in ("label", "split") if (column := columns[key]) is not None}
    if like is not None and columns["id"] is None and not problems:
        problems.add(
            f"{table.name}: no id column, so new nodes cannot be told from those of the model; name it with --id."
        )
    if encoder is None:
        wanted = feature_columns(table, features, columns["id"], taken, problems, notes)
    else:
        encoder.check(table, problems)
    problems.stop_if_any()

    ids, keys = node_ids(table, columns["id"], problems)
    old = like.ids if like else np.zeros(0, np.int64)
    rows, all_keys = merge_ids(old, keys)
    n = len(all_keys)
    ends, weights = _ends(given, columns, all_keys, rows, table.name, problems, notes)
    y, classes = np.full(len(table), -1), like.classes if like else []
    if columns["label"] is not None:
        known = like.classes if like else None
        y, classes = read_labels(table, columns["label"], problems, notes, known)
    masks = {}
    if columns["split"] is not None:
        learned_from = y if columns["label"] is not None and like is None else None
        masks = read_split(table, columns["split"], learned_from, problems, notes)
    if encoder is None:
        encoder = fit_encoder(table, wanted, problems, notes)
    x = encoder.transform(table, problems) if encoder.columns and not problems else None
    problems.stop_if_any()

    unit = like.unit if like else common_weight(weights) or 1.0
    if like is None and common_weight(weights) is not None:
        notes.append(f"{given.edge_name}: all edges weigh the same; read as unweighted.")
        weights = None
    elif weights is not None:
        weights = weights / unit
    A = merged(ends, weights, n, given.edge_name, notes)
    edge_index, edge_weight = as_edges(A if like is None else with_edges(like.data, A, weights is not None))
    if not encoder.columns and encoder.structure is None:
        encoder = FeatureEncoder(structure=Structure.fit(edge_index, n))
        notes.append(f"{table.name}: no feature columns; features are degrees and the place of a node in the graph.")
    if encoder.structure is not None and like is not None:
        x = encoder.structure.extend(like.data.x, edge_index, n, edge_weight)
    elif encoder.structure is not None:
        x = encoder.structure.features(edge_index, n, edge_weight)
    elif like is not None and x is not None:
        x = replaced(like.data.x, x, rows)
    data = GraphRecord(x=x, edge_index=edge_index, y=placed(like.data.y if like else None, y, rows, n, -1))
    if edge_weight is not None:
        data.edge_weight = edge_weight
    for name in MASKS:
        before = like.data.get(name) if like else None
        if name in masks or before is not None:
            now = masks.get(name, torch.zeros(len(table), dtype=torch.bool)).numpy()
            data[name] = placed(before, now, rows, n, False)
    _note_gaps(table, encoder, edge_index, n, notes)
    return OwnGraph(all_ids(old, ids, rows), data, classes, encoder, notes, columns, rows, unit)


def _columns(
    given: Sources, table: Table, named: dict[str, str | None], problems: Problems, notes: list[str]
) -> dict[str, str | None]:
    """Which column is what."""
    columns: dict[str, str | None] = dict.fromkeys(named)
    if named["label"] is not None:
        columns["label"] = named_column(table, named["label"], "--label", problems)
    columns["split"] = split_column(table, named["split"], problems, notes)
    ends: list[Any] = []
    if given.edges is not None:
        found = end_columns(given.edges, named["source"], named["target"], problems, notes)
        columns["weight"] = weight_column(given.edges, named["weight"], problems, notes)
        if found is not None:
            columns["source"], columns["target"] = found
            ends = [given.edges.frame[column] for column in found]
    # A guess needs a table whose label and edges were found; another complaint about the same table would not help.
    found_so_far = (given.edges is None or ends) and (named["label"] is None or columns["label"] is not None)
    if named["id"] is not None or found_so_far:
        taken = {column for key in ("label", "split") if (column := columns[key]) is not None}
        columns["id"] = id_column(table, named["id"], ends, taken, problems, notes)
    return columns


def _ends(
    given: Sources,
    columns: dict[str, str | None],
    keys: Any,
    rows: NDArray[np.int64],
    known_in: str,
    problems: Problems,
    notes: list[str],
) -> tuple[Ends, NDArray[np.float64] | None]:
    """The positions of the ends of every edge that was given, and the weights."""
    nothing = np.zeros(0, np.int64)
    if given.ends is not None:
        source, target = given.ends
        return (rows[source], rows[target]), given.weight
    if given.edges is None or columns["source"] is None or columns["target"] is None:
        return (nothing, nothing), None
    ends = edge_ends(given.edges, (columns["source"], columns["target"]), keys, known_in, problems, notes)
    weights = edge_weights(given.edges, columns["weight"], problems) if columns["weight"] is not None else None
    return ends or (nothing, nothing), weights


def _note_gaps(table: Table, encoder: FeatureEncoder, edge_index: Any, n: int, notes: list[str]) -> None:
    """Note the nodes of which little is known: no cell filled in, or no edge."""
    empty = np.full(len(table), bool(encoder.columns))
    for name in encoder.names:
        empty &= np.asarray(table.frame[name].isna())
        if not empty.any():
            break
    if empty.any():
        notes.append(f"{table.name}: {many(int(empty.sum()), 'row')} without any feature.")
    isolated = int((torch.bincount(edge_index[0], minlength=n) == 0).sum())
    if isolated:
        notes.append(f"{table.name}: {many(isolated, 'node')} of {n:,} without an edge.")


def merge_ids(old: NDArray, keys: Any) -> tuple[NDArray[np.int64], Any]:
    """The node that each row of a new table is, and the keys of all nodes."""
    import pandas as pd
    import pyarrow as pa

    if not len(old):
        return np.arange(len(keys)), keys
    old_keys = as_keys(pd.Series(old))
    rows = positions(keys, old_keys)
    new = rows < 0
    rows[new] = len(old_keys) + np.arange(int(new.sum()))
    return rows, pa.concat_arrays([old_keys, keys.filter(pa.array(new))])


def all_ids(old: NDArray, ids: NDArray, rows: NDArray[np.int64]) -> NDArray:
    """The ids of all nodes as they were given."""
    if not len(old):
        return ids
    new = ids[rows >= len(old)]
    if new.dtype != old.dtype:
        old, new = old.astype(object), new.astype(object)
    return np.concatenate([old, new])


def with_edges(old: GraphRecord, new: sparse.csr_array, new_weights: bool) -> sparse.csr_array:
    """The edges of the graph as it was, and new ones among all nodes, a symmetric matrix [n, n] as they are.

    An edge that is in both weighs what the new table says, if it has weights, else what it weighed before; so to read
    edges again that a graph has changes nothing.
    """
    source, target = old.edge_index.cpu().numpy()
    weight = old.get("edge_weight")
    value = np.ones(source.size) if weight is None else weight.cpu().numpy()
    before = sparse.coo_array((value, (target, source)), shape=new.shape).tocsr()
    first, second = (new, before) if new_weights else (before, new)
    rest = (second - second.multiply(first.astype(bool))).tocsr()
    rest.eliminate_zeros()
    return (first + rest).tocsr()


def replaced(old: Tensor, new: Tensor, rows: NDArray[np.int64]) -> Tensor:
    """Features of all nodes: the new ones where a row of the new table is that node, else the old ones."""
    take = np.concatenate([np.arange(old.shape[0]), np.zeros(int((rows >= old.shape[0]).sum()), np.int64)])
    take[rows] = old.shape[0] + np.arange(rows.size)
    if old.layout == torch.strided:
        return torch.cat([old, new])[torch.from_numpy(take)]
    return to_torch(sparse.vstack([to_scipy(old), to_scipy(new)], format="csr")[take])


def placed(old: Tensor | None, new: NDArray, rows: NDArray[np.int64], num_nodes: int, nothing: int | bool) -> Tensor:
    """One value a node: the old ones, and over them those of the new table that say something."""
    values = torch.full((num_nodes,), nothing, dtype=torch.bool if isinstance(nothing, bool) else torch.int64)
    if old is not None:
        values[: old.shape[0]] = old
    said = new != nothing
    values[torch.from_numpy(rows[said])] = torch.from_numpy(new[said]).to(values.dtype)
    return values
