"""Products over edges on a CPU, in numba."""

from typing import Any

import numba
from torch import Tensor


def weighted_sum(crow: Tensor, col: Tensor, order: Tensor, values: Tensor, H: Tensor) -> Tensor:
    """Sum over edges as :func:`graphpartner.kernels.edge_products.weighted_sum`; values and H are contiguous."""
    out = H.new_empty(H.shape)
    _weighted_sum(*(tensor.detach().numpy() for tensor in (crow, col, order, values, H, out)))
    return out


def dots(crow: Tensor, col: Tensor, row: Tensor, G: Tensor, H: Tensor) -> Tensor:
    """Multiply as :func:`graphpartner.kernels.edge_products.dots`; G and H [n, G, c] are contiguous."""
    out = H.new_empty(col.numel(), H.shape[1])
    _dots(*(tensor.detach().numpy() for tensor in (crow, col, G, H, out)))
    return out


@numba.njit(parallel=True, nogil=True, cache=True, fastmath={"contract"})
def _weighted_sum(crow: Any, col: Any, order: Any, values: Any, H: Any, out: Any) -> None:
    n, groups, width = out.shape
    for i in numba.prange(n):
        out[i] = 0
        for place in range(crow[i], crow[i + 1]):
            j, edge = col[place], order[place]
            for g in range(groups):
                value = values[edge, g]
                for c in range(width):
                    out[i, g, c] += value * H[j, g, c]


@numba.njit(parallel=True, nogil=True, cache=True, fastmath={"contract", "reassoc"})
def _dots(crow: Any, col: Any, G: Any, H: Any, out: Any) -> None:
    n, groups, width = G.shape
    for i in numba.prange(n):
        for edge in range(crow[i], crow[i + 1]):
            j = col[edge]
            for g in range(groups):
                total = H.dtype.type(0)
                for c in range(width):
                    total += G[i, g, c] * H[j, g, c]
                out[edge, g] = total
