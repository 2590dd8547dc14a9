"""Sparse × dense products on a CPU, in numba. Imported only where numba is installed.

Columns do not depend on each other, so every thread takes a block of them through all steps: the threads never wait
for each other, and a block of H stays in the cache. Every sum runs in the order of its row's entries, so the result does
not depend on the number of threads.
"""

from typing import Any

import numba
import numpy as np
import torch
from torch import Tensor

# Columns of a block: fewer leave too little to vectorise, more leave the cache.
NARROW, WIDE = 32, 64


def spmm_power(csr: Tensor, H: Tensor, steps: int) -> Tensor:
    """csr^steps H for a torch sparse CSR tensor, a contiguous H [m, c] and steps > 0."""
    out = H.new_empty(csr.shape[0], H.shape[1])
    width = min(WIDE, max(NARROW, -(-H.shape[1] // torch.get_num_threads())))
    arrays = (csr.crow_indices(), csr.col_indices(), csr.values(), H, out)
    _power(*(array.detach().numpy() for array in arrays), steps, width)
    return out


@numba.njit(nogil=True, cache=True)
def _product(crow: Any, col: Any, value: Any, source: Any, sink: Any) -> None:
    for i in range(sink.shape[0]):
        for c in range(sink.shape[1]):
            sink[i, c] = 0
        for entry in range(crow[i], crow[i + 1]):
            weight, j = value[entry], np.uint64(col[entry])  # unsigned: numba need not look for a negative index
            for c in range(sink.shape[1]):
                sink[i, c] += weight * source[j, c]


@numba.njit(parallel=True, nogil=True, cache=True)
def _power(crow: Any, col: Any, value: Any, H: Any, out: Any, steps: int, width: int) -> None:
    for block in numba.prange((H.shape[1] + width - 1) // width):
        first, last = block * width, min((block + 1) * width, H.shape[1])
        source = H[:, first:last].copy()
        sink = np.empty((out.shape[0], last - first), H.dtype)
        _product(crow, col, value, source, sink)
        for _ in range(steps - 1):  # a power: the matrix is square, the two blocks are alike
            source, sink = sink, source
            _product(crow, col, value, source, sink)
        out[:, first:last] = sink
