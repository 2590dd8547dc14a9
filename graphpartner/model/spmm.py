"""Sparse × dense products, l in a row: by compiled loops where they are faster, else by PyTorch."""

from functools import cache
from importlib.util import find_spec
from types import ModuleType

import torch
from torch import Tensor


def spmm_power(csr: Tensor, H: Tensor, steps: int, order: Tensor | None = None) -> Tensor:
    """csr^steps H for a torch sparse CSR tensor and H [m, c]; the matrix must be square for steps > 1.

    ``order`` says which row of H each row and column of the matrix stands for; None is as they come.
    """
    H = H.contiguous()
    compiled = kernels(H.device.type)
    if steps and compiled is not None and H.device.type == "cpu":
        return compiled.spmm_power(csr, H, steps, torch.empty(0, dtype=torch.int64) if order is None else order)
    if order is not None:
        H = H[order]
    if steps and compiled is not None and H.is_cuda and H.dtype == torch.float32:
        H = compiled.spmm_power(csr, H, steps)
    else:
        for _ in range(steps):
            H = csr @ H
    return H if order is None else torch.empty_like(H).index_copy_(0, order, H)


@cache
def kernels(device: str) -> ModuleType | None:
    """The module with the compiled loop for this type of device, or None where it is not installed."""
    if device == "cpu" and find_spec("numba"):
        from graphpartner.model import spmm_numba

        return spmm_numba
    if device == "cuda" and find_spec("triton"):
        from graphpartner.model import spmm_triton

        return spmm_triton
    return None
