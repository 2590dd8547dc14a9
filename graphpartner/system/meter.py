"""How much memory does a piece of work take at its peak?"""

import ctypes
import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from statistics import median
from typing import Any

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


Work = Callable[[], Any]


def seconds_each(
    *sides: Work, device: torch.device, repeats: tuple[int, ...] | None = None, rounds: int = 5
) -> list[float]:
    """Median seconds of one call of each side, warm, the sides taking turns so that a noisy moment hits all of them.

    Args:
        sides: what to call.
        device: where the work happens; a GPU is waited for.
        repeats: calls of each side per round; chosen so that a round of a side takes about 0.2 s if not given.
        rounds: how often the sides take turns.
    """
    for side in sides:
        for _ in range(2):
            side()
    counts = repeats or tuple(max(1, min(200, int(0.2 / max(1e-6, _timed(side, 1, device))))) for side in sides)
    taken: list[list[float]] = [[] for _ in sides]
    for _ in range(rounds):
        for times, side, count in zip(taken, sides, counts, strict=True):
            times.append(_timed(side, count, device) / count)
    return [median(times) for times in taken]


def _timed(side: Work, count: int, device: torch.device) -> float:
    synchronize(device)
    start = time.perf_counter()
    for _ in range(count):
        side()
    synchronize(device)
    return time.perf_counter() - start


def synchronize(device: torch.device) -> None:
    """Wait for a GPU."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def memory_rise(work: Callable[[], object]) -> int:
    """Peak resident bytes while the work is done beyond those before it."""
    with peak_memory("cpu") as peak:
        work()
    return int(peak[0])
