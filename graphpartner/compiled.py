"""Compiled loops: numba on a CPU, Triton on a GPU, none where they are not installed.

The loops of ``dropout.py`` lie beside it in ``dropout_numba.py`` and ``dropout_triton.py``; plain torch in
``dropout.py`` does the same where neither can be used.
"""

from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

COMPILERS = {"cpu": "numba", "cuda": "triton"}
HAS_NUMBA = find_spec("numba") is not None


@cache
def compiled(module: str, device: str) -> Any | None:
    """The module with the compiled loops of ``module`` for this type of device, or None where there is none."""
    compiler = COMPILERS.get(device)
    if compiler is None or not find_spec(compiler) or not find_spec(f"{module}_{compiler}"):
        return None
    if compiler == "numba":
        _keep_threads()
    return import_module(f"{module}_{compiler}")


@cache
def _keep_threads() -> None:
    """Let compiled loops use as many threads as PyTorch, and PyTorch as many as it was told.

    Both have them from the same OpenMP, and numba sets their number for both when it starts: to all cores there are.
    Two programs of one thread each would then get into each other's way, and take three times as long or worse.
    """
    import numba
    import torch

    threads = torch.get_num_threads()
    numba.set_num_threads(min(threads, numba.config.NUMBA_NUM_THREADS))
    torch.set_num_threads(threads)
