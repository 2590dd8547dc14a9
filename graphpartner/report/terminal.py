"""Results on stdout; progress and notes on stderr, as a bar on a terminal and as lines in a pipe.

Tables are fitted to the width of the terminal: text wraps between words, but no number or name is cut. Rich alone
would cut both where there is no room, with an ellipsis.
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

WIDE = 240  # columns in a pipe
LINE_EVERY = 5.0  # seconds between two lines in a pipe
FIRST_AFTER = 2.0  # seconds until the first of them: loops may be compiled before anything is done
GAP = 2  # blanks between two columns


def results() -> Console:
    """Return the console of results: stdout."""
    return Console(width=None if sys.stdout.isatty() else WIDE, highlight=False)


def notes() -> Console:
    """Return the console of everything else: stderr."""
    return Console(stderr=True, width=None if sys.stderr.isatty() else WIDE, highlight=False)


def show(*parts: RenderableType) -> None:
    """Print results uncropped; in a pipe without the blanks that fill a table up to its width."""
    console = results()
    if console.is_terminal:
        console.print(*parts, sep="\n", soft_wrap=all(isinstance(part, str) for part in parts), crop=False)
        return
    with console.capture() as text:
        console.print(*parts, sep="\n", crop=False)
    print(*(line.rstrip() for line in text.get().splitlines()), sep="\n")


def facts(rows: Iterable[tuple[str, str]]) -> Table:
    """Return a table of names and values, one pair per line."""
    table = Table(box=None, show_header=False, pad_edge=False)
    for name, value in rows:
        table.add_row(name, value)
    return table


def bullets(sentences: Iterable[str]) -> Table:
    """Return a list of sentences, each wrapped beside its bullet."""
    grid = Table.grid(padding=(0, 1))
    for sentence in sentences:
        grid.add_row("•", sentence)
    return grid


@contextmanager
def progress(title: str) -> Iterator[Progress]:
    """Give a function of (done, total) that shows how far a job is and when it will end."""
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
    """The time remaining, once it can be estimated."""

    def render(self, task: Task) -> Text:
        return Text.assemble("ends within ", super().render(task)) if task.time_remaining else Text()


class _Lines:
    """One line every few seconds: share done, time taken, and the maximum time left, since runs may stop early.

    The time left follows from the pace since the first report: preparation before it happens only once.
    """

    def __init__(self, title: str, console: Console) -> None:
        self.title, self.console = title, console
        self.start = self.printed = time.monotonic()
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
        if now - self.printed < LINE_EVERY or done == before:
            return
        self.printed = now
        self.begun.cancel()
        line = f"{self.title}: {done / total:.0%}, {format_duration(now - self.start)} taken"
        if done < total:
            line += f", at most {format_duration((now - since) * (total - done) / (done - before))} left"
        self.console.print(line)


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes:
        header: its heading.
        cells: from top to bottom.
        justify: alignment of heading and cells.
        wraps: whether text may wrap between two words.
    """

    header: str
    cells: Sequence[Text | str]
    justify: Literal["left", "right"] = "right"
    wraps: bool = False

    @property
    def width(self) -> int:
        """The width of its longest cell."""
        return max(map(cell_len, self._texts))

    @property
    def least(self) -> int:
        """The width of its longest word if it wraps, else of its longest cell."""
        if not self.wraps:
            return self.width
        return max((cell_len(word) for text in self._texts for word in text.split()), default=0)

    @property
    def _texts(self) -> list[str]:
        return [self.header, *map(str, self.cells)]


def natural(columns: Sequence[Column]) -> int:
    """Return the width of a table of these columns when nothing in it wraps."""
    return _total([column.width for column in columns])


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + GAP * (len(widths) - 1)


def fitted(columns: Sequence[Column], width: int) -> Table:
    """Return a table within a width, by narrowing the widest columns that wrap; wider where none can be narrowed."""
    widths = [column.width for column in columns]
    while _total(widths) > width:
        wide = [place for place, column in enumerate(columns) if widths[place] > column.least]
        if not wide:
            break
        widths[max(wide, key=widths.__getitem__)] -= 1
    table = Table(box=None, pad_edge=False, padding=(0, GAP // 2), width=_total(widths))
    for column, own in zip(columns, widths, strict=True):
        table.add_column(column.header, justify=column.justify, width=own)
    for row in zip(*(column.cells for column in columns), strict=True):
        table.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in row))
    return table


def blocks(names: Column, numbers: Sequence[Column], width: int) -> list[Table]:
    """Return a wide table as tables of about equal width, each with the names at its left."""
    room = max(1, (width - names.width) // (max(column.width for column in numbers) + GAP))
    size = math.ceil(len(numbers) / math.ceil(len(numbers) / room))
    return [fitted([names, *numbers[start : start + size]], width) for start in range(0, len(numbers), size)]
