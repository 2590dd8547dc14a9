"""Sparse × dense products, l in a row: a numba loop on the CPU where it is faster, else PyTorch's product."""

from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from torch import Tensor

# Below this many columns PyTorch's product is faster than the compiled loop, which then has too little to vectorise.
NARROW = 32
# And above this many columns a block leaves the cache.
WIDE = 64


def spmm_power(csr: Tensor, H: Tensor, steps: int) -> Tensor:
    """csr^steps H for a torch sparse CSR tensor and H [m, c]; the matrix must be square for steps > 1."""
    H = H.contiguous()
    if H.is_cuda and H.dtype == torch.float32 and find_spec("triton"):
        from graphpartner.model import spmm_triton

        return spmm_triton.spmm_power(csr, H, steps)
    wide = H.device.type == "cpu" and H.shape[1] >= NARROW
    kernel = column_parallel_kernel() if wide and steps else None
    if kernel is None:
        for _ in range(steps):
            H = csr @ H
        return H
    out = H.new_empty(csr.shape[0], H.shape[1])
    arrays = (csr.crow_indices(), csr.col_indices(), csr.values(), H, out)
    kernel(*(array.detach().numpy() for array in arrays), steps, block_width(H.shape[1]))
    return out


def block_width(columns: int) -> int:
    """Columns per block: as many blocks as threads, or more where a block would leave the cache."""
    return min(WIDE, max(NARROW, -(-columns // torch.get_num_threads())))


@cache
def column_parallel_kernel() -> Callable[..., Any] | None:
    """The compiled loop, or None where numba is not installed.

    Columns do not depend on each other, so every thread takes a block of them through all steps: the threads never
    wait for each other, and a block of H stays in the cache. Every sum runs in the order of its row's entries, so the
    result does not depend on the number of threads.
    """
    try:
        import numba
    except ImportError:
        return None

    @numba.njit(nogil=True)
    def product(crow: Any, col: Any, value: Any, source: Any, sink: Any) -> None:
        for i in range(sink.shape[0]):
            for c in range(sink.shape[1]):
                sink[i, c] = 0
            for entry in range(crow[i], crow[i + 1]):
                weight, j = value[entry], np.uint64(col[entry])  # unsigned: numba need not look for a negative index
                for c in range(sink.shape[1]):
                    sink[i, c] += weight * source[j, c]

    @numba.njit(parallel=True, nogil=True, cache=True)
    def power(crow: Any, col: Any, value: Any, H: Any, out: Any, steps: int, width: int) -> None:
        for block in numba.prange((H.shape[1] + width - 1) // width):
            first, last = block * width, min((block + 1) * width, H.shape[1])
            source = H[:, first:last].copy()
            sink = np.empty((out.shape[0], last - first), H.dtype)
            product(crow, col, value, source, sink)
            for _ in range(steps - 1):  # a power: the matrix is square, the two blocks are alike
                source, sink = sink, source
                product(crow, col, value, source, sink)
            out[:, first:last] = sink

    return power
