"""Rows of H, and row by row inner products of two matrices: what scores of node pairs are made of."""

from typing import Any

import torch
from torch import Tensor

from graphpartner.compiled import compiled


def row_products(H: Tensor, G: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """⟨h_i, g_i⟩, ⟨h_i, h_i⟩ and ⟨g_i, g_i⟩ for every row of H and G [..., n, h]: three tensors [..., n].

    One pass over both matrices forward and one backward, where writing the products down would take six.
    """
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
    """The gradients by H and G, from those by the three products."""
    if (loops := _loops(H)) is not None:
        by_h, by_g = loops.row_products_gradient(H, G, dots, own, other)
        return by_h, by_g
    dots, own, other = dots[..., None], own[..., None], other[..., None]
    return dots * G + 2 * own * H, dots * H + 2 * other * G


def rows_of(H: Tensor, index: Tensor) -> Tensor:
    """The given rows of H [..., n, c]: the same ones of every replica, or, for an index [..., m], its own."""
    if index.dim() == 1:
        return H.index_select(-2, index)
    return H.gather(-2, index[..., None].expand(*index.shape, H.shape[-1]))


def _loops(H: Tensor) -> Any | None:
    return compiled(__name__, H.device.type) if H.dtype == torch.float32 and H.dim() <= 3 else None
