"""Read a user's own graph: tables, matrices and graph objects in, one :class:`GraphTable` out.

Four stages, each of which needs the one before: files are read, columns get their roles, cells become numbers, and the
graph is put together. Problems are raised together, up to 20 at once, at the end of each of the first three.

A graph may extend another one: the nodes of the old graph come first and keep their positions, new ones follow in the
order of their table.
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
from graphpartner.tables.columns import assign_columns, feature_columns, read_labels, read_split
from graphpartner.tables.edges import Ends, as_edge_index, common_weight, edge_matrix, read_edges, with_old_edges
from graphpartner.tables.encoding import FeatureEncoder
from graphpartner.tables.ids import as_keys, node_ids, positions
from graphpartner.tables.in_memory import Sources, collect_sources
from graphpartner.tables.problems import Problems, pluralise
from graphpartner.tables.read_table import Table
from graphpartner.tables.structure import Structure
from graphpartner.tables.text_table import ReadContext


@dataclass
class GraphTable:
    """A graph read from a user's tables, ready for training, and how its columns were read.

    Attributes:
        ids: [n], the ids of the nodes as they were given (text, or the integers of a typed table); node i is
            ``ids[i]``.
        data: the graph. ``x`` is [n, d] float32, dense or sparse CSR; ``edge_index`` [2, E] has both directions of
            every edge and no duplicates; ``edge_weight`` [E] is there where weights differ; ``y`` [n] is −1 for a
            node without a label; ``train_mask``, ``val_mask`` and ``test_mask`` are there as far as a split was given.
        classes: the names of the classes; class c is ``classes[c]``.
        encoder: the fitted encoder that turns columns into features.
        notes: one sentence per decision: which columns were guessed, what was dropped, merged or filled.
        columns: the column of each role: id, label, split, source, target and weight; None for a role without one.
        rows: [rows of the node table], the node of each row; 0 … n − 1 unless the graph extends another one.
        edge_unit: the weight in the edge table that counts as 1; other than 1 where all its edges weighed the same.
    """

    ids: NDArray
    data: GraphRecord
    classes: list[str]
    encoder: FeatureEncoder
    notes: list[str] = field(default_factory=list)
    columns: dict[str, str | None] = field(default_factory=dict)
    rows: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    edge_unit: float = 1.0


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
    like: GraphTable | None = None,
    sep: str | None = None,
    progress: Progress = silent,
) -> GraphTable:
    """Read a graph from a node table and an edge table, or from objects in memory.

    Args:
        nodes: a file (.csv, .tsv, .txt, .jsonl, .ndjson, each also as .gz, or .parquet) or a pandas DataFrame; or a
            whole graph: NetworkX with node attributes, or a PyTorch Geometric ``Data``.
        edges: a file, a DataFrame, a NetworkX graph or a SciPy adjacency matrix in the order of the node table. None:
            nodes is a whole graph, or there are no edges.
        label: the column of the class, a word or a number; an empty cell is an unlabelled node. None: no labels.
        id: the column of the node ids; None finds it.
        split: the column of train, val (valid, validation) and test; None takes one called "split".
        source: the column with one end of an edge; None finds it.
        target: the column with the other end; None finds it.
        weight: the column of the edge weights; None takes one called "weight".
        features: the feature columns; None takes all that are left, [] none: structural features.
        encoder: a fitted encoder, applied as it is; None fits one on this table.
        like: the graph to be extended: edges may refer to its nodes, which come first in the result, and its encoder
            and classes are used. A node in both takes its new features.
        sep: the separator of text files, one character; None finds it.
        progress: called with (bytes read, total bytes) of text files.

    Raises:
        InputError: the problems with file, line and remedy, up to 20 at once.
    """
    if sep is not None and len(sep) != 1:
        raise InputError(f"sep = {sep!r}: must be one character, such as ';'")
    problems, notes = Problems(), []  # type: tuple[Problems, list[str]]
    named = {"id": id, "label": label, "split": split, "source": source, "target": target, "weight": weight}
    text = {column for column in (*named.values(), *(like.columns.values() if like else ())) if column is not None}
    sources = collect_sources(nodes, edges, ReadContext((nodes, edges), sep, text, progress), problems, notes)
    table = sources.nodes
    encoder = encoder or (like.encoder if like else None)

    columns = assign_columns(table, sources.edges, _known_roles(named, sources, like), problems, notes)
    if like is not None and columns["id"] is None and not problems:
        problems.add(f"{table.name}: no id column, which new nodes and those of the model need; name it with --id")
    if encoder is None:
        wanted = feature_columns(table, features, columns, problems, notes)
    else:
        encoder.check(table, problems)
    problems.stop_if_any()

    ids, keys, rows = _merge_nodes(like, *node_ids(table, columns["id"], problems))
    n = len(keys)
    if sources.ends is not None:
        ends, weights = (rows[sources.ends[0]], rows[sources.ends[1]]), sources.weight
    else:
        ends, weights = read_edges(sources.edges, columns, keys, table.name, problems, notes)
    y, classes, masks = _read_targets(table, columns, like, problems, notes)
    if encoder is None:
        encoder = fit_encoder(table, wanted, problems, notes)
    x = encoder.transform(table, problems) if encoder.columns and not problems else None
    problems.stop_if_any()

    edge_index, edge_weight, unit = _join_edges(sources.edge_name, ends, weights, n, like, notes)
    if x is not None and like is not None:
        x = _replace_rows(like.data.x, x, rows)
    elif x is None:
        structure = encoder.structure
        if structure is None:
            structure = Structure.fit(edge_index, n)
            encoder = FeatureEncoder(structure=structure)
            notes.append(f"{table.name}: no feature columns; features are degrees and positions in the graph.")
        x = structure.features(edge_index, n, edge_weight, like.data.x if like else None)
    old = like.data if like else GraphRecord()
    data = GraphRecord(x=x, edge_index=edge_index, edge_weight=edge_weight, y=_place(old.get("y"), y, rows, n, -1))
    for name in MASKS:
        if name in masks or name in old:
            mask = masks.get(name, np.zeros(len(table), np.bool_))
            data[name] = _place(old.get(name), mask, rows, n, False)
    _note_gaps(table, encoder, edge_index, n, notes)
    return GraphTable(ids, data, classes, encoder, notes, columns, rows, unit)


def _known_roles(named: dict[str, str | None], sources: Sources, like: GraphTable | None) -> dict[str, str | None]:
    """Return the column of each role as the user named it, else as in the objects, else as in the graph extended."""
    named = {role: sources.roles.get(role) if column is None else column for role, column in named.items()}
    for role, column in like.columns.items() if like else ():
        table = sources.nodes if role in ("id", "split") else sources.edges
        if named[role] is None and role != "label" and table is not None and column in table.columns:
            named[role] = column
    return named


def _merge_nodes(like: GraphTable | None, ids: NDArray, keys: Any) -> tuple[NDArray, Any, NDArray[np.int64]]:
    """Return the ids and keys of all nodes, and the node of each row of the new table."""
    import pandas as pd
    import pyarrow as pa

    if like is None:
        return ids, keys, np.arange(len(keys))
    old_keys = as_keys(pd.Series(like.ids))
    rows = positions(keys, old_keys)
    is_new = rows < 0
    rows[is_new] = len(old_keys) + np.arange(int(is_new.sum()))
    old, new = like.ids, ids[is_new]
    if new.dtype != old.dtype:
        old, new = old.astype(object), new.astype(object)
    return np.concatenate([old, new]), pa.concat_arrays([old_keys, keys.filter(pa.array(is_new))]), rows


def _read_targets(
    table: Table, columns: dict[str, str | None], like: GraphTable | None, problems: Problems, notes: list[str]
) -> tuple[NDArray[np.int64], list[str], dict[str, NDArray[np.bool_]]]:
    """Return the class of each row, the names of the classes, and the masks of the split."""
    y, classes = np.full(len(table), -1), like.classes if like else []
    if columns["label"] is not None:
        y, classes = read_labels(table, columns["label"], problems, notes, like.classes if like else None)
    if columns["split"] is None:
        return y, classes, {}
    labels = y if columns["label"] is not None and like is None else None
    return y, classes, read_split(table, columns["split"], labels, problems, notes)


def _join_edges(
    name: str, ends: Ends, weights: NDArray[np.float64] | None, n: int, like: GraphTable | None, notes: list[str]
) -> tuple[Tensor, Tensor | None, float]:
    """Return ``edge_index`` and ``edge_weight`` of old and new edges, and the weight that counts as 1."""
    common = common_weight(weights)
    unit = like.edge_unit if like else common or 1.0
    if like is None and common is not None:
        notes.append(f"{name}: all edges weigh the same; read as unweighted.")
        weights = None
    elif weights is not None:
        weights = weights / unit
    A = edge_matrix(ends, weights, n, name, notes)
    return *as_edge_index(A if like is None else with_old_edges(A, like.data, weights is not None)), unit


def _replace_rows(old: Tensor, new: Tensor, rows: NDArray[np.int64]) -> Tensor:
    """Return features of all nodes: the new ones where a row of the new table is that node, else the old ones."""
    take = np.concatenate([np.arange(old.shape[0]), np.zeros(int((rows >= old.shape[0]).sum()), np.int64)])
    take[rows] = old.shape[0] + np.arange(rows.size)
    if old.layout == torch.strided:
        return torch.cat([old, new])[torch.from_numpy(take)]
    return to_torch(sparse.vstack([to_scipy(old), to_scipy(new)], format="csr")[take])


def _place(old: Tensor | None, new: NDArray, rows: NDArray[np.int64], num_nodes: int, missing: int | bool) -> Tensor:
    """Return one value per node: the old ones, overwritten by those of the new table that are not missing."""
    values = torch.full((num_nodes,), missing, dtype=torch.bool if isinstance(missing, bool) else torch.int64)
    if old is not None:
        values[: old.shape[0]] = old
    present = new != missing
    values[torch.from_numpy(rows[present])] = torch.from_numpy(new[present]).to(values.dtype)
    return values


def _note_gaps(table: Table, encoder: FeatureEncoder, edge_index: Tensor, n: int, notes: list[str]) -> None:
    """Note the number of rows without any feature, and of nodes without any edge."""
    empty = np.full(len(table), bool(encoder.columns))
    for name in encoder.names:
        empty &= np.asarray(table.frame[name].isna())
        if not empty.any():
            break
    if empty.any():
        notes.append(f"{table.name}: {pluralise(int(empty.sum()), 'row')} without any feature.")
    isolated = int((torch.bincount(edge_index[0], minlength=n) == 0).sum())
    if isolated:
        notes.append(f"{table.name}: {pluralise(isolated, 'node')} of {n:,} without an edge.")
