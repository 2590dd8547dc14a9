"""Row ranges shared out over threads: the kernels release the GIL, so plain threads are enough.

Every range writes or returns its own part, so the result never depends on which thread took which range.
"""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

import torch

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


def in_order(task: Callable[[int, int], Part], parts: Iterable[Range]) -> Iterator[Part]:
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
