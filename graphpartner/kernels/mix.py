"""The sum of Eq. 8: two sparse matrices mixed by β, one of them scaled so that its rows sum to 1."""

import torch
from torch import Tensor

from graphpartner.graph.adjacency import csr, to_scipy, to_torch, with_values
from graphpartner.kernels.table import Kernels


def mixed(attribute: Tensor, P: Tensor, beta: float) -> Tensor:
    """Return β P + (1 − β) Ã_attr, where Ã_attr is A_attr with every row divided by its sum, if that is not zero.

    A_attr may have a hundred times as many entries as P.

    Args:
        attribute: A_attr, a canonical CSR tensor.
        P: the topology, a canonical CSR tensor in float64.
        beta: β; at 0 the result has no entry of P.

    Returns:
        A canonical CSR tensor, computed in float64 and stored as float32.
    """
    if (loops := Kernels.on(attribute.device).mix) is not None:
        return loops.mixed(attribute, P, beta)
    crow, weights = attribute.crow_indices(), attribute.values().double()
    sums = torch.segment_reduce(weights, "sum", offsets=crow, initial=0)
    scale = (1 - beta) / torch.where(sums == 0, 1, sums)
    mixed = with_values(attribute, weights * scale.repeat_interleave(crow.diff()))
    if beta > 0:
        mixed = added(mixed, with_values(P, beta * P.values()))
    return with_values(mixed, mixed.values().float())


def added(A: Tensor, B: Tensor) -> Tensor:
    """Return A + B for canonical CSR tensors, where B has far fewer entries; the values of A may be overwritten.

    The entries of B are looked up among those of A, which is rebuilt only where some are missing.
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
    new = place + torch.arange(place.numel(), device=place.device)  # their places in the sum
    old = torch.ones(keys.numel() + new.numel(), dtype=torch.bool, device=new.device)
    old[new] = False
    columns, values = (torch.empty(old.shape, dtype=part.dtype, device=old.device) for part in (column, value))
    columns[old], columns[new] = A.col_indices(), column
    values[old], values[new] = A.values(), value
    rows = torch.arange(A.shape[0] + 1, device=old.device) * A.shape[1]
    return csr(A.crow_indices() + torch.searchsorted(wanted[~known], rows), columns, values, A.shape)


def entry_keys(matrix: Tensor) -> Tensor:
    """Return row · columns + column for every entry of a CSR tensor: ascending if it is canonical."""
    rows = torch.arange(matrix.shape[0], device=matrix.device)
    return (rows * matrix.shape[1]).repeat_interleave(matrix.crow_indices().diff()) + matrix.col_indices()


def canonical(matrix: Tensor) -> Tensor:
    """Return the tensor with the columns of every row sorted and without duplicates: itself if it is already."""
    after = matrix.col_indices().diff() > 0
    begins = matrix.crow_indices()[1:-1]
    after[begins[(begins > 0) & (begins <= after.numel())] - 1] = True  # the first entry of a row may have any column
    return matrix if after.all() else to_torch(to_scipy(matrix), matrix.dtype, matrix.device)
