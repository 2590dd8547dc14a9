"""Products over edges on a GPU, in Triton."""

import triton
import triton.language as tl
from torch import Tensor

ENTRIES = 8  # edges fetched at once
LANES = 128  # columns of one program, over all groups


@triton.jit
def _weighted_sum(crow, col, order, values, H, out, groups, width, LANES: tl.constexpr, ENTRIES: tl.constexpr):
    i = tl.program_id(0)
    lane = tl.program_id(1) * LANES + tl.arange(0, LANES)
    columns = groups * width
    inside_lane = lane < columns
    group = lane // width
    total = tl.zeros([LANES], tl.float32)
    end = tl.load(crow + i + 1)
    for start in range(tl.load(crow + i), end, ENTRIES):
        place = start + tl.arange(0, ENTRIES)
        inside = place < end
        j = tl.load(col + place, mask=inside, other=0).to(tl.int64)
        edge = tl.load(order + place, mask=inside, other=0).to(tl.int64)
        mask = inside[:, None] & inside_lane[None, :]
        value = tl.load(values + edge[:, None] * groups + group[None, :], mask=mask, other=0)
        total += tl.sum(tl.load(H + j[:, None] * columns + lane[None, :], mask=mask, other=0) * value, 0)
    tl.store(out + i.to(tl.int64) * columns + lane, total, mask=inside_lane)


@triton.jit
def _dots(row, col, G, H, out, groups, width, GROUPS: tl.constexpr, WIDTH: tl.constexpr):
    edge = tl.program_id(0).to(tl.int64)
    group = tl.program_id(1) * GROUPS + tl.arange(0, GROUPS)
    column = tl.arange(0, WIDTH)
    mask = (group < groups)[:, None] & (column < width)[None, :]
    place = group[:, None] * width + column[None, :]
    i = tl.load(row + edge).to(tl.int64) * groups * width
    j = tl.load(col + edge).to(tl.int64) * groups * width
    product = tl.load(G + i + place, mask=mask, other=0) * tl.load(H + j + place, mask=mask, other=0)
    tl.store(out + edge * groups + group, tl.sum(product, 1), mask=group < groups)


def weighted_sum(crow: Tensor, col: Tensor, order: Tensor, values: Tensor, H: Tensor) -> Tensor:
    """Sum over edges as :func:`graphpartner.kernels.edge_products.weighted_sum`; values and H are contiguous."""
    n, groups, width = H.shape
    out = H.new_empty(H.shape)
    lanes = min(LANES, max(16, triton.next_power_of_2(groups * width)))
    grid = (n, triton.cdiv(groups * width, lanes))
    _weighted_sum[grid](crow, col, order, values, H, out, groups, width, lanes, ENTRIES, num_warps=1)
    return out


def dots(crow: Tensor, col: Tensor, row: Tensor, G: Tensor, H: Tensor) -> Tensor:
    """Multiply as :func:`graphpartner.kernels.edge_products.dots`; G and H [n, G, c] are contiguous."""
    _, groups, width = H.shape
    out = H.new_empty(col.numel(), groups)
    wide = triton.next_power_of_2(width)
    together = min(triton.next_power_of_2(groups), max(1, 1024 // wide))
    grid = (col.numel(), triton.cdiv(groups, together))
    _dots[grid](row, col, G, H, out, groups, width, together, wide, num_warps=1)
    return out
