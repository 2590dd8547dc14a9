"""Row-wise inner products on a CPU, in numba."""

from typing import Any

import numba
import numpy as np
import torch
from torch import Tensor


def row_products(H: Tensor, G: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return ⟨h_i, g_i⟩, ⟨h_i, h_i⟩ and ⟨g_i, g_i⟩ for H and G [..., n, h]."""
    H, G = H.contiguous(), G.contiguous()
    dots, own, other = (H.new_empty(H.shape[:-1]) for _ in range(3))
    _products(_rows(H), _rows(G), *(part.view(-1).numpy() for part in (dots, own, other)))
    return dots, own, other


def row_products_gradient(H: Tensor, G: Tensor, dots: Tensor, own: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
    """Return the gradients by H and G."""
    H, G = H.contiguous(), G.contiguous()
    by_h, by_g = torch.empty_like(H), torch.empty_like(G)
    weights = (part.contiguous().reshape(-1).numpy() for part in (dots, own, other))
    _gradient(_rows(H), _rows(G), *weights, _rows(by_h), _rows(by_g))
    return by_h, by_g


def _rows(H: Tensor) -> Any:
    return H.detach().reshape(-1, H.shape[-1]).numpy()


# Sums may be reordered, so that several entries of a row are added at a time.
@numba.njit(parallel=True, nogil=True, cache=True, fastmath={"reassoc", "contract"})
def _products(H: Any, G: Any, dots: Any, own: Any, other: Any) -> None:
    for i in numba.prange(H.shape[0]):
        a, b, c = np.float32(0), np.float32(0), np.float32(0)
        for k in range(H.shape[1]):
            a += H[i, k] * G[i, k]
            b += H[i, k] * H[i, k]
            c += G[i, k] * G[i, k]
        dots[i], own[i], other[i] = a, b, c


@numba.njit(parallel=True, nogil=True, cache=True)
def _gradient(H: Any, G: Any, dots: Any, own: Any, other: Any, by_h: Any, by_g: Any) -> None:
    for i in numba.prange(H.shape[0]):
        a, b, c = dots[i], np.float32(2) * own[i], np.float32(2) * other[i]
        for k in range(H.shape[1]):
            h, g = H[i, k], G[i, k]
            by_h[i, k] = a * g + b * h
            by_g[i, k] = a * h + c * g
