"""Compiled loops: numba on a CPU, Triton on a GPU, none where they are not installed.

The loops of ``dropout.py`` lie beside it in ``dropout_numba.py`` and ``dropout_triton.py``; plain torch in
``dropout.py`` does the same where neither can be used.
"""

from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import torch

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

    Two programs of one thread each would else get into each other's way, and take three times as long or worse.
    """
    threads = torch.get_num_threads()
    use_threads(threads, threads)


def use_threads(torch_threads: int, loop_threads: int) -> tuple[int, int]:
    """How many threads PyTorch and compiled loops use, as told in this thread; gives back what it was before.

    Both have them from the same OpenMP, and numba, when it starts, sets their number for both, to all cores there are:
    so PyTorch's number is read first and set last.
    """
    before = torch.get_num_threads(), loop_threads
    if HAS_NUMBA:
        import numba

        before = before[0], numba.get_num_threads()
        numba.set_num_threads(min(loop_threads, numba.config.NUMBA_NUM_THREADS))
    torch.set_num_threads(torch_threads)
    return before
