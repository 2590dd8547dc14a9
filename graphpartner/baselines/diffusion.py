"""The diffusion view of MVGRL: personalised PageRank, where every node sees every other, near ones more."""

import torch
from torch import Tensor

from graphpartner.errors import InputError
from graphpartner.graph.adjacency import normalized_adjacency
from graphpartner.model.sparse import SparseMatrix

EPSILONS = (1e-5, 1e-4, 1e-3, 1e-2)
MOST_NODES = 30_000  # beyond, the n × n matrix and its inverse take more than 11 GB; 18 where the graph is directed


def personalized_pagerank(
    edge_index: Tensor, num_nodes: int, alpha: float, device: torch.device | str, edge_weight: Tensor | None = None
) -> Tensor:
    """S = α (I − (1 − α) D̃^-½ Ã D̃^-½)⁻¹, dense, [n, n]."""
    if num_nodes > MOST_NODES:
        raise InputError(
            f"a graph of {num_nodes} nodes: MVGRL's diffusion is a dense matrix, so n must be at most {MOST_NODES}"
        )
    P = normalized_adjacency(edge_index, num_nodes, edge_weight).to(device)
    system = P.to_dense().mul_(alpha - 1)
    system.diagonal().add_(1)
    if not is_symmetric(P):  # a directed graph: 2 / α does not bound its condition, float32 is too little
        return torch.linalg.inv(system.double()).mul_(alpha).float()
    # eigenvalues between α and 2 − α: float32 and a Cholesky factor suffice
    return torch.cholesky_inverse(torch.linalg.cholesky(system)).mul_(alpha)


def is_symmetric(matrix: Tensor) -> bool:
    """Is a square torch sparse CSR tensor its own transpose, up to the rounding of its values?"""
    T = matrix.to_sparse_csc()  # the parts of Mᵀ in CSR form
    same_pattern = torch.equal(matrix.crow_indices(), T.ccol_indices()) and torch.equal(
        matrix.col_indices(), T.row_indices()
    )
    return same_pattern and torch.allclose(matrix.values(), T.values())


def sparsified(S: Tensor, num_edges: int) -> SparseMatrix:
    """S as MVGRL's authors treat CiteSeer: small entries cut away, every column scaled to [0, 1].

    Of the thresholds ε the one is taken that leaves the mean number of entries a row nearest to the mean degree.
    """
    n = S.shape[0]
    epsilon = min(EPSILONS, key=lambda each: abs(int((each <= S).sum()) - num_edges) / n)
    kept = S.masked_fill(epsilon > S, 0)
    low, high = kept.min(0).values, kept.max(0).values
    scaled = (kept - low) / (high - low).masked_fill(high == low, 1)
    return SparseMatrix(scaled.to_sparse_csr())
