"""Sparse × dense products, l in a row: by compiled loops where they are faster, else by PyTorch."""

from functools import cache
from importlib.util import find_spec
from types import ModuleType

import torch
from torch import Tensor

# On a CPU, below this many columns PyTorch's product is faster than the compiled loop.
NARROW = 32


def spmm_power(csr: Tensor, H: Tensor, steps: int) -> Tensor:
    """csr^steps H for a torch sparse CSR tensor and H [m, c]; the matrix must be square for steps > 1."""
    H = H.contiguous()
    if steps and ((H.is_cuda and H.dtype == torch.float32) or (H.device.type == "cpu" and H.shape[1] >= NARROW)):
        compiled = kernels(H.device.type)
        if compiled is not None:
            return compiled.spmm_power(csr, H, steps)
    for _ in range(steps):
        H = csr @ H
    return H


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
