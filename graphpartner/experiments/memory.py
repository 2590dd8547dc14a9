"""How much memory does a piece of work take at its peak?"""

import ctypes
import gc
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import torch


@contextmanager
def peak_memory(device: str) -> Iterator[list[float]]:
    """A list whose one number becomes the most bytes taken, beyond those before: of the GPU, or of the process.

    NaN on systems without Linux's high-water mark.
    """
    peak = [float("nan")]
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        yield peak
        peak[0] = torch.cuda.max_memory_allocated() - before
        return
    _give_back()
    try:
        with open("/proc/self/clear_refs", "w") as mark:
            mark.write("5")  # lowers the high-water mark to what is resident now
    except OSError:
        yield peak
        return
    before = _resident("VmRSS:")
    yield peak
    peak[0] = _resident("VmHWM:") - before


def _give_back() -> None:
    """Let the system have what earlier work has freed, so that it is not counted as there before."""
    gc.collect()
    with suppress(OSError, AttributeError):  # only glibc can
        ctypes.CDLL(None).malloc_trim(0)


def _resident(name: str) -> int:
    with open("/proc/self/status") as status:
        return next(1024 * int(line.split()[1]) for line in status if line.startswith(name))
