"""A graph that grows: the nodes it had come first and keep their places, new ones follow as in their table."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from graphpartner.graph.adjacency import to_scipy, to_torch
from graphpartner.graph.edges import Ends, merged_edges
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


def all_edges(
    old: Data | None, ends: Ends, weight: NDArray[np.float64] | None, num_nodes: int, name: str, notes: list[str]
) -> tuple[Tensor, Tensor | None]:
    """Old edges and new ones, merged; where only one of the two has weights, an edge of the other weighs 1."""
    if old is None:
        return merged_edges(ends, weight, num_nodes, name, notes)
    source, target = old.edge_index.cpu().numpy()
    once = source < target
    old_weight = old.get("edge_weight")
    if old_weight is not None or weight is not None:
        before = np.ones(source.size) if old_weight is None else old_weight.cpu().numpy().astype(np.float64)
        now = np.ones(ends[0].size) if weight is None else weight
        weight = np.concatenate([before[once], now])
    both = (np.concatenate([source[once], ends[0]]), np.concatenate([target[once], ends[1]]))
    return merged_edges(both, weight, num_nodes, name, notes)


def replaced(old: Tensor, new: Tensor, rows: NDArray[np.int64]) -> Tensor:
    """Features of all nodes: the new ones where a row of the new table is that node, else the old ones."""
    take = np.concatenate([np.arange(old.shape[0]), np.zeros(int((rows >= old.shape[0]).sum()), np.int64)])
    take[rows] = old.shape[0] + np.arange(rows.size)
    if old.layout == torch.strided:
        return torch.cat([old, new])[torch.from_numpy(take)]
    from scipy import sparse

    return to_torch(sparse.vstack([to_scipy(old), to_scipy(new)], format="csr")[take])


def placed(old: Tensor | None, new: NDArray, rows: NDArray[np.int64], num_nodes: int, nothing: int | bool) -> Tensor:
    """One value a node: the old ones, and over them those of the new table that say something."""
    values = torch.full((num_nodes,), nothing, dtype=torch.bool if isinstance(nothing, bool) else torch.int64)
    if old is not None:
        values[: old.shape[0]] = old
    said = new != nothing
    values[torch.from_numpy(rows[said])] = torch.from_numpy(new[said]).to(values.dtype)
    return values
