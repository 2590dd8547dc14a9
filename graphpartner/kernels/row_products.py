"""Row-wise inner products of two matrices, and the cosine score of Eq. 18 built on them.

The gradients are written out, so that each operation takes one pass over both matrices forward and one backward; by
autograd, the cosine score would take twenty.
"""

from typing import Any

import torch
from torch import Tensor

from graphpartner.kernels.table import Kernels


def row_products(H: Tensor, G: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return ⟨h_i, g_i⟩, ⟨h_i, h_i⟩ and ⟨g_i, g_i⟩ for the rows of H and G [..., n, h]: three tensors [..., n]."""
    dots, own, other = _RowProducts.apply(H, G)
    return dots, own, other


class _RowProducts(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, H: Tensor, G: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        ctx.save_for_backward(H, G)
        if (loops := _loops(H)) is not None:
            dots, own, other = loops.row_products(H, G)
            return dots, own, other
        return (H * G).sum(-1), (H * H).sum(-1), (G * G).sum(-1)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor]:
        return row_products_gradient(*ctx.saved_tensors, *gradients)


def row_products_gradient(H: Tensor, G: Tensor, dots: Tensor, own: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
    """Return the gradients by H and G, given those by the three products."""
    if (loops := _loops(H)) is not None:
        by_h, by_g = loops.row_products_gradient(H, G, dots, own, other)
        return by_h, by_g
    dots, own, other = dots[..., None], own[..., None], other[..., None]
    return dots * G + 2 * own * H, dots * H + 2 * other * G


def rows_of(H: Tensor, index: Tensor) -> Tensor:
    """Return rows of H [..., n, c] by an index [m] shared by all replicas, or [..., m] with one per replica."""
    if index.dim() == 1:
        return H.index_select(-2, index)
    return H.gather(-2, index[..., None].expand(*index.shape, H.shape[-1]))


def _loops(H: Tensor) -> Any | None:
    return Kernels.on(H.device).row_products if H.dtype == torch.float32 and H.dim() <= 3 else None


def cosine_score(H: Tensor, G: Tensor, negatives: Tensor) -> Tensor:
    """Return 1/n Σ_i ⟨ĥ_i, ĝ_i⟩ − ⟨mean_i ĥ_i, mean_{k∈Ω} ĝ_k⟩, [...], for H and G [..., n, h] and Ω [τ] or [..., τ].

    This is Eq. 18 with cosines and self positives. ĥ_i is h_i scaled to length one; a zero row stays zero.
    """
    return _CosineScore.apply(H, G, negatives)


class _CosineScore(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, H: Tensor, G: Tensor, negatives: Tensor) -> Tensor:
        dots, own, other = row_products(H, G)
        per_h, per_g = inverse_root(own), inverse_root(other)
        cosine = dots * per_h * per_g
        mean = (per_h[..., None, :] @ H).squeeze(-2) / H.shape[-2]  # mean_i ĥ_i
        units = rows_of(G, negatives) * rows_of(per_g[..., None], negatives)  # ĝ_k
        against = units.mean(-2)
        ctx.save_for_backward(H, G, negatives, per_h, per_g, cosine, mean, units, against)
        return cosine.mean(-1) - (mean * against).sum(-1)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None]:
        """Use ∂ĥ = (∂h − ⟨ĥ, ∂h⟩ ĥ) / ‖h‖, and the same for g."""
        H, G, negatives, per_h, per_g, cosine, mean, units, against = ctx.saved_tensors
        share = gradient[..., None] / H.shape[-2]
        weight_h, weight_g = share * per_h, share * per_g
        along = (H @ against[..., None]).squeeze(-1) * per_h  # ⟨ĥ_i, mean_k ĝ_k⟩
        by_h, by_g = row_products_gradient(
            H, G, weight_h * per_g, weight_h * per_h * (along - cosine) / 2, -weight_g * per_g * cosine / 2
        )
        by_h.addcmul_(weight_h[..., None], against[..., None, :], value=-1)
        pull = units * (units @ mean[..., None]) - mean[..., None, :]
        pull *= gradient[..., None, None] / units.shape[-2] * rows_of(per_g[..., None], negatives)
        index = negatives.expand(*pull.shape[:-1])[..., None].expand(pull.shape)
        return by_h, by_g.scatter_add_(-2, index, pull), None


def inverse_root(square: Tensor) -> Tensor:
    """Return 1 / √s, but 1 for rows shorter than 1e-12, which count as zero and so have a finite gradient."""
    return square.masked_fill(square < 1e-24, 1).rsqrt()
