"""Sparse × dense products, l in a row: by compiled loops where they are faster, else by PyTorch."""

import torch
from torch import Tensor

from graphpartner.compiled import compiled


def spmm_power(csr: Tensor, H: Tensor, steps: int, order: Tensor | None = None) -> Tensor:
    """csr^steps H for a torch sparse CSR tensor and H [m, c]; the matrix must be square for steps > 1.

    ``order`` says which row of H each row and column of the matrix stands for; None is as they come.
    """
    H = H.contiguous()
    loops = compiled(__name__, H.device.type)
    if steps and loops is not None and H.device.type == "cpu" and H.dtype in (torch.float32, torch.float64):
        return loops.spmm_power(csr, H, steps, torch.empty(0, dtype=torch.int64) if order is None else order)
    if order is not None:
        H = H[order]
    if steps and loops is not None and H.is_cuda and H.dtype == torch.float32:
        H = loops.spmm_power(csr, H, steps)
    else:
        for _ in range(steps):
            H = csr @ H
    return H if order is None else torch.empty_like(H).index_copy_(0, order, H)
