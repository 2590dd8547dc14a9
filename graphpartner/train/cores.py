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

from graphpartner.compiled import use_threads

Job = TypeVar("Job")
Result = TypeVar("Result")


def side_by_side(work: Callable[[Job], Result], jobs: Iterable[Job], stop: Event | None = None) -> list[Result]:
    """``work`` of every job, as many at a time as PyTorch may use threads; each on one of them.

    When one fails, or the caller is interrupted, ``stop`` is set, so that jobs that look at it need not be waited for.
    """
    jobs = list(jobs)
    cores = torch.get_num_threads()
    if cores == 1:
        with one_core():  # compiled loops have threads of their own, and would use all cores there are
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
def one_core() -> Iterator[None]:
    """For many small operations in a row: on two busy cores each would wait for the slower of its threads."""
    before = use_threads(1, 1)
    try:
        yield
    finally:
        use_threads(*before)
