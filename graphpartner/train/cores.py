"""Several runs at a time on a CPU: one core each.

Two runs on one core each are faster than one run on two cores after the other: no operation waits for the slower of
its threads, and small ones are not split at all. It also keeps its pace when other programs use the machine.
"""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event
from typing import TypeVar

import torch

Job = TypeVar("Job")
Result = TypeVar("Result")


def side_by_side(work: Callable[[Job], Result], jobs: Iterable[Job], stop: Event | None = None) -> list[Result]:
    """``work`` of every job, as many at a time as PyTorch may use threads; each on one of them.

    When one fails, or the caller is interrupted, ``stop`` is set, so that jobs that look at it need not be waited for.
    """
    jobs = list(jobs)
    cores = torch.get_num_threads()
    if len(jobs) == 1 or cores == 1:
        return [work(job) for job in jobs]
    pool = ThreadPoolExecutor(cores, initializer=_stay_on_one_core)
    try:
        return list(pool.map(work, jobs))
    except BaseException:
        if stop is not None:
            stop.set()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def one_core() -> Iterator[None]:
    """For many small operations in a row: on two busy cores each would wait for the slower of its threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _stay_on_one_core() -> None:
    """Keep this thread to one core: both settings are the thread's own."""
    torch.set_num_threads(1)
    try:
        import numba
    except ImportError:
        return
    numba.set_num_threads(1)
