"""The join as blocked products in PyTorch, on CPU or CUDA: for dense features, and for every graph on a GPU.

For a block of rows, the nodes within k hops take k sparse-times-dense products and the inner products one matrix
product; the pairs that pass both are decided exactly, since inner products are exact or float64:

- whole numbers up to 256 with squared norms below 2²⁴ are multiplied in float32. Every product and every partial sum
  is then a whole number that float32 represents, even if TF32 or bfloat16 inputs are enabled;
- everything else is multiplied in float64.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from graphpartner.enhance.blocks import largest_of_each_row
from graphpartner.enhance.features import Features
from graphpartner.enhance.rule import TOLERANCE, Rule
from graphpartner.graph.adjacency import csr, to_torch
from graphpartner.system.parallel import ranges

SPARSE_BELOW = 0.02  # share of non-zeros under which X Xᵀ is cheaper as a sparse-times-dense product
BYTES_PER_PAIR = 72  # of a block: reach, products, screen, and the pairs gathered from them
MAX_ROWS = 4096


@dataclass(frozen=True)
class TorchBlock:
    """Rows of the attribute graph as tensors: entries per row, sorted columns, cosines."""

    counts: Tensor
    columns: Tensor
    values: Tensor


def product_dtype(features: Features) -> torch.dtype:
    """Return float32 where it is exact, float64 otherwise."""
    largest = np.abs(features.matrix.data).max(initial=0)
    exact = features.kind != "real" and largest <= 256 and features.squared.max(initial=0) < 2**24
    return torch.float32 if exact else torch.float64


def dense_bytes(features: Features) -> int:
    """Return the bytes of X while the blocks are computed."""
    item = product_dtype(features).itemsize
    if _is_sparse(features):
        return int(features.matrix.nnz) * (8 + item)
    return features.num_nodes * features.num_features * item


def rows_within(memory: int, features: Features) -> int:
    """Return the number of rows per block that fits ``memory`` bytes."""
    per_row = BYTES_PER_PAIR * max(1, features.num_nodes) + 8 * features.num_features
    return max(1, min(MAX_ROWS, memory // per_row))


def _is_sparse(features: Features) -> bool:
    cells = max(1, features.num_nodes * features.num_features)
    return bool(features.matrix.nnz < SPARSE_BELOW * cells)


def dense_join(
    rule: Rule, A: sparse.csr_array, k: int, rows: int, device: torch.device, top: int | None = None
) -> Iterator[TorchBlock]:
    """Yield the rows of the attribute graph (Eq. 7) in blocks of ``rows``, on ``device``."""
    features = rule.features
    n = features.num_nodes
    dtype = product_dtype(features)
    sources = to_torch((A + sparse.eye_array(n)).T, torch.float32, device)  # its powers' columns are rows of (A + I)^k
    X = to_torch(features.matrix, dtype, device)
    is_sparse = _is_sparse(features)
    X = X if is_sparse else X.to_dense()
    squared = torch.from_numpy(features.squared).to(device)
    inverse = torch.where(squared > 0, squared, torch.inf).rsqrt()
    for start, stop in ranges(n, rows):
        near = _reach(sources, start, stop, k)
        own = to_torch(features.matrix[start:stop], dtype, device).to_dense() if is_sparse else X[start:stop]
        products = X @ own.T  # [n, block], like ``near``
        # a generous screen first, so that few pairs have to be decided exactly
        screen = rule.threshold * (1 - 1e-6) - 1e-12
        passing = products * inverse.to(dtype)[:, None] * inverse[start:stop].to(dtype)
        mask = (passing >= screen).logical_and_(near)
        diagonal = torch.arange(stop - start, device=device)
        mask[diagonal + start, diagonal] = True
        row, column = mask.T.nonzero(as_tuple=True)
        dot = products[column, row].to(torch.float64)
        row = row + start
        cosine = dot / (squared[row] * squared[column]).sqrt()
        keep = _keep(rule, dot, cosine, row, column) | (row == column)
        cosine[row == column] = 1.0
        row, column, value = row[keep], column[keep], cosine[keep].to(torch.float32)
        if top is not None:
            keep = largest_of_each_row(row, column, value, top)
            row, column, value = row[keep], column[keep], value[keep]
        yield TorchBlock(torch.bincount(row - start, minlength=stop - start), column.to(torch.int32), value)


def _reach(sources: Tensor, start: int, stop: int, k: int) -> Tensor:
    """Return [n, block], true where a node reaches a row of the block within k hops."""
    near = torch.zeros(sources.shape[0], stop - start, device=sources.device)
    own = torch.arange(stop - start, device=sources.device)
    near[own + start, own] = 1.0
    for _ in range(k):
        near = (sources @ near).clamp_(max=1.0)
    return near > 0


def _keep(rule: Rule, dot: Tensor, cosine: Tensor, row: Tensor, column: Tensor) -> Tensor:
    """Apply the rule on the device; only ties of whole numbers are decided on the CPU."""
    if not rule.exact:
        return cosine >= rule.threshold * (1 - TOLERANCE)
    keep = cosine >= rule.threshold + rule.margin
    ties = (~keep & (cosine >= rule.threshold - rule.margin)).nonzero(as_tuple=True)[0]
    if ties.numel():
        pairs = (dot[ties].cpu().numpy(), row[ties].cpu().numpy(), column[ties].cpu().numpy())
        keep[ties] = torch.from_numpy(rule.keep(*pairs)).to(keep.device)
    return keep


def join_torch_blocks(blocks: list[TorchBlock], num_nodes: int, device: torch.device) -> Tensor:
    """Return all blocks as one torch sparse CSR tensor; each is freed as soon as it is copied."""
    starts = torch.zeros(num_nodes + 1, dtype=torch.int64, device=device)
    if blocks:
        torch.cumsum(torch.cat([block.counts for block in blocks]), 0, out=starts[1:])
    total = sum(block.columns.numel() for block in blocks)
    columns = torch.empty(total, dtype=torch.int64, device=device)
    values = torch.empty(total, dtype=torch.float32, device=device)
    at = 0
    while blocks:
        block = blocks.pop(0)
        columns[at : at + block.columns.numel()] = block.columns
        values[at : at + block.columns.numel()] = block.values
        at += block.columns.numel()
    return csr(starts, columns, values, (num_nodes, num_nodes))
