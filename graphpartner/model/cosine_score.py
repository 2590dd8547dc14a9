"""Eq. 18 with cosines and self positives, with its gradient written out: two passes over H and G instead of twenty."""

from typing import Any

import torch
from torch import Tensor

from graphpartner.model.row_products import row_products, row_products_gradient, rows_of


def cosine_score(H: Tensor, G: Tensor, negatives: Tensor) -> Tensor:
    """1/n Σ_i ⟨ĥ_i, ĝ_i⟩ − ⟨mean_i ĥ_i, mean_{k∈Ω} ĝ_k⟩ for H and G [..., n, h] and Ω [τ] or [..., τ]: [...].

    ĥ_i is h_i scaled to length one; a zero row stays zero.
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
        """With ∂ĥ = (∂h − ⟨ĥ, ∂h⟩ ĥ) / ‖h‖, and the same for g."""
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
    """1 / √s, and 1 for a row shorter than 1e-12: it counts as zero and stays so, with a finite gradient."""
    return square.masked_fill(square < 1e-24, 1).rsqrt()
