"""A graph that grows: the nodes it had come first and keep their places, new ones follow as in their table."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor
from torch_geometric.data import Data

from graphpartner.graph.adjacency import to_scipy, to_torch
from graphpartner.graph.identity import as_keys, positions


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


def with_edges(old: Data, new: sparse.csr_array, new_weights: bool) -> sparse.csr_array:
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
