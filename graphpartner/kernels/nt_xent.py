"""GRACE's loss (NT-Xent) over all pairs of nodes of two views, block by block.

The 2n × 2n similarities are never stored: a block of them is computed, used and discarded, and computed again for the
gradient. They are symmetric, so half of the blocks suffice. On a GPU a compiled loop needs no memory for blocks at
all; with or without it, products round their factors there, cosines to three digits.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from graphpartner.kernels.table import Kernels

BLOCK = 2048


def nt_xent(first: Tensor, second: Tensor, temperature: float, block: int = BLOCK) -> Tensor:
    """Return GRACE's loss [R] for the projections of n nodes in two views, [R, n, h] each.

    With z the projections of both views, z⁺ that of the same node in the other view and θ the cosine:

        L = 1/(2n) Σ_a [ln Σ_{b ≠ a} e^{θ(z_a, z_b)/τ} − θ(z_a, z_a⁺)/τ].

    Every other node of both views is a negative of z_a.
    """
    first, second = (torch.nn.functional.normalize(Z, dim=-1) for Z in (first, second))
    Z = torch.cat([first, second], 1)
    loops = Kernels.on(Z.device).nt_xent
    if loops is not None and Z.dtype == torch.float32 and Z.shape[-1] <= loops.WIDEST:
        log_sums = loops.log_sums(Z, temperature)
    else:
        log_sums = _LogSums.apply(Z, temperature, block)
    positive = (first * second).sum(-1)
    return log_sums.mean(-1) - positive.mean(-1) / temperature


class _LogSums(torch.autograd.Function):
    """Z ↦ ln Σ_{b ≠ a} e^{⟨z_a, z_b⟩/τ} for rows of length 1, [R, N, h] → [R, N]."""

    @staticmethod
    def forward(ctx: Any, Z: Tensor, temperature: float, block: int) -> Tensor:
        sums = Z.new_zeros(Z.shape[:2])
        with _fast_products():
            for rows, columns, exponentials in _blocks(Z, temperature, block):
                sums[:, rows] += exponentials.sum(2)
                if rows != columns:
                    sums[:, columns] += exponentials.sum(1)
        ctx.save_for_backward(Z, sums)
        ctx.temperature, ctx.block = temperature, block
        return sums.log() + 1 / temperature

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        """∂/∂z_a = 1/τ Σ_b (g_a/Σ_a + g_b/Σ_b) e_ab z_b."""
        Z, sums = ctx.saved_tensors
        share = gradient / sums / ctx.temperature
        out = torch.zeros_like(Z)
        with _fast_products():
            for rows, columns, exponentials in _blocks(Z, ctx.temperature, ctx.block):
                exponentials *= share[:, rows, None] + share[:, None, columns]
                out[:, rows].baddbmm_(exponentials, Z[:, columns])
                if rows != columns:
                    out[:, columns].baddbmm_(exponentials.mT, Z[:, rows])
        return out, None, None


def _blocks(Z: Tensor, temperature: float, block: int) -> Iterator[tuple[slice, slice, Tensor]]:
    """Yield e_ab = e^{(⟨z_a, z_b⟩ − 1)/τ} ≤ 1, with e_aa = 0, for the blocks on and above the diagonal."""
    size = Z.shape[1]
    block = max(1, round(block / Z.shape[0] ** 0.5))  # the blocks of all replicas together stay in the cache
    parts = [slice(first, min(first + block, size)) for first in range(0, size, block)]
    least = Z.new_full((), -1 / temperature)
    for place, rows in enumerate(parts):
        for columns in parts[place:]:
            exponentials = torch.baddbmm(least, Z[:, rows], Z[:, columns].mT, alpha=1 / temperature).exp_()
            if rows == columns:
                exponentials.diagonal(dim1=1, dim2=2).zero_()
            yield rows, columns, exponentials


@contextmanager
def _fast_products() -> Iterator[None]:
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = True
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before
