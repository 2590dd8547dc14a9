"""The enhanced propagation matrix A_en (Eq. 8): topology and attributes, mixed by β."""

import math

import numpy as np
import torch
from torch import Tensor

from graphpartner.graph.adjacency import normalized_adjacency, with_values
from graphpartner.kernels.mix import canonical, mixed
from graphpartner.system.errors import InputError


def enhanced_adjacency(
    attribute: Tensor | None,
    edge_index: Tensor,
    num_nodes: int,
    beta: float = 0.7,
    edge_weight: Tensor | None = None,
) -> Tensor:
    r"""The enhanced propagation matrix of Eq. 8.

    .. math::
        A_{en} = \beta \tilde D^{-1/2} \tilde A \tilde D^{-1/2} + (1 - \beta) \tilde A_{attr}

    with the rows of :math:`\tilde A_{attr}` summing to 1. Rows receive: one step is ``A_en @ H``.

    Args:
        attribute: the result of :func:`attribute_graph`; not needed, and may be None, where ``beta`` is 1.
        edge_index: edges, sources above targets.
        num_nodes: how many nodes there are.
        beta: the weight of the topology, 0 ≤ β ≤ 1.
        edge_weight: weights of the edges; the attribute graph knows none.

    Returns:
        A torch sparse CSR tensor on the device of ``edge_index``, computed in float64 and stored as float32, columns
        sorted.
    """
    check_beta(beta)
    P = normalized_adjacency(edge_index, num_nodes, edge_weight, dtype=torch.float64)
    if beta == 1:
        return with_values(P, P.values().to(torch.float32))
    if attribute is None:
        raise InputError(f"attribute may be None only where beta is 1, got beta = {beta!r}")
    if tuple(attribute.shape) != (num_nodes, num_nodes):
        raise InputError(f"attribute must have shape [{num_nodes}, {num_nodes}], got {list(attribute.shape)}")
    return mixed(canonical(attribute.to(edge_index.device)), P, beta)


def check_beta(beta: float) -> None:
    """Raise :class:`InputError` for a β outside 0…1."""
    valid = isinstance(beta, (int, float, np.floating)) and not isinstance(beta, bool)
    if not valid or math.isnan(beta) or not 0 <= beta <= 1:
        raise InputError(f"beta must be a weight with 0 ≤ beta ≤ 1, got {beta!r}")
