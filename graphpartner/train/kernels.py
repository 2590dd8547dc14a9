"""Which compiled loops there are for a device: numba on a CPU, Triton on a GPU, or none."""

from functools import cache
from importlib.util import find_spec
from types import ModuleType


@cache
def kernels(device: str) -> ModuleType | None:
    """A module with ``drop``, ``dropped_product``, ``dropped_gradient`` and ``adam`` for this type of device.

    None where it is not installed; then plain torch does the same.
    """
    if device == "cpu" and find_spec("numba"):
        from graphpartner.train import numba_kernels

        return numba_kernels
    if device == "cuda" and find_spec("triton"):
        from graphpartner.train import triton_kernels

        return triton_kernels
    return None
