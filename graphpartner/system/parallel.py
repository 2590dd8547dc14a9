"""Parallel work: thread counts, one job per core, batches of runs, ranges of rows.

Two runs on one core each are faster than one run after the other on two cores: no operation waits for the slower of its
threads, and small ones are not split at all. It also keeps its pace when other programs use the machine.

Jobs and ranges run in plain threads, which is enough because PyTorch and the compiled loops release the GIL. Each
returns or writes a part of its own, so the result never depends on which thread computed which part.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import islice
from typing import TypeVar

import torch

from graphpartner.system.device import free_memory
from graphpartner.system.progress import Progress

Job = TypeVar("Job")
Result = TypeVar("Result")
Range = tuple[int, int]

HAS_NUMBA = find_spec("numba") is not None


def num_threads() -> int:
    """Return the number of threads PyTorch uses, which is the one that people set."""
    return max(1, torch.get_num_threads())


def use_threads(torch_threads: int, loop_threads: int) -> tuple[int, int]:
    """Set the number of threads of PyTorch and of compiled loops in this thread; return the numbers before.

    Both take their threads from the same OpenMP, and numba, when it starts, sets the number for both to the number of
    cores: so PyTorch's is read first and set last.
    """
    before = torch.get_num_threads(), loop_threads
    if HAS_NUMBA:
        import numba

        before = before[0], numba.get_num_threads()
        numba.set_num_threads(min(loop_threads, numba.config.NUMBA_NUM_THREADS))
    torch.set_num_threads(torch_threads)
    return before


@contextmanager
def single_core() -> Iterator[None]:
    """Use one core, for many small operations in a row: on two, each would wait for the slower of its threads."""
    before = use_threads(1, 1)
    try:
        yield
    finally:
        use_threads(*before)


def _map_in_order(
    pool: ThreadPoolExecutor, work: Callable[[Job], Result], jobs: Iterable[Job], ahead: int
) -> Iterator[Result]:
    """Yield ``work(job)`` in the order of the jobs, with at most ``ahead`` of them submitted and not yet yielded."""
    remaining = iter(jobs)
    submitted = deque(pool.submit(work, job) for job in islice(remaining, ahead))
    try:
        while submitted:
            result = submitted.popleft().result()
            submitted.extend(pool.submit(work, job) for job in islice(remaining, 1))
            yield result
    finally:
        for future in submitted:
            future.cancel()


def run_on_cores(
    work: Callable[[Job], Result], jobs: Iterable[Job], stop: threading.Event | None = None
) -> list[Result]:
    """Return ``work(job)`` of every job; as many run at a time as PyTorch may use threads, each on one core.

    If a job fails or the caller is interrupted, ``stop`` is set, so that jobs that look at it end early.
    """
    jobs = list(jobs)
    cores = torch.get_num_threads()
    if cores == 1:
        with single_core():  # compiled loops have threads of their own, and would use every core
            return [work(job) for job in jobs]
    if len(jobs) <= 1:
        return [work(job) for job in jobs]
    with ThreadPoolExecutor(cores, initializer=use_threads, initargs=(1, 1)) as pool:
        try:
            return list(_map_in_order(pool, work, jobs, ahead=len(jobs)))
        except BaseException:
            if stop is not None:
                stop.set()
            raise


def ranges(total: int, step: int) -> list[Range]:
    """Return 0 … total as ranges (start, stop) of ``step``."""
    return [(start, min(start + step, total)) for start in range(0, total, step)]


def even_ranges(total: int) -> list[Range]:
    """Return 0 … total as four ranges per thread."""
    return ranges(total, max(1, -(-total // (4 * num_threads()))))


def map_ranges(work: Callable[[int, int], Result], parts: Iterable[Range]) -> Iterator[Result]:
    """Yield ``work(start, stop)`` in the order of the ranges, computed by all threads.

    The number of results that nobody has taken yet is at most twice the number of threads, so memory stays bounded.
    """
    with ThreadPoolExecutor(num_threads()) as pool:
        yield from _map_in_order(pool, lambda part: work(*part), parts, ahead=2 * num_threads())


class EpochCounter:
    """The joint progress of batches that run at the same time; raises in each of them once ``stop`` is set."""

    def __init__(self, progress: Progress, total: int) -> None:
        self.progress, self.total, self.done = progress, total, 0
        self.lock = threading.Lock()
        self.stop = threading.Event()

    def add(self, amount: int) -> None:
        """Count ``amount`` more epochs."""
        if self.stop.is_set():
            raise InterruptedError("another run failed, or training was interrupted")
        with self.lock:
            self.done = min(self.total, self.done + amount)  # a batch tried again is counted again
            self.progress(self.done, self.total)


def run_in_batches(
    train_part: Callable[[slice], Result], replicas: int, batch_size: int, device: torch.device, tally: EpochCounter
) -> list[Result]:
    """Train all replicas in batches: on a CPU one batch per core, on a GPU one batch after the other."""
    if device.type == "cpu":
        return run_on_cores(train_part, [slice(*part) for part in ranges(replicas, batch_size)], tally.stop)
    return run_halving(train_part, replicas, batch_size)


def run_halving(train_part: Callable[[slice], Result], replicas: int, batch_size: int) -> list[Result]:
    """Train batch after batch, and halve the size of the remaining ones when the device runs out of memory."""
    results: list[Result] = []
    done = 0
    while done < replicas:
        part = slice(done, min(done + batch_size, replicas))
        try:
            results.append(train_part(part))
            done = part.stop
        except torch.cuda.OutOfMemoryError:
            if batch_size == 1:
                raise
            batch_size = -(-batch_size // 2)
            torch.cuda.empty_cache()
    return results


def plan_batch(replicas: int, bytes_per_replica: Callable[[], float], device: torch.device, share: float = 0.6) -> int:
    """Return the number of replicas to train together: one on a CPU, where more only crowd the caches.

    On a GPU, batches of like size that fit into a share of its free memory; ``bytes_per_replica`` is called only there.
    """
    if device.type == "cpu":
        return 1
    each = bytes_per_replica()
    batches = -(-replicas // max(1, int(share * free_memory(device) / each)))
    return -(-replicas // batches)
