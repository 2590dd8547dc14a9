"""A budget for graphs whose attribute graph would not fit: the largest cosines of every row, and no more."""

import torch
from torch import Tensor


def largest_of_each_row(rows: Tensor, columns: Tensor, values: Tensor, top: int) -> Tensor:
    """Which entries to keep: the self pair and the ``top`` largest others of each row.

    Entries come sorted by row and column; of equal values the smaller column wins.
    """
    ranked = torch.where(rows == columns, torch.inf, values)  # the self pair comes first and is not counted
    order = torch.argsort(ranked, descending=True, stable=True)
    order = order[torch.argsort(rows[order], stable=True)]
    by_row = rows[order]
    first = torch.searchsorted(by_row, by_row)  # where each entry's row begins
    rank = torch.arange(rows.numel(), device=rows.device) - first
    keep = torch.empty(rows.numel(), dtype=torch.bool, device=rows.device)
    keep[order] = rank <= top
    return keep
