"""Dirichlet energy (Eq. 5): how far apart the embeddings of neighbours are.

    E(H) = tr(Hᵀ L̃ H) = ½ Σ_ij a_ij ‖h_i/√(1+d_i) − h_j/√(1+d_j)‖²,   L̃ = I − D̃^-½ Ã D̃^-½

The second form is computed. A trace is the small difference of two large numbers once an embedding has gone
smooth, which is exactly when its energy is of interest; a sum of squares loses nothing.
"""

import torch
from torch import Tensor

from graphpartner.graph.adjacency import simple_edges
from graphpartner.graph.checks import check_edges, check_embedding
from graphpartner.system.errors import InputError

BLOCK = 1 << 22  # numbers gathered at once


def dirichlet_energy(embedding: Tensor, edge_index: Tensor) -> Tensor:
    r"""Compute the Dirichlet energy tr(HᵀL̃H) of an embedding (Eq. 5).

    The graph is taken as undirected; duplicates and self-loops in the edge list are ignored. Differences and sums are
    float64, the result has the type of the embedding. Differentiable in the embedding.

    Args:
        embedding: H, of shape [..., n, d]; leading dimensions are replicas.
        edge_index: the edges [2, E], or P = D̃^-½ Ã D̃^-½ as a torch sparse CSR tensor, which may be weighted.

    Returns:
        The energy, of shape [...]: a scalar for a single embedding.
    """
    check_embedding(embedding)
    num_nodes, num_columns = embedding.shape[-2:]
    if edge_index.layout == torch.sparse_csr:
        edges, weight, scale = _edges_of_normalized(edge_index.to(embedding.device), num_nodes)
    else:
        edges, weight, scale = _edges_of_list(edge_index.to(embedding.device), num_nodes)
    replicas = embedding.reshape(-1, num_nodes, num_columns)
    energy = replicas.new_zeros(replicas.shape[0], dtype=torch.float64)
    block = max(1, BLOCK // max(1, replicas.shape[0] * num_columns))
    for (source, target), part in zip(edges.split(block, dim=1), weight.split(block), strict=True):
        at_target = replicas[:, target].double() * scale[target, None]
        at_source = replicas[:, source].double() * scale[source, None]
        energy = energy + (at_target - at_source).square().sum(dim=2) @ part
    return energy.reshape(embedding.shape[:-2]).to(embedding.dtype)


def _edges_of_list(edge_index: Tensor, num_nodes: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return every edge once, its weight 1, and D̃^-½."""
    check_edges(edge_index, num_nodes)
    edges = simple_edges(edge_index, num_nodes)
    degree = torch.bincount(edges[1], minlength=num_nodes).double()
    edges = edges[:, edges[0] < edges[1]]
    return edges, degree.new_ones(edges.shape[1]), (1.0 + degree).rsqrt()


def _edges_of_normalized(P: Tensor, num_nodes: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return the same from P: its diagonal is 1/d̃, so that a_ij = P_ij √(d̃_i d̃_j)."""
    if tuple(P.shape) != (num_nodes, num_nodes):
        raise InputError(f"edge_index = matrix {list(P.shape)}: must be [{num_nodes}, {num_nodes}]")
    counts = P.crow_indices().diff()
    target = torch.repeat_interleave(torch.arange(num_nodes, device=P.device), counts)
    source, value = P.col_indices(), P.values().double()
    loop = source == target
    diagonal = value.new_zeros(num_nodes).index_add(0, target[loop], value[loop])
    root = diagonal.clamp_min(torch.finfo(torch.float64).tiny).rsqrt()
    fixed = value.new_zeros(num_nodes).index_add(0, target, value * root[source])  # P √d̃ = √d̃
    if bool((diagonal <= 0).any()) or not torch.allclose(fixed, root, rtol=1e-3):
        raise InputError("edge_index = sparse matrix: must be D̃^-½ Ã D̃^-½ with one self-loop at every node")
    once = source < target
    source, target = source[once], target[once]
    return torch.stack([source, target]), value[once] * root[source] * root[target], 1.0 / root
