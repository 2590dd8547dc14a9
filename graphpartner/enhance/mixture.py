"""The enhanced propagation matrix A_en (Eq. 8): topology and attributes mixed by β."""

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
    r"""Return the enhanced propagation matrix of Eq. 8.

    .. math::
        A_{en} = \beta \tilde D^{-1/2} \tilde A \tilde D^{-1/2} + (1 - \beta) \tilde A_{attr}

    with the rows of :math:`\tilde A_{attr}` summing to 1. Rows receive: one step is ``A_en @ H``.

    Args:
        attribute: the result of :func:`attribute_graph`; may be None if ``beta`` is 1.
        edge_index: edges, sources above targets.
        num_nodes: number of nodes.
        beta: the weight of the topology, 0 ≤ β ≤ 1.
        edge_weight: weights of the edges, for the topology alone.

    Returns:
        A torch sparse CSR tensor on the device of ``edge_index``, computed in float64 and stored as float32, columns
        sorted.
    """
    check_beta(beta)
    P = normalized_adjacency(edge_index, num_nodes, edge_weight, dtype=torch.float64)
    if beta == 1:
        return with_values(P, P.values().to(torch.float32))
    if attribute is None:
        raise InputError(f"attribute = None: must be an attribute graph unless beta is 1, not {beta!r}")
    if tuple(attribute.shape) != (num_nodes, num_nodes):
        raise InputError(f"attribute has shape {list(attribute.shape)}: must be [{num_nodes}, {num_nodes}]")
    return mixed(canonical(attribute.to(edge_index.device)), P, beta)


def check_beta(beta: float) -> None:
    """Raise :class:`InputError` unless 0 ≤ β ≤ 1."""
    valid = isinstance(beta, (int, float, np.floating)) and not isinstance(beta, bool)
    if not valid or math.isnan(beta) or not 0 <= beta <= 1:
        raise InputError(f"beta = {beta!r}: must be a weight, 0 ≤ beta ≤ 1")
