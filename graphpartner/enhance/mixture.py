"""The enhanced propagation matrix A_en (Eq. 8): topology and attributes, mixed by β."""

import math

import numpy as np
import torch
from torch import Tensor

from graphpartner.compiled import compiled
from graphpartner.errors import InputError
from graphpartner.graph.adjacency import csr, normalized_adjacency, to_scipy, to_torch, with_values


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
    return mix(canonical(attribute.to(edge_index.device)), P, beta)


def mix(attribute: Tensor, P: Tensor, beta: float) -> Tensor:
    """β P + (1 − β) Ã_attr, every row of Ã_attr divided by its sum; a row that sums to zero stays as it is.

    A_attr may have a hundred times the entries of P.

    Args:
        attribute: A_attr, a canonical CSR tensor.
        P: the topology, another one, in float64.
        beta: β; at 0 no entry of P is part of the result.

    Returns:
        A canonical CSR tensor, computed in float64 and stored as float32.
    """
    if (loops := compiled(__name__, attribute.device.type)) is not None:
        return loops.mix(attribute, P, beta)
    crow, weights = attribute.crow_indices(), attribute.values().double()
    sums = torch.segment_reduce(weights, "sum", offsets=crow, initial=0)
    scale = (1 - beta) / torch.where(sums == 0, 1, sums)
    mixed = with_values(attribute, weights * scale.repeat_interleave(crow.diff()))
    if beta > 0:
        mixed = added(mixed, with_values(P, beta * P.values()))
    return with_values(mixed, mixed.values().float())


def added(A: Tensor, B: Tensor) -> Tensor:
    """A + B of two canonical CSR tensors, where B has far fewer entries; A's values may be overwritten.

    The entries of B are looked up among A's; only where some are missing there, A is written anew.
    """
    keys, wanted = entry_keys(A), entry_keys(B)
    place = torch.searchsorted(keys, wanted)
    known = torch.zeros_like(wanted, dtype=torch.bool)
    inside = place < keys.numel()
    known[inside] = keys[place[inside]] == wanted[inside]
    A.values()[place[known]] += B.values()[known]
    place, column, value = place[~known], B.col_indices()[~known], B.values()[~known]
    if not place.numel():
        return A
    new = place + torch.arange(place.numel(), device=place.device)  # where these go in the sum
    old = torch.ones(keys.numel() + new.numel(), dtype=torch.bool, device=new.device)
    old[new] = False
    columns, values = (torch.empty(old.shape, dtype=part.dtype, device=old.device) for part in (column, value))
    columns[old], columns[new] = A.col_indices(), column
    values[old], values[new] = A.values(), value
    rows = torch.arange(A.shape[0] + 1, device=old.device) * A.shape[1]
    return csr(A.crow_indices() + torch.searchsorted(wanted[~known], rows), columns, values, A.shape)


def entry_keys(matrix: Tensor) -> Tensor:
    """Row · columns + column of every entry of a CSR tensor: ascending where it is canonical."""
    rows = torch.arange(matrix.shape[0], device=matrix.device)
    return (rows * matrix.shape[1]).repeat_interleave(matrix.crow_indices().diff()) + matrix.col_indices()


def canonical(matrix: Tensor) -> Tensor:
    """A CSR tensor whose rows are sorted and hold no entry twice: itself if it is one."""
    after = matrix.col_indices().diff() > 0
    begins = matrix.crow_indices()[1:-1]
    after[begins[(begins > 0) & (begins <= after.numel())] - 1] = True  # the first entry of a row comes after any
    return matrix if after.all() else to_torch(to_scipy(matrix), matrix.dtype, matrix.device)


def check_beta(beta: float) -> None:
    """Raise :class:`InputError` for a β outside 0…1."""
    valid = isinstance(beta, (int, float, np.floating)) and not isinstance(beta, bool)
    if not valid or math.isnan(beta) or not 0 <= beta <= 1:
        raise InputError(f"beta must be a weight with 0 ≤ beta ≤ 1, got {beta!r}")
