"""Dropout by counter-based draws on a CPU, in numba; X̃ W is computed without storing X̃.

Which entries are dropped agrees with PyTorch bit for bit, sums up to the order of their float32 terms. Hidden states
lie in memory as [n, R, h], weights as [R, d, h].
"""

from typing import Any

import numba
import numpy as np
import torch
from torch import Tensor

from graphpartner.kernels.spmm_numba import weighted_sum

u32, zero = np.uint32, np.float32(0)
CHUNK = 32  # rows of X whose kept entries share a scratch list


def dropped(H: Tensor, key: Tensor, below: Tensor, scale: Tensor) -> Tensor:
    """Return H [R, n, h] with dropped entries at zero and the others scaled, in memory [n, R, h]."""
    rows = H.transpose(0, 1).contiguous()
    out = torch.empty_like(rows)
    _dropped(*_arrays(rows, key, below, scale, out))
    return out.transpose(0, 1)


def dropped_product(csr: Tensor, W: Tensor, key: Tensor, below: Tensor, scale: Tensor) -> Tensor:
    """Return X̃ W for X in CSR and W [R, d, h]: [R, n, h], in memory [n, R, h]; entry (i, j) has the counter i·d + j."""
    (replicas, d, width), n = W.shape, csr.shape[0]
    out = W.new_empty(n * replicas, width)
    rows = W.reshape(-1, width)
    _dropped_product(*_csr(csr), *_arrays(rows, key, below, scale, out), (d, 1), (1, d), (replicas, 1))
    return out.view(n, replicas, width).transpose(0, 1)


def dropped_product_gradient(transpose: Tensor, G: Tensor, key: Tensor, below: Tensor, scale: Tensor) -> Tensor:
    """Return X̃ᵀ G for Xᵀ in CSR and G [R, n, h]: [R, d, h], the gradient of ``dropped_product`` by W."""
    (replicas, _, width), d = G.shape, transpose.shape[0]
    out = G.new_empty(replicas, d, width)
    rows = G.transpose(0, 1).reshape(-1, width)
    sums = out.view(-1, width)
    _dropped_product(*_csr(transpose), *_arrays(rows, key, below, scale, sums), (1, d), (replicas, 1), (1, d))
    return out


def _csr(matrix: Tensor) -> tuple[Any, ...]:
    return _arrays(matrix.crow_indices(), matrix.col_indices(), matrix.values())


def _arrays(*tensors: Tensor) -> tuple[Any, ...]:
    return tuple(tensor.detach().numpy() for tensor in tensors)


@numba.njit(inline="always")
def random_bits(counter: Any, key0: Any, key1: Any) -> Any:
    """Return the hash of :func:`graphpartner.kernels.draws.bits` for one entry."""
    x = u32(counter) ^ u32(key0)
    x = u32(x ^ (x >> u32(16)))
    x = u32(x * u32(0x7FEB352D))
    x = u32(x ^ (x >> u32(15)))
    x = u32(u32(x + u32(key1)) * u32(0x846CA68B))
    return np.int32(u32(x ^ (x >> u32(16))))


@numba.njit(parallel=True, nogil=True, cache=True)
def _dropped(H: Any, key: Any, below: Any, scale: Any, out: Any) -> None:
    """Entry (i, r, c) has the counter i·h + c."""
    n, replicas, width = H.shape
    for i in numba.prange(n):
        for r in range(replicas):
            key0, key1, limit, factor = key[r, 0], key[r, 1], below[r], scale[r]
            first = u32(i * width)
            for c in range(width):
                kept = random_bits(first + u32(c), key0, key1) < limit
                out[i, r, c] = H[i, r, c] * (factor if kept else zero)


@numba.njit(parallel=True, nogil=True, cache=True)
def _dropped_product(
    crow: Any, col: Any, value: Any, rows: Any, key: Any, below: Any, scale: Any, out: Any, counter: Any, source: Any,
    sink: Any,
) -> None:  # fmt: skip
    """out[a, r] = Σ_b x̃_ab rows[b, r], for X̃ and for its transpose.

    Places are given by pairs of strides: entry (a, b) has the counter (a, b)·counter and is multiplied by row
    (b, r)·source of ``rows``; the sum is row (a, r)·sink of ``out``. The kept entries of a row are listed before they
    are added up: a branch on a coin flip in the inner loop would be mispredicted half of the time.
    """
    n = crow.size - 1
    for chunk in numba.prange((n + CHUNK - 1) // CHUNK):
        first, last = chunk * CHUNK, min(n, (chunk + 1) * CHUNK)
        size = crow[last] - crow[first]
        listed, weights = np.empty(size + 1, np.int64), np.empty(size + 1, np.float32)
        for r in range(key.shape[0]):
            key0, key1, limit, factor = key[r, 0], key[r, 1], below[r], scale[r]
            for a in range(first, last):
                kept = 0
                for entry in range(crow[a], crow[a + 1]):
                    b = np.int64(col[entry])
                    listed[kept], weights[kept] = b * source[0] + r * source[1], value[entry] * factor
                    kept += random_bits(u32(a * counter[0]) + u32(b * counter[1]), key0, key1) < limit
                weighted_sum(weights, listed, 0, kept, rows, out[a * sink[0] + r * sink[1]])
