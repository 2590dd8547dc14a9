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
    return import_module(f"{module}_{compiler}")
