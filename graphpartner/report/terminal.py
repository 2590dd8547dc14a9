"""Progress and tables: moving bars on a terminal, plain lines in a pipe. All of it goes to stderr but results.

Tables as wide as there is room: words go on in the next line, a number or a name is never cut.
"""

import math
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Timer
from typing import Literal, Self

from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.progress import BarColumn, Task, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bars
from rich.table import Table
from rich.text import Text

from graphpartner.system.progress import Progress, format_duration

WIDE = 240  # columns where there is no terminal that has a width
LINE_EVERY = 5.0  # seconds between two lines where there is no terminal
FIRST_AFTER = 2.0  # seconds until it says there that it has begun: loops may be compiled before anything is done


def results() -> Console:
    """Where results go: stdout, without wrapping where a program reads it."""
    return Console(width=None if sys.stdout.isatty() else WIDE, highlight=False)


def show(*parts: RenderableType) -> None:
    """Print results, nothing of them cut off; in a pipe without the blanks that fill a table up to its width."""
    console = results()
    if console.is_terminal:
        console.print(*parts, sep="\n", soft_wrap=all(isinstance(part, str) for part in parts), crop=False)
        return
    with console.capture() as text:
        console.print(*parts, sep="\n", crop=False)
    print(*(line.rstrip() for line in text.get().splitlines()), sep="\n")


def facts(rows: Iterable[tuple[str, str]]) -> Table:
    """Name and value, one pair a line."""
    table = Table(box=None, show_header=False, pad_edge=False)
    for name, value in rows:
        table.add_row(name, value)
    return table


def bullets(sentences: Iterable[str]) -> Table:
    """A list of sentences, each wrapped beside its bullet."""
    grid = Table.grid(padding=(0, 1))
    for sentence in sentences:
        grid.add_row("•", sentence)
    return grid


def notes() -> Console:
    """Where everything else goes: stderr."""
    return Console(stderr=True, width=None if sys.stderr.isatty() else WIDE, highlight=False)


@contextmanager
def progress(title: str) -> Iterator[Progress]:
    """A function of (done, total) that shows how far a job is and when it will end."""
    console = notes()
    if not console.is_terminal:
        with _Lines(title, console) as lines:
            yield lines
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn(), _End())
    with Bars(*columns, console=console, transient=True) as bars:
        task = bars.add_task(title, total=None)
        yield lambda done, total: bars.update(task, completed=done, total=total)


class _End(TimeRemainingColumn):
    """When it will end, as soon as that is known."""

    def render(self, task: Task) -> Text:
        return Text.assemble("ends within ", super().render(task)) if task.time_remaining else Text()


class _Lines:
    """One line every few seconds: share done, time taken, and the most that is left (a run may stop early).

    The time left goes by the pace since the first report, since what comes before it happens only once.
    """

    def __init__(self, title: str, console: Console) -> None:
        self.title, self.console = title, console
        self.start = self.told = time.monotonic()
        self.first: tuple[float, int] | None = None
        self.begun = Timer(FIRST_AFTER, console.print, [f"{title}: begun"])

    def __enter__(self) -> Self:
        self.begun.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.begun.cancel()

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        if self.first is None:
            self.first = now, done
        since, before = self.first
        if now - self.told < LINE_EVERY or done == before:
            return
        self.told = now
        self.begun.cancel()
        line = f"{self.title}: {done / total:.0%}, {format_duration(now - self.start)} taken"
        if done < total:
            line += f", at most {format_duration((now - since) * (total - done) / (done - before))} left"
        self.console.print(line)


GAP = 2  # blanks between two columns


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes:
        header: what stands above it.
        cells: from top to bottom.
        justify: where in the column they stand.
        wraps: whether they may go on in the next line, between two words.
    """

    header: str
    cells: Sequence[Text | str]
    justify: Literal["left", "right"] = "right"
    wraps: bool = False

    @property
    def width(self) -> int:
        """What its longest cell takes."""
        return max(map(cell_len, self._texts))

    @property
    def least(self) -> int:
        """What it takes at least: its longest word, or all of its longest cell."""
        if not self.wraps:
            return self.width
        return max((cell_len(word) for text in self._texts for word in text.split()), default=0)

    @property
    def _texts(self) -> list[str]:
        return [self.header, *map(str, self.cells)]


def natural(columns: Sequence[Column]) -> int:
    """How wide a table of these columns is when nothing in it wraps."""
    return sum(column.width for column in columns) + GAP * (len(columns) - 1)


def fitted(columns: Sequence[Column], width: int) -> Table:
    """A table within a width, the widest columns that wrap made narrower; wider where nothing can be."""
    widths = [column.width for column in columns]
    while sum(widths) + GAP * (len(columns) - 1) > width:
        wide = [place for place, column in enumerate(columns) if widths[place] > column.least]
        if not wide:
            break
        widths[max(wide, key=widths.__getitem__)] -= 1
    table = Table(box=None, pad_edge=False, padding=(0, GAP // 2), width=sum(widths) + GAP * (len(columns) - 1))
    for column, own in zip(columns, widths, strict=True):
        table.add_column(column.header, justify=column.justify, width=own)
    for row in zip(*(column.cells for column in columns), strict=True):
        table.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in row))
    return table


def blocks(names: Column, numbers: Sequence[Column], width: int) -> list[Table]:
    """A wide table as tables below each other, about equally wide, each with the names at its left."""
    each = max(column.width for column in numbers) + GAP
    room = max(1, (width - names.width) // each)
    size = math.ceil(len(numbers) / math.ceil(len(numbers) / room))
    return [fitted([names, *numbers[start : start + size]], width) for start in range(0, len(numbers), size)]
