"""The implementations of an operation: numba on a CPU, Triton on a GPU, PyTorch where neither is installed.

The file of an operation (``dropout.py``) holds its formula in PyTorch and a table of :class:`Kernels` that names the
modules with its compiled loops (``dropout_numba.py``, ``dropout_triton.py``); these are imported when first needed.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import Any

import torch

from graphpartner.system.parallel import use_threads

Loader = Callable[[], Any]


@dataclass(frozen=True)
class Kernels:
    """The compiled loops of one operation, by type of device: each a function that imports and returns their module."""

    cpu: Loader | None = None
    """loops in numba"""
    cuda: Loader | None = None
    """kernels in Triton"""

    def on(self, device: torch.device) -> Any | None:
        """Return the module with the loops for this device, or None where PyTorch does the work."""
        return _load(self, device.type)


@cache
def _load(kernels: Kernels, device: str) -> Any | None:
    if device == "cpu" and kernels.cpu is not None and find_spec("numba"):
        _keep_threads()
        return kernels.cpu()
    if device == "cuda" and kernels.cuda is not None and find_spec("triton"):
        return kernels.cuda()
    return None


@cache
def _keep_threads() -> None:
    """Let compiled loops use as many threads as PyTorch, and PyTorch as many as before.

    Two programs of one thread each would else get into each other's way, and take three times as long or worse.
    """
    threads = torch.get_num_threads()
    use_threads(threads, threads)
