"""The log-denominators of GRACE's loss over all pairs of rows on a GPU, in Triton.

A program keeps its rows and reads all others; similarities stay on the chip. Factors are rounded to 16-bit floating
point, which has as many digits as TF32 where no factor is larger than 1, and summed in 32 bits.
"""

import math
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

WIDEST = 256  # columns of Z that fit on the chip
FINE = 2.0**14  # the largest weight of a gradient is scaled to this: twice as much is still a 16-bit number


@triton.jit
def _exponentials(own, other, row, column, size, scale):
    """Return 2^{scale (⟨z_a, z_b⟩ − 1)}, with 0 for a = b and beyond the end."""
    e = tl.exp2((tl.dot(own, tl.trans(other)) - 1.0) * scale)
    return tl.where((column[None, :] < size) & (row[:, None] != column[None, :]), e, 0.0)


@triton.jit
def _sums(Z, sums, size, scale, WIDTH: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    replica = tl.program_id(1).to(tl.int64)
    row, lane = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, WIDTH)
    Z += replica * size * WIDTH
    own = tl.load(Z + row[:, None] * WIDTH + lane[None, :], mask=row[:, None] < size, other=0.0)
    total = tl.zeros([ROWS], tl.float32)
    for start in range(0, size, COLUMNS):
        column = start + tl.arange(0, COLUMNS)
        other = tl.load(Z + column[:, None] * WIDTH + lane[None, :], mask=column[:, None] < size, other=0.0)
        total += tl.sum(_exponentials(own, other, row, column, size, scale), 1)
    tl.store(sums + replica * size + row, total, mask=row < size)


@triton.jit
def _gradient(Z, share, out, size, scale, WIDTH: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    replica = tl.program_id(1).to(tl.int64)
    row, lane = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, WIDTH)
    Z, out, share = Z + replica * size * WIDTH, out + replica * size * WIDTH, share + replica * size
    own = tl.load(Z + row[:, None] * WIDTH + lane[None, :], mask=row[:, None] < size, other=0.0)
    mine = tl.load(share + row, mask=row < size, other=0.0)
    total = tl.zeros([ROWS, WIDTH], tl.float32)
    for start in range(0, size, COLUMNS):
        column = start + tl.arange(0, COLUMNS)
        other = tl.load(Z + column[:, None] * WIDTH + lane[None, :], mask=column[:, None] < size, other=0.0)
        theirs = tl.load(share + column, mask=column < size, other=0.0)
        weight = _exponentials(own, other, row, column, size, scale) * (mine[:, None] + theirs[None, :])
        total += tl.dot(weight.to(tl.float16), other)
    tl.store(out + row[:, None] * WIDTH + lane[None, :], total, mask=row[:, None] < size)


def log_sums(Z: Tensor, temperature: float) -> Tensor:
    """Return ln Σ_{b ≠ a} e^{⟨z_a, z_b⟩/τ} for rows of length 1, [R, N, h] → [R, N]; h is at most ``WIDEST``."""
    return _TritonLogSums.apply(Z, temperature)


class _TritonLogSums(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, Z: Tensor, temperature: float) -> Tensor:
        width = max(16, triton.next_power_of_2(Z.shape[-1]))  # what a tensor core takes
        packed = torch.nn.functional.pad(Z.half(), (0, width - Z.shape[-1])).contiguous()
        sums = Z.new_empty(Z.shape[:2])
        _over_rows(_sums, packed, sums, temperature=temperature)
        ctx.save_for_backward(packed, sums)
        ctx.temperature, ctx.width = temperature, Z.shape[-1]
        return sums.log() + 1 / temperature

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        """∂/∂z_a = 1/τ Σ_b (g_a/Σ_a + g_b/Σ_b) e_ab z_b."""
        packed, sums = ctx.saved_tensors
        share = gradient / sums / ctx.temperature
        largest = share.abs().amax(1, keepdim=True).clamp(min=torch.finfo(share.dtype).tiny)
        out = sums.new_empty(packed.shape)
        _over_rows(_gradient, packed, (share / largest * FINE).contiguous(), out, temperature=ctx.temperature)
        return out[..., : ctx.width] * (largest / FINE)[..., None], None


def _over_rows(kernel: Any, Z: Tensor, *tensors: Tensor, temperature: float) -> None:
    """Launch one program per 128 rows of each replica."""
    replicas, size, width = Z.shape
    rows, columns = 128, 64
    scale = math.log2(math.e) / temperature
    kernel[triton.cdiv(size, rows), replicas](
        Z, *tensors, size, scale, width, rows, columns, num_warps=8, num_stages=2 if width > 128 else 3
    )
