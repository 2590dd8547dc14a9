"""Blocks of consecutive rows, as the kernels of the join return them, and their assembly to one CSR matrix.

Kernels that exploit symmetry return only the pairs j > i; :func:`mirrored` adds the self pairs and the other half by
counting, so that nothing has to be sorted.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

CSR = tuple[np.ndarray, np.ndarray, np.ndarray]  # row starts, columns, values


@dataclass(frozen=True)
class Block:
    """Rows ``start``, ``start`` + 1, …: entries per row, sorted columns, cosines."""

    start: int
    counts: np.ndarray
    columns: np.ndarray
    values: np.ndarray

    @property
    def rows(self) -> np.ndarray:
        """Row of every entry."""
        return np.repeat(np.arange(self.start, self.start + self.counts.size), self.counts)

    def only(self, keep: np.ndarray) -> "Block":
        """Return the block without the entries where ``keep`` is false."""
        counts = np.bincount(self.rows[keep] - self.start, minlength=self.counts.size)
        return Block(self.start, counts, self.columns[keep], self.values[keep])


def join_blocks(blocks: Iterable[Block], num_nodes: int) -> CSR:
    """Concatenate blocks of full rows."""
    parts = list(blocks)
    starts = _row_starts(np.concatenate([part.counts for part in parts]) if parts else np.zeros(0, dtype=np.int64))
    columns = np.empty(starts[-1], dtype=np.int64)
    values = np.empty(starts[-1], dtype=np.float32)
    at = 0
    while parts:
        part = parts.pop(0)  # freed as soon as it is copied
        columns[at : at + part.columns.size] = part.columns
        values[at : at + part.columns.size] = part.values
        at += part.columns.size
    return starts, columns, values


def mirrored(blocks: Iterable[Block], num_nodes: int) -> CSR:
    """Turn blocks of the pairs j > i, in row order, into full rows with self pairs of weight 1."""
    from graphpartner.enhance.blocks_numba import count_columns, mirror

    parts = list(blocks)
    above = np.concatenate([part.counts for part in parts]) if parts else np.zeros(0, dtype=np.int64)
    below = np.zeros(num_nodes, dtype=np.int64)
    for part in parts:
        count_columns(part.columns, below)
    starts = _row_starts(above + below + 1)
    columns = np.empty(starts[-1], dtype=np.int64)
    values = np.empty(starts[-1], dtype=np.float32)
    mirror([(part.start, part.counts, part.columns, part.values) for part in parts], starts, below, columns, values)
    return starts, columns, values


def _row_starts(counts: np.ndarray) -> np.ndarray:
    starts = np.zeros(counts.size + 1, dtype=np.int64)
    np.cumsum(counts, out=starts[1:])
    return starts


def largest_of_each_row(rows: Tensor, columns: Tensor, values: Tensor, top: int) -> Tensor:
    """Return a mask of the self pair and the ``top`` largest other entries of each row.

    Entries are sorted by row and column; among equal values the smaller column is kept.
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
