"""Several runs at a time on a CPU: one core each.

Two runs on one core each are faster than one run on two cores after the other: no operation waits for the slower of
its threads, and small ones are not split at all. It also keeps its pace when other programs use the machine.

Many runs, so many at a time: how large batches are, on which core they run, and how far all of them are.

Row ranges shared out over threads: the kernels release the GIL, so plain threads are enough.

Every range writes or returns its own part, so the result never depends on which thread took which range.
"""

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import islice
from threading import Event
from typing import TypeVar

import torch

from graphpartner.system.device import free_memory
from graphpartner.system.progress import Progress

Job = TypeVar("Job")
Result = TypeVar("Result")


def run_on_cores(work: Callable[[Job], Result], jobs: Iterable[Job], stop: Event | None = None) -> list[Result]:
    """``work`` of every job, as many at a time as PyTorch may use threads; each on one of them.

    When one fails, or the caller is interrupted, ``stop`` is set, so that jobs that look at it need not be waited for.
    """
    jobs = list(jobs)
    cores = torch.get_num_threads()
    if cores == 1:
        with single_core():  # compiled loops have threads of their own, and would use all cores there are
            return [work(job) for job in jobs]
    if len(jobs) == 1:
        return [work(job) for job in jobs]
    pool = ThreadPoolExecutor(cores, initializer=use_threads, initargs=(1, 1))
    try:
        return list(pool.map(work, jobs))
    except BaseException:
        if stop is not None:
            stop.set()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def single_core() -> Iterator[None]:
    """For many small operations in a row: on two busy cores each would wait for the slower of its threads."""
    before = use_threads(1, 1)
    try:
        yield
    finally:
        use_threads(*before)


Outcome = TypeVar("Outcome")


class EpochCounter:
    """Adds up the progress of batches that run at the same time, and ends them where ``stop`` is set."""

    def __init__(self, progress: Progress, total: int) -> None:
        self.progress, self.total, self.done = progress, total, 0
        self.lock = threading.Lock()
        self.stop = threading.Event()

    def add(self, amount: int) -> None:
        """So many epochs more are done."""
        if self.stop.is_set():
            raise InterruptedError("another run failed, or training was interrupted")
        with self.lock:
            self.done = min(self.total, self.done + amount)  # a batch tried again is counted again
            self.progress(self.done, self.total)


def run_in_batches(
    train_part: Callable[[slice], Outcome], replicas: int, batch_size: int, device: torch.device, tally: EpochCounter
) -> list[Outcome]:
    """All replicas, so many at a time: on a CPU one batch a core, on a GPU one batch after the other."""
    if device.type == "cpu":
        return run_on_cores(train_part, _parts(0, replicas, batch_size), tally.stop)
    return run_halving(train_part, replicas, batch_size)


def run_halving(train_part: Callable[[slice], Outcome], replicas: int, batch_size: int) -> list[Outcome]:
    """Batch after batch; when the device runs out of memory, go on with batches of half the size."""
    parts: list[Outcome] = []
    done = 0
    while done < replicas:
        try:
            part = _parts(done, replicas, batch_size)[0]
            parts.append(train_part(part))
            done = part.stop
        except torch.cuda.OutOfMemoryError:
            if batch_size == 1:
                raise
            batch_size = -(-batch_size // 2)
            torch.cuda.empty_cache()
    return parts


def _parts(start: int, stop: int, size: int) -> list[slice]:
    return [slice(first, min(first + size, stop)) for first in range(start, stop, size)]


def plan_batch(replicas: int, bytes_per_replica: Callable[[], float], device: torch.device, share: float = 0.6) -> int:
    """Return the number of replicas to train together: one on a CPU, where more only crowd the caches.

    On a GPU, batches of like size that fit into a share of its free memory; ``bytes_per_replica`` is called only there.
    """
    if device.type == "cpu":
        return 1
    each = bytes_per_replica()
    batches = -(-replicas // max(1, int(share * free_memory(device) / each)))
    return -(-replicas // batches)


Range = tuple[int, int]
Part = TypeVar("Part")


def num_threads() -> int:
    """As many threads as torch uses, which is what people set."""
    return max(1, torch.get_num_threads())


def ranges(total: int, step: int) -> list[Range]:
    """0…total in ranges of ``step``."""
    return [(start, min(start + step, total)) for start in range(0, total, step)]


def even_ranges(total: int) -> list[Range]:
    """0…total in a few ranges a thread."""
    return ranges(total, max(1, -(-total // (4 * num_threads()))))


def map_ranges(task: Callable[[int, int], Part], parts: Iterable[Range]) -> Iterator[Part]:
    """The results of ``task(start, stop)`` in the order of the ranges, a few of them under way at a time.

    Results that nobody has taken yet are never more than twice the number of threads, so memory stays bounded.
    """
    remaining = iter(parts)
    with ThreadPoolExecutor(num_threads()) as pool:
        waiting = [pool.submit(task, *part) for part in islice(remaining, 2 * num_threads())]
        try:
            while waiting:
                result = waiting.pop(0).result()
                waiting.extend(pool.submit(task, *part) for part in islice(remaining, 1))
                yield result
        finally:
            for future in waiting:
                future.cancel()


HAS_NUMBA = find_spec("numba") is not None


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
