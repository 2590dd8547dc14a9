"""Many runs, so many at a time: how large batches are, on which core they run, and how far all of them are."""

import threading
from collections.abc import Callable
from typing import TypeVar

import torch

from graphpartner.progress import Progress
from graphpartner.train.cores import side_by_side

Outcome = TypeVar("Outcome")


class Tally:
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


def in_batches(
    train_part: Callable[[slice], Outcome], replicas: int, batch_size: int, device: torch.device, tally: Tally
) -> list[Outcome]:
    """All replicas, so many at a time: on a CPU one batch a core, on a GPU one batch after the other."""
    if device.type == "cpu":
        return side_by_side(train_part, _parts(0, replicas, batch_size), tally.stop)
    return halving(train_part, replicas, batch_size)


def halving(train_part: Callable[[slice], Outcome], replicas: int, batch_size: int) -> list[Outcome]:
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


def like_batches(replicas: int, fitting: int) -> int:
    """The size of batches of like size, where so many replicas fit at a time."""
    batches = -(-replicas // max(1, fitting))
    return -(-replicas // batches)
