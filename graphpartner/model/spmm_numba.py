"""Sparse × dense products on a CPU, in numba. Imported only where numba is installed.

Columns do not depend on each other, so every thread takes a block of them through all steps: the threads never wait
for each other, and a block of H stays in the cache. Every sum runs in the order of its row's entries, so the result
does not depend on the number of threads.
"""

from typing import Any

import numba
import numpy as np
from torch import Tensor

# Columns of a block: fewer leave too little to vectorise, more leave the cache.
NARROW, WIDE = 32, 64


def spmm_power(csr: Tensor, H: Tensor, steps: int, order: Tensor) -> Tensor:
    """csr^steps H for a torch sparse CSR tensor, a contiguous H [m, c] and steps > 0.

    Row i of the matrix stands for row ``order[i]`` of H and of the result (an empty order: for row i); the rows are
    gathered and scattered while the blocks are copied anyway.
    """
    out = H.new_empty(csr.shape[0], H.shape[1])
    width = min(WIDE, max(NARROW, -(-H.shape[1] // numba.get_num_threads())))
    arrays = (csr.crow_indices(), csr.col_indices(), csr.values(), H, out, order)
    _power(*(array.detach().numpy() for array in arrays), steps, width)
    return out


@numba.njit(nogil=True, cache=True, fastmath={"contract"})
def _product(crow: Any, col: Any, value: Any, source: Any, sink: Any) -> None:
    """Sink = csr @ source, four entries of a row at a time: the row of the sink is then read and written once for four.

    Indices are unsigned, so that numba need not look for negative ones.
    """
    for i in range(sink.shape[0]):
        entry, end = crow[i], crow[i + 1]
        for c in range(sink.shape[1]):
            sink[i, c] = 0
        while end - entry >= 4:
            w0, w1, w2, w3 = value[entry], value[entry + 1], value[entry + 2], value[entry + 3]
            j0, j1 = np.uint64(col[entry]), np.uint64(col[entry + 1])
            j2, j3 = np.uint64(col[entry + 2]), np.uint64(col[entry + 3])
            for c in range(sink.shape[1]):
                sink[i, c] += w0 * source[j0, c] + w1 * source[j1, c] + w2 * source[j2, c] + w3 * source[j3, c]
            entry += 4
        while entry < end:
            w0, j0 = value[entry], np.uint64(col[entry])
            for c in range(sink.shape[1]):
                sink[i, c] += w0 * source[j0, c]
            entry += 1


@numba.njit(parallel=True, nogil=True, cache=True)
def _power(crow: Any, col: Any, value: Any, H: Any, out: Any, order: Any, steps: int, width: int) -> None:
    for block in numba.prange((H.shape[1] + width - 1) // width):
        first, last = block * width, min((block + 1) * width, H.shape[1])
        source = np.empty((H.shape[0], last - first), H.dtype)
        sink = np.empty((out.shape[0], last - first), H.dtype)
        for i in range(H.shape[0]):
            source[i] = H[order[i] if order.size else i, first:last]
        _product(crow, col, value, source, sink)
        for _ in range(steps - 1):  # a power: the matrix is square, the two blocks are alike
            source, sink = sink, source
            _product(crow, col, value, source, sink)
        for i in range(out.shape[0]):
            out[order[i] if order.size else i, first:last] = sink[i]
