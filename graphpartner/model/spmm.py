"""Sparse × dense products, l of them in a row: a numba loop on the CPU where it is faster, PyTorch's product elsewhere."""

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor

# Below this many columns PyTorch's product is faster than the compiled loop, which then has too little to vectorise.
NARROW = 16
# And above this many columns a block leaves the cache.
MOST = 64


def spmm_power(csr: Tensor, H: Tensor, steps: int) -> Tensor:
    """csr^steps H for a torch sparse CSR tensor and H [m, c]; the matrix must be square for steps > 1."""
    H = H.contiguous()
    wide = H.device.type == "cpu" and H.shape[1] >= NARROW
    kernel = column_parallel_kernel() if wide and steps else None
    if kernel is None:
        for _ in range(steps):
            H = csr @ H
        return H
    out, scratch = (torch.empty(csr.shape[0], H.shape[1], dtype=H.dtype) for _ in range(2))
    arrays = (csr.crow_indices(), csr.col_indices(), csr.values(), H, out, scratch)
    kernel(*(array.detach().numpy() for array in arrays), steps, block_width(H.shape[1]))
    return out if steps % 2 else scratch


def block_width(columns: int) -> int:
    """Columns per block: as many blocks as threads, or more where a block would leave the cache."""
    return min(MOST, max(NARROW, -(-columns // torch.get_num_threads())))


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

    @numba.njit(parallel=True, nogil=True, cache=True)
    def power(crow: Any, col: Any, value: Any, H: Any, out: Any, scratch: Any, steps: int, width: int) -> None:
        for block in numba.prange((H.shape[1] + width - 1) // width):
            first, last = block * width, min((block + 1) * width, H.shape[1])
            for step in range(steps):
                source = H if step == 0 else (out if step % 2 else scratch)
                sink = scratch if step % 2 else out
                for i in range(sink.shape[0]):
                    for c in range(first, last):
                        sink[i, c] = 0
                    for entry in range(crow[i], crow[i + 1]):
                        weight, j = value[entry], col[entry]
                        for c in range(first, last):
                            sink[i, c] += weight * source[j, c]

    return power
