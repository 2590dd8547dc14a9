"""From an edge table to ``edge_index``: ids to positions, both directions, duplicates merged, weights checked."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from graphpartner.graph.record import GraphRecord
from graphpartner.tables.ids import as_keys, positions, without_point_zero
from graphpartner.tables.parse_cells import LARGEST, as_numbers
from graphpartner.tables.problems import Problems, pluralise
from graphpartner.tables.read_table import Table

Ends = tuple[NDArray[np.int64], NDArray[np.int64]]


def read_edges(
    edges: Table | None,
    columns: Mapping[str, str | None],
    ids: Any,
    known_in: str,
    problems: Problems,
    notes: list[str],
) -> tuple[Ends, NDArray[np.float64] | None]:
    """Return the positions of the ends of every edge of a table, and the weights; ``ids`` are the keys of the nodes."""
    nothing = np.zeros(0, np.int64)
    source, target, weight = (columns[role] for role in ("source", "target", "weight"))
    if edges is None or source is None or target is None:
        return (nothing, nothing), None
    ends = _edge_ends(edges, (source, target), ids, known_in, problems, notes)
    return ends or (nothing, nothing), None if weight is None else _edge_weights(edges, weight, problems)


def _edge_ends(
    edges: Table, columns: tuple[str, str], ids: Any, known_in: str, problems: Problems, notes: list[str]
) -> Ends | None:
    """Return the positions of both ends of every edge; report ids that no node has."""
    import pyarrow as pa

    ends = []
    for column in columns:
        keys = as_keys(edges.frame[column])
        if keys is None:
            problems.add(f"{edges.name}: column {column!r} has neither text nor whole numbers; give the ids of nodes")
            return None
        place = positions(keys, ids)
        if (place < 0).any():
            again = positions(without_point_zero(keys), ids)
            if (again >= 0).sum() > (place >= 0).sum():
                notes.append(
                    f"{edges.name}: column {column!r} writes whole numbers with a point (12.0) and {known_in} without "
                    "(12); read as the same ids."
                )
                place = again
        ends.append(place)
    if (positions(pa.array(columns, pa.large_string()), ids) >= 0).all():
        problems.add(
            f"{edges.name}, line 1: no header, {columns[0]!r} and {columns[1]!r} are ids of nodes; "
            "add a first line: source,target"
        )
        return None
    source, target = ends
    rows = np.flatnonzero((source < 0) | (target < 0))

    def describe(row: int) -> str:
        column = columns[0] if source[row] < 0 else columns[1]
        cell = edges.frame[column].iloc[row]
        if _is_blank(cell):
            return f"no id in column {column!r}; give both ends of the edge, or remove it"
        return f"id {str(cell)!r} in column {column!r} is not in {known_in}; add the node, or remove the edge"

    problems.add_rows(edges.locate, rows.tolist(), describe)
    return None if rows.size else (source, target)


def _edge_weights(edges: Table, column: str, problems: Problems) -> NDArray[np.float64] | None:
    """Return the weights of the edges; report those that are negative or no finite numbers."""
    cells = edges.frame[column]
    numbers = as_numbers(cells, certain=True)
    if numbers is None:
        problems.add(f"{edges.name}: column {column!r} has other things than numbers; give weights, or none")
        return None
    values = numbers.values
    wrong = np.flatnonzero(~(values <= LARGEST) | (values < 0))

    def describe(row: int) -> str:
        cell = "no weight" if _is_blank(cells.iloc[row]) else f"weight {str(cells.iloc[row])!r}"
        return f"{cell} in column {column!r}; give a finite number that is not negative"

    problems.add_rows(edges.locate, wrong.tolist(), describe)
    return None if wrong.size else values


def _is_blank(cell: Any) -> bool:
    return cell is None or cell != cell or str(cell).strip() in ("", "<NA>")


def common_weight(weight: NDArray[np.float64] | None) -> float | None:
    """Return the weight of all edges, if it is the same and more than 0; None otherwise."""
    if weight is None or not weight.size or not (weight == weight[0]).all():
        return None
    return float(weight[0]) or None


def edge_matrix(
    ends: Ends, weight: NDArray[np.float64] | None, num_nodes: int, name: str, notes: list[str]
) -> sparse.csr_array:
    """Return the symmetric matrix [n, n] of the edges of one table: 1 for each, or their weights.

    Rows with the same edge in the same direction add their weights; of the two directions the heavier one counts, so
    that a table with every edge twice means the same as one with every edge once. Weight 0 is no edge.
    """
    source, target = ends
    loops = source == target
    if loops.any():
        notes.append(f"{name}: {pluralise(int(loops.sum()), 'edge')} from a node to itself dropped.")
    keep = ~loops if weight is None else ~loops & (weight > 0)
    if weight is not None and (zero := int((weight == 0).sum())):
        notes.append(f"{name}: {pluralise(zero, 'edge')} of weight 0 dropped.")
    value = np.ones(int(keep.sum()), np.float32) if weight is None else weight[keep]
    A = sparse.coo_array((value, (target[keep], source[keep])), shape=(num_nodes, num_nodes)).tocsr()
    A = A.maximum(A.T).tocsr()
    if weight is None:
        A.data[:] = 1
    duplicates = int(keep.sum()) - A.nnz // 2
    if duplicates:
        notes.append(f"{name}: {pluralise(duplicates, 'row')} merged: the same edge again, in either direction.")
    return A


def with_old_edges(new: sparse.csr_array, old: GraphRecord, new_weights: bool) -> sparse.csr_array:
    """Return new edges and those of a graph that they extend, as one symmetric matrix [n, n].

    An edge in both has its new weight if the new edges have weights, else its old one; so reading edges again that a
    graph has changes nothing.
    """
    source, target = old.edge_index.cpu().numpy()
    weight = old.get("edge_weight")
    value = np.ones(source.size) if weight is None else weight.cpu().numpy()
    before = sparse.coo_array((value, (target, source)), shape=new.shape).tocsr()
    first, second = (new, before) if new_weights else (before, new)
    rest = (second - second.multiply(first.astype(bool))).tocsr()
    rest.eliminate_zeros()
    return (first + rest).tocsr()


def as_edge_index(A: sparse.csr_array) -> tuple[Tensor, Tensor | None]:
    """Return ``edge_index``, sorted by target and source, and weights that are not all 1, of a symmetric matrix."""
    A.sort_indices()
    row = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
    edge_index = torch.from_numpy(np.stack([A.indices.astype(np.int64), row]))
    return edge_index, None if (A.data == 1).all() else torch.from_numpy(A.data.astype(np.float32))
