"""The sum of Eq. 8 as an operation: two sparse matrices mixed by β, the rows of one of them scaled to sum to 1."""

from typing import Any

import torch
from torch import Tensor

from graphpartner.graph.adjacency import csr, to_scipy, to_torch, with_values
from graphpartner.kernels.table import Kernels


def _numba() -> Any:
    from graphpartner.kernels import mix_numba

    return mix_numba


KERNELS = Kernels(cpu=_numba)


def mixed(attribute: Tensor, P: Tensor, beta: float) -> Tensor:
    """β P + (1 − β) Ã_attr, every row of Ã_attr divided by its sum; a row that sums to zero stays as it is.

    A_attr may have a hundred times the entries of P.

    Args:
        attribute: A_attr, a canonical CSR tensor.
        P: the topology, another one, in float64.
        beta: β; at 0 no entry of P is part of the result.

    Returns:
        A canonical CSR tensor, computed in float64 and stored as float32.
    """
    if (loops := KERNELS.on(attribute.device)) is not None:
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
