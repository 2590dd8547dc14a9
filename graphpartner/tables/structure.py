"""Features of a graph whose nodes have none: the degree of a node, and its position in the graph.

The position of a node is its row in V Λ⁸, scaled to length 1. V are the leading eigenvectors of P = D̃^-½ Ã D̃^-½
(Eq. 1) and Λ their eigenvalues, found by subspace iteration from random vectors: 20 sparse products, seconds for 10⁵
nodes. The eighth power keeps what survives eight steps of propagation. Nodes near each other get similar rows.

A new node gets the mean position of its neighbours, repeated ten times for those whose neighbours are new as well. Old
nodes keep theirs: the eigenvectors of the larger graph would be others, on which the model has not been trained. A node
without neighbours is at the origin.
"""

from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from graphpartner.graph.adjacency import adjacency, normalized_adjacency

DIMENSIONS = 128
SPARE = 8  # additional columns, so that the last of those wanted converge too
ROUNDS, STEPS = 5, 4  # orthogonalised after every fourth step, before float32 loses the small eigenvalues
POWER = 8
NEW_NODE_ROUNDS = 10


@dataclass(frozen=True)
class Structure:
    """How structural features are computed.

    Attributes:
        dimensions: of the positions.
        seed: of the random vectors.
        mean: of the two degree features, when fitted.
        scale: their standard deviations.
    """

    dimensions: int = DIMENSIONS
    seed: int = 0
    mean: tuple[float, ...] = (0.0, 0.0)
    scale: tuple[float, ...] = (1.0, 1.0)

    @property
    def width(self) -> int:
        """The number of features."""
        return self.dimensions + len(self.mean)

    @classmethod
    def fit(cls, edge_index: Tensor, num_nodes: int) -> "Structure":
        """Fit the mean and scale of the degrees; a graph with fewer nodes has fewer dimensions."""
        degrees = _degrees(adjacency(edge_index, num_nodes))
        scale = degrees.std(axis=0)
        return replace(
            cls(dimensions=min(DIMENSIONS, num_nodes)),
            mean=tuple(degrees.mean(axis=0).tolist()),
            scale=tuple(np.where(scale > 0, scale, 1.0).tolist()),
        )

    def features(
        self, edge_index: Tensor, num_nodes: int, edge_weight: Tensor | None = None, old: Tensor | None = None
    ) -> Tensor:
        """Return features [n, width], the same for the same graph; in one that has grown, old nodes keep their rows."""
        degrees = _degrees(adjacency(edge_index, num_nodes))
        degrees = ((degrees - np.array(self.mean)) / np.array(self.scale)).astype(np.float32)
        if old is None:
            positions = _positions(edge_index, num_nodes, edge_weight, self.dimensions, self.seed)
            return torch.from_numpy(np.hstack([degrees, positions]))
        known, width = old.shape[0], degrees.shape[1]
        A = adjacency(edge_index, num_nodes, edge_weight)
        degree = np.maximum(A.sum(axis=1), 1e-12)
        mean = sparse.csr_array(sparse.diags_array(1.0 / degree[known:]) @ A[known:]).astype(np.float32)
        degrees[:known] = old[:, :width].numpy()
        positions = np.zeros((num_nodes, self.dimensions), np.float32)
        positions[:known] = old[:, width:].numpy()
        for _ in range(NEW_NODE_ROUNDS):
            positions[known:] = _unit_rows(mean @ positions)
        return torch.from_numpy(np.hstack([degrees, positions]))


def _degrees(A: sparse.csr_array) -> NDArray[np.float64]:
    """Return ln(1 + degree) and ln(1 + mean degree of the neighbours), [n, 2]."""
    degree = np.diff(A.indptr).astype(np.float64)
    around = np.divide(A @ degree, degree, out=np.zeros_like(degree), where=degree > 0)
    return np.log1p(np.stack([degree, around], axis=1))


def _positions(
    edge_index: Tensor, n: int, edge_weight: Tensor | None, dimensions: int, seed: int
) -> NDArray[np.float32]:
    """Return the rows of V Λ⁸, scaled to length 1, [n, dimensions]."""
    P = normalized_adjacency(edge_index, n, edge_weight)  # torch multiplies on all cores
    Q = np.random.default_rng(seed).standard_normal((n, min(n, dimensions + SPARE)), dtype=np.float32)
    for _ in range(ROUNDS):
        for _ in range(STEPS):
            Q = (P @ torch.from_numpy(Q)).numpy()
        Q = _orthonormal(Q)
    value, turn = np.linalg.eigh((Q.T @ (P @ torch.from_numpy(Q)).numpy()).astype(np.float64))
    order = np.argsort(-value)[:dimensions]
    V = Q @ turn[:, order].astype(np.float32)
    V *= np.where(np.take_along_axis(V, np.abs(V).argmax(axis=0)[None], axis=0) < 0, -1.0, 1.0)  # fixes the sign
    isolated = P.crow_indices().diff().numpy() <= 1  # an edge to itself only
    found = np.where(isolated[:, None], 0.0, V * np.clip(value[order], 0.0, None) ** POWER)
    return np.pad(_unit_rows(found.astype(np.float32)), ((0, 0), (0, dimensions - found.shape[1])))


def _orthonormal(Q: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return an orthonormal basis of the columns, by the eigenvectors of QᵀQ: cheaper than QR for a tall matrix."""
    value, turn = np.linalg.eigh((Q.T @ Q).astype(np.float64))
    nonzero = value > 1e-10 * value[-1]
    return Q @ (turn[:, nonzero] / np.sqrt(value[nonzero])).astype(np.float32)


def _unit_rows(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.divide(rows, length, out=np.zeros_like(rows), where=length > 0)
