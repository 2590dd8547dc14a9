"""Progress and tables: moving bars on a terminal, plain lines in a pipe. All of it goes to stderr but results."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bars

from graphpartner.progress import Progress

WIDE = 240  # columns where there is no terminal that has a width
LINE_EVERY = 5.0  # seconds between two lines where there is no terminal


def results() -> Console:
    """Where results go: stdout, without wrapping where a program reads it."""
    return Console(width=None if sys.stdout.isatty() else WIDE, highlight=False)


def notes() -> Console:
    """Where everything else goes: stderr."""
    return Console(stderr=True, width=None if sys.stderr.isatty() else WIDE, highlight=False)


@contextmanager
def progress(title: str) -> Iterator[Progress]:
    """A function of (done, total) that shows how far a job is and when it will end."""
    console = notes()
    if not console.is_terminal:
        yield _Lines(title, console)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Bars(*columns, TextColumn("ends in"), TimeRemainingColumn(), console=console, transient=True) as bars:
        task = bars.add_task(title, total=None)
        yield lambda done, total: bars.update(task, completed=done, total=total)


class _Lines:
    """One line every few seconds: share done, time taken, time left."""

    def __init__(self, title: str, console: Console) -> None:
        self.title, self.console = title, console
        self.start = self.told = time.monotonic()

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        if now - self.told < LINE_EVERY or not done:
            return
        self.told = now
        taken = now - self.start
        left = taken * (total - done) / done
        self.console.print(f"{self.title}: {done / total:.0%}, {duration(taken)} taken, {duration(left)} left")


def duration(seconds: float) -> str:
    """Seconds for people: 0.42 s, 8.1 s, 3 min 20 s, 2 h 5 min."""
    if seconds < 10:
        return f"{seconds:.2g} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    if seconds < 3600:
        return f"{int(seconds // 60)} min {int(seconds % 60)} s"
    return f"{int(seconds // 3600)} h {int(seconds % 3600 // 60)} min"
