"""Time and peak memory of a piece of work, in this process or in a process of its own."""

import ctypes
import gc
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

import torch

Work = Callable[[], Any]
Result = TypeVar("Result")


@contextmanager
def peak_memory(device: str | torch.device) -> Iterator[list[float]]:
    """Yield a list of one number, which becomes the peak of memory in bytes beyond what was taken before.

    The memory is that of the GPU, or the resident memory of this process; NaN on systems without Linux's high-water
    mark.
    """
    peak = [float("nan")]
    if torch.device(device).type == "cuda":
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        yield peak
        peak[0] = torch.cuda.max_memory_allocated() - before
        return
    gc.collect()
    with suppress(OSError, AttributeError):  # only glibc can return freed memory, which else counts as taken before
        ctypes.CDLL(None).malloc_trim(0)
    try:
        with open("/proc/self/clear_refs", "w") as mark:
            mark.write("5")  # lowers the high-water mark to what is resident now
    except OSError:
        yield peak
        return
    before = _resident("VmRSS:")
    yield peak
    peak[0] = _resident("VmHWM:") - before


def _resident(name: str) -> int:
    with open("/proc/self/status") as status:
        return next(1024 * int(line.split()[1]) for line in status if line.startswith(name))


def in_new_process(function: Callable[..., Result], *arguments: object) -> Result:
    """Return what a top-level function returns in a new process, where no earlier work has left memory behind."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


# Linux counts a child's peak from that of the process that started it, so a small process starts the program.
STARTER = """
import os, sys
silent = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
child = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=silent)
_, status, used = os.wait4(child, 0)
print(used.ru_maxrss)
if status:
    sys.exit(f"ended with {os.waitstatus_to_exitcode(status)}")
"""


def program_peak_memory(words: Sequence[str], folder: str | Path, environment: Mapping[str, str]) -> int:
    """Run a program to its end and return its peak of resident bytes, whatever this process takes itself."""
    command = [sys.executable, "-I", "-S", "-c", STARTER, *words]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)}: {done.stderr[-2000:]}")
    return 1024 * int(done.stdout)


def seconds_each(
    *sides: Work,
    device: torch.device,
    repeats: tuple[int, ...] | None = None,
    rounds: int = 5,
    reduce: Callable[[list[float]], float] = median,
) -> list[float]:
    """Return the seconds that one call of each side takes, warm; the sides take turns, so that noise hits all of them.

    Args:
        sides: what to call.
        device: where the work happens; a GPU is waited for.
        repeats: calls of each side per round; chosen so that a round of a side takes about 0.2 s if not given.
        rounds: how often the sides take turns.
        reduce: makes one number of the seconds of all rounds.
    """
    for side in sides:
        for _ in range(2):
            side()
    counts = repeats or tuple(max(1, min(200, int(0.2 / max(1e-6, seconds_of(side, device))))) for side in sides)
    taken: list[list[float]] = [[] for _ in sides]
    for _ in range(rounds):
        for times, side, count in zip(taken, sides, counts, strict=True):
            times.append(seconds_of(side, device, count) / count)
    return [reduce(times) for times in taken]


def seconds_of(work: Work, device: torch.device, count: int = 1) -> float:
    """Return the seconds that ``count`` calls take, waiting for a GPU before and after."""
    synchronize(device)
    start = time.perf_counter()
    for _ in range(count):
        work()
    synchronize(device)
    return time.perf_counter() - start


def synchronize(device: torch.device) -> None:
    """Wait for a GPU."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
