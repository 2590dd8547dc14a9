"""The compiled CPU loops of training: dropout by counter, X̃ W with X̃ dropped on the fly, and Adam.

Each repeats, bit for bit or up to the order of float32 sums, what :mod:`graphpartner.train.dropout` and
:mod:`graphpartner.train.adam` write in plain torch; tests compare the two.
"""

from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np


@cache
def cpu_kernels() -> SimpleNamespace | None:
    """The kernels, compiled on first use and cached on disk, or None where numba is not installed."""
    try:
        import numba
    except ImportError:
        return None
    u32, zero, one = np.uint32, np.float32(0), np.float32(1)

    @numba.njit(inline="always")
    def random_bits(counter: Any, key0: Any, key1: Any) -> Any:  # draws.bits, one entry
        x = u32(counter) ^ u32(key0)
        x = u32(x ^ (x >> u32(16)))
        x = u32(x * u32(0x7FEB352D))
        x = u32(x ^ (x >> u32(15)))
        x = u32(u32(x + u32(key1)) * u32(0x846CA68B))
        return np.int32(u32(x ^ (x >> u32(16))))

    @numba.njit(parallel=True, nogil=True, cache=True)
    def drop(H: Any, key: Any, below: Any, scale: Any, out: Any) -> None:
        """Out = dropout of H, both [n, R, h]; entry (i, r, c) draws with counter i·h + c."""
        n, replicas, width = H.shape
        for i in numba.prange(n):
            for r in range(replicas):
                key0, key1, limit, factor = key[r, 0], key[r, 1], below[r], scale[r]
                first = u32(i * width)
                for c in range(width):
                    kept = random_bits(first + u32(c), key0, key1) < limit
                    out[i, r, c] = H[i, r, c] * (factor if kept else zero)

    @numba.njit(parallel=True, nogil=True, cache=True)
    def dropped_product(crow: Any, col: Any, value: Any, W: Any, key: Any, below: Any, scale: Any, out: Any) -> None:
        """out[i, r] = Σ_j x̃_ij W[r, j] for X in CSR; entry (i, j) draws with counter i·d + j."""
        n, replicas, width = out.shape
        columns = W.shape[1]
        for i in numba.prange(n):
            for r in range(replicas):
                key0, key1, limit, factor = key[r, 0], key[r, 1], below[r], scale[r]
                for c in range(width):
                    out[i, r, c] = 0
                for entry in range(crow[i], crow[i + 1]):
                    j = np.uint64(col[entry])  # unsigned: numba need not look for a negative index
                    if random_bits(u32(i * columns) + u32(j), key0, key1) < limit:
                        weight = value[entry] * factor
                        for c in range(width):
                            out[i, r, c] += weight * W[r, j, c]

    @numba.njit(parallel=True, nogil=True, cache=True)
    def dropped_gradient(crow: Any, col: Any, value: Any, G: Any, key: Any, below: Any, scale: Any, out: Any) -> None:
        """out[r, j] = Σ_i x̃_ij G[i, r] for Xᵀ in CSR: the gradient of ``dropped_product`` by W."""
        replicas, columns, width = out.shape
        for j in numba.prange(columns):
            for r in range(replicas):
                key0, key1, limit, factor = key[r, 0], key[r, 1], below[r], scale[r]
                for c in range(width):
                    out[r, j, c] = 0
                for entry in range(crow[j], crow[j + 1]):
                    i = np.uint64(col[entry])
                    if random_bits(u32(i * columns) + u32(j), key0, key1) < limit:
                        weight = value[entry] * factor
                        for c in range(width):
                            out[r, j, c] += weight * G[i, r, c]

    @numba.njit(parallel=True, nogil=True, cache=True)
    def adam(W: Any, G: Any, m: Any, v: Any, rate: Any, decay: Any, correction1: Any, correction2: Any) -> None:
        """One step of Adam in place, all arrays [R, rows, columns], ``rate`` and ``decay`` [R]."""
        replicas, rows, width = W.shape
        beta1, beta2, epsilon = np.float32(0.9), np.float32(0.999), np.float32(1e-8)
        for i in numba.prange(rows):
            for r in range(replicas):
                rate_r, decay_r = rate[r], decay[r]
                for c in range(width):
                    g = G[r, i, c] + decay_r * W[r, i, c]
                    m[r, i, c] = beta1 * m[r, i, c] + (one - beta1) * g
                    v[r, i, c] = beta2 * v[r, i, c] + (one - beta2) * g * g
                    step = rate_r * (m[r, i, c] / correction1)
                    W[r, i, c] -= step / (np.sqrt(v[r, i, c] / correction2) + epsilon)

    return SimpleNamespace(drop=drop, dropped_product=dropped_product, dropped_gradient=dropped_gradient, adam=adam)
