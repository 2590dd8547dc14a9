"""Row by row inner products of two matrices, and of each with itself: what scores of node pairs are made of."""

from functools import cache
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import torch
from torch import Tensor


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
        if (compiled := _kernels(H)) is not None:
            return compiled.row_products(H, G)
        return (H * G).sum(-1), (H * H).sum(-1), (G * G).sum(-1)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor]:
        H, G = ctx.saved_tensors
        if (compiled := _kernels(H)) is not None:
            return compiled.row_products_gradient(H, G, *gradients)
        dots, own, other = (gradient[..., None] for gradient in gradients)
        return dots * G + 2 * own * H, dots * H + 2 * other * G


def _kernels(H: Tensor) -> ModuleType | None:
    if H.dtype != torch.float32 or H.dim() > 3:
        return None
    return _compiled(H.device.type)


@cache
def _compiled(device: str) -> ModuleType | None:
    if device == "cpu" and find_spec("numba"):
        from graphpartner.model import row_products_numba

        return row_products_numba
    if device == "cuda" and find_spec("triton"):
        from graphpartner.model import row_products_triton

        return row_products_triton
    return None
