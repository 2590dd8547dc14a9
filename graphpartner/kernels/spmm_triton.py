"""Sparse × dense products on a GPU, in Triton."""

import torch
import triton
import triton.language as tl
from torch import Tensor

DTYPES = (torch.float32,)


@triton.jit
def _spmm(crow, col, value, H, out, columns, LANES: tl.constexpr, ENTRIES: tl.constexpr, WIDE: tl.constexpr):
    i = tl.program_id(0)
    lane = tl.program_id(1) * LANES + tl.arange(0, LANES)
    inside_lane = lane < columns
    total = tl.zeros([LANES], tl.float32)
    end = tl.load(crow + i + 1)
    for start in range(tl.load(crow + i), end, ENTRIES):
        entry = start + tl.arange(0, ENTRIES)
        inside = entry < end
        j = tl.load(col + entry, mask=inside, other=0).to(tl.int64 if WIDE else tl.int32)
        weight = tl.load(value + entry, mask=inside, other=0)
        mask = inside[:, None] & inside_lane[None, :]
        total += tl.sum(tl.load(H + j[:, None] * columns + lane[None, :], mask=mask, other=0) * weight[:, None], 0)
    tl.store(out + i.to(tl.int64) * columns + lane, total, mask=inside_lane)


def spmm_power(csr: Tensor, H: Tensor, steps: int, order: Tensor | None) -> Tensor:
    """Return csr^steps H as :func:`graphpartner.kernels.spmm.spmm_power`, for a contiguous H and steps > 0."""
    H = H if order is None else H[order]
    crow, col, value = csr.crow_indices(), csr.col_indices(), csr.values()
    n, columns = csr.shape[0], H.shape[1]
    # The fastest on an H200: one warp fetches 32 entries of 64 columns at once, so that the long rows of a hub take few
    # steps; short rows leave room for more columns.
    lanes = min(256 if value.numel() < 16 * n else 64, max(16, triton.next_power_of_2(columns)))
    entries = (1024 if lanes < 64 else 2048) // lanes
    for _ in range(steps):
        out = H.new_empty(n, columns)
        _spmm[n, triton.cdiv(columns, lanes)](
            crow, col, value, H, out, columns, lanes, entries, H.numel() >= 2**31, num_warps=max(1, lanes // 128)
        )
        H = out
    return H if order is None else torch.empty_like(H).index_copy_(0, order, H)
