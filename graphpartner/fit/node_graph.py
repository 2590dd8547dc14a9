"""A graph that survives being cut into rows, as scikit-learn's cross-validation does to all it is given."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor
from torch_geometric.data import Data

from graphpartner.errors import InputError


class NodeGraph:
    """An adjacency [n, n], and which of its nodes are meant: all, or those that are left after a cut.

    A matrix that is cut into rows no longer says which rows these were; ``NodeGraph(A)[rows]`` does, and keeps A whole.

    Args:
        adjacency: SciPy sparse or dense, square; (i, j) is the weight of the edge j → i.
        rows: the nodes meant, all if not given.
    """

    def __init__(self, adjacency: Any, rows: NDArray[np.int64] | None = None) -> None:
        full = sparse.csr_array(adjacency)
        if full.shape[0] != full.shape[1]:
            raise InputError(
                f"graph has shape {full.shape}: must be square, one row and column a node; in cross-validation, which "
                "cuts matrices into rows, wrap it: graphpartner.NodeGraph(adjacency)"
            )
        wrong = full.data[~(np.isfinite(full.data) & (full.data >= 0))]
        if wrong.size:
            raise InputError(f"graph has an edge of weight {wrong[0]}: weights must be finite and not negative")
        self.full = full
        self.known: NDArray[np.int64] | None = None  # among which nodes the edges are known, None: all
        self.rows = np.arange(full.shape[0]) if rows is None else np.asarray(rows)

    @staticmethod
    def of(graph: Any, num_rows: int) -> "NodeGraph":
        """A graph as users give it, for so many rows of features."""
        made = graph if isinstance(graph, NodeGraph) else NodeGraph(graph)
        if len(made) != num_rows:
            raise InputError(f"graph has {len(made)} nodes: must have {num_rows}, one a row of X")
        return made

    @staticmethod
    def restored(data: Data, rows: NDArray[np.int64], num_nodes: int) -> "NodeGraph":
        """A cut of a graph of so many nodes, of which the edges among these rows alone are known."""
        weight = data.get("edge_weight")
        values = np.ones(data.edge_index.shape[1]) if weight is None else weight.numpy()
        source, target = data.edge_index.numpy()
        entries = (values, (rows[target], rows[source]))
        made = NodeGraph(sparse.coo_array(entries, shape=(num_nodes, num_nodes)), rows)
        made.known = rows
        return made

    @property
    def shape(self) -> tuple[int, int]:
        """The nodes meant, and all nodes."""
        return len(self.rows), self.full.shape[0]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, key: Any) -> "NodeGraph":
        if isinstance(key, tuple):
            key = key[0]
        return NodeGraph(self.full, self.rows[key])

    def same(self, other: "NodeGraph") -> bool:
        """Whether both are cuts of one graph, as far as the other is known: then their rows name the same nodes."""
        if self.full.shape != other.full.shape:
            return False
        if other.known is not None:
            ours, theirs = (each.among(other.known) for each in (self, other))
            return all(
                (one is None and two is None) or (one is not None and two is not None and torch.equal(one, two))
                for one, two in zip(ours, theirs, strict=True)
            )
        return self.full is other.full or (self.full != other.full).nnz == 0

    def among(self, nodes: NDArray[np.int64]) -> tuple[Tensor, Tensor | None]:
        """The edges among these nodes, numbered in this order, in both directions, and their weights if they differ."""
        cut = self.full[nodes][:, nodes]
        both = cut.maximum(cut.T).tocsr()
        both.sort_indices()
        both = both.tocoo()
        edge_index = torch.from_numpy(np.stack([both.col, both.row]).astype(np.int64))
        weight = torch.tensor(both.data, dtype=torch.float32)
        return edge_index, None if bool((weight == 1).all()) else weight
