import io

import pytest
from rich.console import Console
from rich.text import Text

from graphpartner.report.terminal import Column, blocks, fitted, natural

NAMES = Column("", ["a long name", "short"], "left", wraps=True)
NUMBERS = Column("ours", ["84.20 ± 0.28", "7"])


def lines(*parts, width=80):
    console = Console(width=width, file=io.StringIO())
    for part in parts:
        console.print(part, crop=False)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def test_where_there_is_room():
    assert natural([NAMES, NUMBERS]) == 11 + 2 + 12
    whole = ["                     ours", "a long name  84.20 ± 0.28", "short                   7"]
    for width in (25, 80):
        assert lines(fitted([NAMES, NUMBERS], width)) == whole


@pytest.mark.parametrize("width", [24, 19, 10])
def test_words_go_on_in_the_next_line_and_numbers_never(width):
    found = lines(fitted([NAMES, NUMBERS], width), width=width)
    assert sum("84.20 ± 0.28" in line for line in found) == 1
    assert "…" not in "".join(found)
    assert {"a", "long", "name", "short"} <= set(" ".join(found).split())
    assert max(map(len, found)) <= max(width, 5 + 2 + 12)


def test_square_brackets_are_what_they_are():
    found = lines(fitted([Column("", ["[red]x"], "left"), Column("", [Text("[2]", "red")])], 80))
    assert found[1] == "[red]x  [2]"


def test_blocks_are_about_equally_wide_and_each_has_the_names():
    numbers = [Column(str(step), ["0.125", "1.5"]) for step in range(1, 8)]
    names = Column("steps", ["GPNN", "GCN"], "left")
    assert len(blocks(names, numbers, 80)) == 1
    found = lines(*blocks(names, numbers, 5 + 6 * 7), width=5 + 6 * 7)
    assert [line.split() for line in found] == [
        ["steps", "1", "2", "3", "4"],
        ["GPNN", *["0.125"] * 4],
        ["GCN", *["1.5"] * 4],
        ["steps", "5", "6", "7"],
        ["GPNN", *["0.125"] * 3],
        ["GCN", *["1.5"] * 3],
    ]
    assert len(blocks(names, numbers, 1)) == 7
