"""Tables as wide as there is room: words go on in the next line, a number or a name is never cut."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

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
