"""The compiled CPU loops of training, in numba: dropout by counter, X̃ W with X̃ dropped on the fly, and Adam.

Each repeats, bit for bit or up to the order of float32 sums, what :mod:`graphpartner.train.dropout` and
:mod:`graphpartner.train.adam` write in plain torch; tests compare the two. Hidden states lie in memory as [n, R, h],
weights as [R, d, h]. Imported only where numba is installed.
"""

from typing import Any

import numba
import numpy as np
import torch
from torch import Tensor

u32, zero, one = np.uint32, np.float32(0), np.float32(1)
CHUNK = 32  # rows of X whose kept entries share a scratch list


def drop(H: Tensor, key: Tensor, below: Tensor, scale: Tensor) -> Tensor:
    """H [R, n, h] with dropped entries at zero and the others scaled, in memory [n, R, h]."""
    rows = H.transpose(0, 1).contiguous()
    out = torch.empty_like(rows)
    _drop(*_arrays(rows, key, below, scale, out))
    return out.transpose(0, 1)


def dropped_product(csr: Tensor, W: Tensor, key: Tensor, below: Tensor, scale: Tensor) -> Tensor:
    """X̃ W for X in CSR and W [R, d, h]: [R, n, h], in memory [n, R, h]."""
    out = W.new_empty(csr.shape[0], W.shape[0], W.shape[2])
    _dropped_product(*_csr(csr), *_arrays(W.contiguous(), key, below, scale, out))
    return out.transpose(0, 1)


def dropped_gradient(transpose: Tensor, G: Tensor, key: Tensor, below: Tensor, scale: Tensor) -> Tensor:
    """X̃ᵀ G for Xᵀ in CSR and G [R, n, h]: [R, d, h]."""
    rows = G.transpose(0, 1).contiguous()
    out = G.new_empty(G.shape[0], transpose.shape[0], G.shape[2])
    _dropped_gradient(*_csr(transpose), *_arrays(rows, key, below, scale, out))
    return out


def adam(
    W: Tensor,
    G: Tensor,
    mean: Tensor,
    square: Tensor,
    rate: Tensor,
    decay: Tensor,
    steps: Tensor,
    betas: tuple[float, float],
    epsilon: float,
) -> None:
    """One step of Adam in place, all tensors [R, rows, columns], ``rate`` and ``decay`` [R], ``steps`` [1]."""
    corrections = (1 - beta ** float(steps) for beta in betas)
    constants = (np.float32(constant) for constant in (*corrections, *betas, epsilon))
    _adam(*_arrays(W, G.contiguous(), mean, square, rate, decay), *constants)


def _csr(matrix: Tensor) -> tuple[Any, ...]:
    return _arrays(matrix.crow_indices(), matrix.col_indices(), matrix.values())


def _arrays(*tensors: Tensor) -> tuple[Any, ...]:
    return tuple(tensor.detach().numpy() for tensor in tensors)


@numba.njit(inline="always")
def random_bits(counter: Any, key0: Any, key1: Any) -> Any:
    """The hash of :func:`graphpartner.train.draws.bits`, for one entry."""
    x = u32(counter) ^ u32(key0)
    x = u32(x ^ (x >> u32(16)))
    x = u32(x * u32(0x7FEB352D))
    x = u32(x ^ (x >> u32(15)))
    x = u32(u32(x + u32(key1)) * u32(0x846CA68B))
    return np.int32(u32(x ^ (x >> u32(16))))


@numba.njit(parallel=True, nogil=True, cache=True)
def _drop(H: Any, key: Any, below: Any, scale: Any, out: Any) -> None:
    """Entry (i, r, c) draws with counter i·h + c."""
    n, replicas, width = H.shape
    for i in numba.prange(n):
        for r in range(replicas):
            key0, key1, limit, factor = key[r, 0], key[r, 1], below[r], scale[r]
            first = u32(i * width)
            for c in range(width):
                kept = random_bits(first + u32(c), key0, key1) < limit
                out[i, r, c] = H[i, r, c] * (factor if kept else zero)


@numba.njit(inline="always", fastmath={"contract"})
def weighted_sum(weights: Any, rows: Any, listed: Any, count: int, out: Any) -> None:
    """Out = Σ weights[e] · rows[listed[e]], four entries at a time: ``out`` is then read and written once for four."""
    for c in range(out.size):
        out[c] = 0
    entry = 0
    while count - entry >= 4:
        w0, w1, w2, w3 = weights[entry], weights[entry + 1], weights[entry + 2], weights[entry + 3]
        j0, j1, j2, j3 = listed[entry], listed[entry + 1], listed[entry + 2], listed[entry + 3]
        for c in range(out.size):
            out[c] += w0 * rows[j0, c] + w1 * rows[j1, c] + w2 * rows[j2, c] + w3 * rows[j3, c]
        entry += 4
    while entry < count:
        w0, j0 = weights[entry], listed[entry]
        for c in range(out.size):
            out[c] += w0 * rows[j0, c]
        entry += 1


# In the next two loops the kept entries of a row are listed first and added up then: a branch on a coin flip in the
# inner loop would be mispredicted half of the time.


@numba.njit(parallel=True, nogil=True, cache=True)
def _dropped_product(crow: Any, col: Any, value: Any, W: Any, key: Any, below: Any, scale: Any, out: Any) -> None:
    """out[i, r] = Σ_j x̃_ij W[r, j]; entry (i, j) draws with counter i·d + j."""
    n, replicas, _ = out.shape
    columns = W.shape[1]
    for chunk in numba.prange((n + CHUNK - 1) // CHUNK):
        first, last = chunk * CHUNK, min(n, (chunk + 1) * CHUNK)
        size = crow[last] - crow[first]
        listed, weights = np.empty(size + 1, np.uint64), np.empty(size + 1, np.float32)
        for r in range(replicas):
            key0, key1, limit, factor = key[r, 0], key[r, 1], below[r], scale[r]
            for i in range(first, last):
                kept = 0
                for entry in range(crow[i], crow[i + 1]):
                    j = np.uint64(col[entry])  # unsigned: numba need not look for a negative index
                    listed[kept], weights[kept] = j, value[entry] * factor
                    kept += random_bits(u32(i * columns) + u32(j), key0, key1) < limit
                weighted_sum(weights, W[r], listed, kept, out[i, r])


@numba.njit(parallel=True, nogil=True, cache=True)
def _dropped_gradient(crow: Any, col: Any, value: Any, G: Any, key: Any, below: Any, scale: Any, out: Any) -> None:
    """out[r, j] = Σ_i x̃_ij G[i, r]: the gradient of ``dropped_product`` by W."""
    replicas, columns, _ = out.shape
    rows = G.reshape(-1, G.shape[2])  # row i of replica r is row i·R + r here, and known to have no gaps
    for chunk in numba.prange((columns + CHUNK - 1) // CHUNK):
        first, last = chunk * CHUNK, min(columns, (chunk + 1) * CHUNK)
        size = crow[last] - crow[first]
        listed, weights = np.empty(size + 1, np.uint64), np.empty(size + 1, np.float32)
        for r in range(replicas):
            key0, key1, limit, factor = key[r, 0], key[r, 1], below[r], scale[r]
            for j in range(first, last):
                kept = 0
                for entry in range(crow[j], crow[j + 1]):
                    i = np.uint64(col[entry])
                    listed[kept], weights[kept] = i * np.uint64(replicas) + np.uint64(r), value[entry] * factor
                    kept += random_bits(u32(i * u32(columns)) + u32(j), key0, key1) < limit
                weighted_sum(weights, rows, listed, kept, out[r, j])


@numba.njit(parallel=True, nogil=True, cache=True)
def _adam(
    W: Any, G: Any, m: Any, v: Any, rate: Any, decay: Any, fix1: Any, fix2: Any, beta1: Any, beta2: Any, tiny: Any
) -> None:
    replicas, rows, width = W.shape
    for i in numba.prange(rows):
        for r in range(replicas):
            rate_r, decay_r = rate[r], decay[r]
            for c in range(width):
                g = G[r, i, c] + decay_r * W[r, i, c]
                m[r, i, c] = beta1 * m[r, i, c] + (one - beta1) * g
                v[r, i, c] = beta2 * v[r, i, c] + (one - beta2) * g * g
                step = rate_r * (m[r, i, c] / fix1)
                W[r, i, c] -= step / (np.sqrt(v[r, i, c] / fix2) + tiny)
