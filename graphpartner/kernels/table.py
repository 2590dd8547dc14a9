"""The table of compiled loops: numba on a CPU, Triton on a GPU; PyTorch does the work where they are not installed.

The file of an operation (``dropout.py``) holds its formula in PyTorch and its gradient. Loops that are faster lie
beside it (``dropout_numba.py``, ``dropout_triton.py``) and are listed here. They are imported when first needed.
"""

from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import Any

import torch

from graphpartner.system.parallel import use_threads


@dataclass(frozen=True)
class Kernels:
    """The compiled loops for one type of device: a module per operation, None where PyTorch does the work."""

    adam: Any = None
    divergence: Any = None
    dropout: Any = None
    edge_products: Any = None
    mix: Any = None
    nt_xent: Any = None
    row_products: Any = None
    spmm: Any = None

    @staticmethod
    def on(device: torch.device) -> "Kernels":
        """Return the loops for this device."""
        return _load(device.type)


@cache
def _load(device: str) -> Kernels:
    if device == "cpu" and find_spec("numba"):
        return _numba()
    if device == "cuda" and find_spec("triton"):
        return _triton()
    return Kernels()


def _numba() -> Kernels:
    from graphpartner.kernels import (
        adam_numba,
        divergence_numba,
        dropout_numba,
        edge_products_numba,
        mix_numba,
        row_products_numba,
        spmm_numba,
    )

    # As many threads for compiled loops as for PyTorch, whose number must not change: two sets of threads that compete
    # for one core take three times as long or worse.
    threads = torch.get_num_threads()
    use_threads(threads, threads)
    return Kernels(
        adam=adam_numba,
        divergence=divergence_numba,
        dropout=dropout_numba,
        edge_products=edge_products_numba,
        mix=mix_numba,
        row_products=row_products_numba,
        spmm=spmm_numba,
    )


def _triton() -> Kernels:
    from graphpartner.kernels import (
        adam_triton,
        dropout_triton,
        edge_products_triton,
        nt_xent_triton,
        row_products_triton,
        spmm_triton,
    )

    return Kernels(
        adam=adam_triton,
        dropout=dropout_triton,
        edge_products=edge_products_triton,
        nt_xent=nt_xent_triton,
        row_products=row_products_triton,
        spmm=spmm_triton,
    )
