"""Sparse × dense products on a CPU, in numba. Imported only where numba is installed.

Columns do not depend on each other, so every thread takes a block of them through all steps: the threads never wait
for each other, and a block of H stays in the cache. Every sum runs in the order of its row's entries, so the result
does not depend on the number of threads.
"""

from typing import Any

import numba
import numpy as np
from torch import Tensor

from graphpartner.model.weighted_sum_numba import weighted_sum

# Columns of a block: fewer leave too little to vectorise, more leave the cache.
NARROW, WIDE = 8, 32
CHUNK = 64  # rows that a thread takes at a time


def spmm_power(csr: Tensor, H: Tensor, steps: int, order: Tensor) -> Tensor:
    """csr^steps H for a torch sparse CSR tensor, a contiguous H [m, c] and steps > 0.

    Row i of the matrix stands for row ``order[i]`` of H and of the result (an empty order: for row i); the rows are
    gathered and scattered while the blocks are copied anyway.
    """
    out = H.new_empty(csr.shape[0], H.shape[1])
    arrays = [array.detach().numpy() for array in (csr.crow_indices(), csr.col_indices(), csr.values(), H, out, order)]
    if steps == 1 and not order.numel():
        _product(*arrays[:5])
    else:
        _power(*arrays, steps, _block_width(H.shape[1]))
    return out


def _block_width(columns: int) -> int:
    share = -(-columns // numba.get_num_threads())
    return min(WIDE, -(-share // NARROW) * NARROW)


@numba.njit(nogil=True, cache=True)
def _rows(crow: Any, col: Any, value: Any, source: Any, sink: Any, first: int, last: int) -> None:
    """Rows ``first`` to ``last`` of csr @ source."""
    for i in range(first, last):
        weighted_sum(value, col, crow[i], crow[i + 1], source, sink[i])


@numba.njit(parallel=True, nogil=True, cache=True)
def _product(crow: Any, col: Any, value: Any, source: Any, sink: Any) -> None:
    """Sink = csr @ source, rows shared out among the threads."""
    n = sink.shape[0]
    for chunk in numba.prange((n + CHUNK - 1) // CHUNK):
        _rows(crow, col, value, source, sink, chunk * CHUNK, min(n, (chunk + 1) * CHUNK))


@numba.njit(parallel=True, nogil=True, cache=True)
def _power(crow: Any, col: Any, value: Any, H: Any, out: Any, order: Any, steps: int, width: int) -> None:
    n, columns = H.shape
    for block in numba.prange((columns + width - 1) // width):
        first, last = block * width, min((block + 1) * width, columns)
        source, sink = np.empty((n, width), H.dtype), np.empty((n, width), H.dtype)
        for i in range(n):
            source[i, : last - first] = H[order[i] if order.size else i, first:last]
            source[i, last - first :] = 0
        for _ in range(steps):
            _rows(crow, col, value, source, sink, 0, n)
            source, sink = sink, source
        for i in range(n):
            out[order[i] if order.size else i, first:last] = source[i, : last - first]
