"""The sum of Eq. 8 on a CPU, in numba: the sorted entries of both rows are merged."""

from typing import Any

import numba
import numpy as np
import torch
from torch import Tensor

from graphpartner.graph.adjacency import csr

CHUNK = 64  # rows that a thread takes at a time


def mixed(attribute: Tensor, P: Tensor, beta: float) -> Tensor:
    """Mix as :func:`graphpartner.kernels.mix.mixed`."""
    (crow1, col1, val1), (crow2, col2, val2) = (
        (part.crow_indices().numpy(), part.col_indices().numpy(), part.values().numpy()) for part in (attribute, P)
    )
    if beta == 0:
        crow2 = np.zeros_like(crow2)  # without any entry of P
    crow = np.zeros(attribute.shape[0] + 1, np.int64)
    _count(crow1, col1, crow2, col2, crow)
    np.cumsum(crow, out=crow)
    column, value = np.empty(crow[-1], np.int64), np.empty(crow[-1], np.float32)
    _fill(crow1, col1, val1, crow2, col2, val2, beta, crow, column, value)
    return csr(torch.from_numpy(crow), torch.from_numpy(column), torch.from_numpy(value), attribute.shape)


@numba.njit(parallel=True, nogil=True, cache=True)
def _count(crow1: Any, col1: Any, crow2: Any, col2: Any, size: Any) -> None:
    """Write the number of entries of row i of the sum to size[i + 1]."""
    n = size.size - 1
    for chunk in numba.prange((n + CHUNK - 1) // CHUNK):
        for i in range(chunk * CHUNK, min(n, (chunk + 1) * CHUNK)):
            a, b = crow1[i], crow2[i]
            both = 0
            while a < crow1[i + 1] and b < crow2[i + 1]:
                left, right = col1[a], col2[b]
                both += left == right
                a += left <= right
                b += right <= left
            size[i + 1] = crow1[i + 1] - crow1[i] + crow2[i + 1] - crow2[i] - both


@numba.njit(parallel=True, nogil=True, cache=True)
def _fill(
    crow1: Any, col1: Any, val1: Any, crow2: Any, col2: Any, val2: Any, beta: float, crow: Any, column: Any, value: Any
) -> None:
    n = crow.size - 1
    for chunk in numba.prange((n + CHUNK - 1) // CHUNK):
        for i in range(chunk * CHUNK, min(n, (chunk + 1) * CHUNK)):
            total = 0.0
            for a in range(crow1[i], crow1[i + 1]):
                total += np.float64(val1[a])
            scale = (1 - beta) / (total if total != 0 else 1.0)
            a, b = crow1[i], crow2[i]
            for to in range(crow[i], crow[i + 1]):
                first = a < crow1[i + 1] and (b == crow2[i + 1] or col1[a] <= col2[b])
                second = b < crow2[i + 1] and (a == crow1[i + 1] or col2[b] <= col1[a])
                column[to] = col1[a] if first else col2[b]
                mixed = 0.0
                if first:
                    mixed += scale * np.float64(val1[a])
                    a += 1
                if second:
                    mixed += beta * val2[b]
                    b += 1
                value[to] = mixed
