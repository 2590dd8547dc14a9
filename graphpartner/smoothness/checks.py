"""What every measure of smoothness asks of its arguments."""

import torch
from torch import Tensor

from graphpartner.errors import InputError


def check_embedding(embedding: Tensor) -> None:
    """An embedding is a floating-point tensor [..., n, d]."""
    if embedding.dim() < 2 or not embedding.is_floating_point():
        found = f"{list(embedding.shape)} of {embedding.dtype}"
        raise InputError(f"embedding is {found}; it should be a floating-point tensor [..., nodes, columns].")


def check_edges(edge_index: Tensor, num_nodes: int) -> Tensor:
    """The edge list as int64, once it is [2, E] and names no node outside 0 … num_nodes − 1."""
    integral = edge_index.layout == torch.strided and not (edge_index.is_floating_point() or edge_index.is_complex())
    if not integral or edge_index.dtype == torch.bool or edge_index.dim() != 2 or edge_index.shape[0] != 2:
        found = f"{list(edge_index.shape)} of {edge_index.dtype}"
        raise InputError(f"edge_index is {found}; it should be an integer tensor [2, edges].")
    if edge_index.numel() > 0:
        low, high = (int(end) for end in edge_index.aminmax())
        if low < 0 or high >= num_nodes:
            wrong = low if low < 0 else high
            raise InputError(f"edge_index names node {wrong}, but the nodes are 0 to {num_nodes - 1}.")
    return edge_index.long()
