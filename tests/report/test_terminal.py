"""Progress, and tables fitted to a terminal."""

import io
import re
import time

import pytest
from rich.console import Console, RenderableType
from rich.text import Text

from graphpartner.report import terminal
from graphpartner.report.terminal import Column, blocks, bullets, facts, fitted, natural, progress, show
from graphpartner.system.progress import format_duration


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.00153, "1.5 ms"),
        (0.42, "0.42 s"),
        (8.13, "8.1 s"),
        (9.99, "10 s"),
        (42.4, "42 s"),
        (59.7, "1 min 0 s"),
        (200, "3 min 20 s"),
        (3599.9, "1 h 0 min"),
        (7500, "2 h 5 min"),
    ],
)
def test_duration(seconds: float, words: str) -> None:
    assert format_duration(seconds) == words


def test_lines_in_a_pipe(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    now = iter([0.0, 10.0, 12.0, 15.0, 20.0, 21.0])
    monkeypatch.setattr(time, "monotonic", lambda: next(now))
    with progress("training") as on_progress:
        on_progress(0, 100)  # ten seconds of preparation do not count for the pace
        on_progress(10, 100)
        on_progress(25, 100)
        on_progress(50, 100)
        on_progress(60, 100)
    assert capsys.readouterr().err.splitlines() == [
        "training: 10%, 12 s taken, at most 18 s left",
        "training: 50%, 20 s taken, at most 10 s left",
    ]


def test_the_last_line_in_a_pipe_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = iter([0.0, 1.0, 6.0])
    monkeypatch.setattr(time, "monotonic", lambda: next(now))
    with progress("training") as on_progress:
        on_progress(0, 100)
        on_progress(100, 100)
    assert capsys.readouterr().err == "training: 100%, 6 s taken\n"


def test_a_line_in_a_pipe_says_that_a_job_has_begun(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(terminal, "FIRST_AFTER", 0.01)
    with progress("training"):
        time.sleep(0.5)
    assert capsys.readouterr().err == "training: begun\n"


def test_a_bar_shows_the_time_remaining_once_it_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = io.StringIO()
    console = Console(file=seen, force_terminal=True, width=80)
    monkeypatch.setattr(terminal, "notes", lambda: console)
    with progress("training") as on_progress:
        time.sleep(0.3)  # the bar moves ten times a second
        assert "training" in seen.getvalue()
        assert "ends within" not in seen.getvalue()
        for done in range(1, 5):
            on_progress(done, 100)
            time.sleep(0.2)
    assert re.search(r"ends within \d:\d\d:\d\d", re.sub(r"\x1b\[[0-9;]*m", "", seen.getvalue()))


def test_a_short_job_has_no_progress(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("training") as on_progress:
        on_progress(0, 2)
        on_progress(2, 2)
    assert capsys.readouterr() == ("", "")


def test_tables_in_a_pipe_end_where_their_words_end(capsys: pytest.CaptureFixture[str]) -> None:
    show(facts([("nodes", "3"), ("a longer name", "a longer value")]), bullets(["one thing", "word " * 80]))
    out, err = capsys.readouterr()
    assert err == ""
    assert out.splitlines()[:3] == ["nodes          3", "a longer name  a longer value", "• one thing"]
    assert all(line == line.rstrip() for line in out.splitlines())
    assert re.search(r"^  word", out, re.MULTILINE)  # a long sentence goes on beside its bullet


NAMES = Column("", ["a long name", "short"], "left", wraps=True)
NUMBERS = Column("ours", ["84.20 ± 0.28", "7"])


def lines(*parts: RenderableType, width: int = 80) -> list[str]:
    written = io.StringIO()
    console = Console(width=width, file=written)
    for part in parts:
        console.print(part, crop=False)
    return [line.rstrip() for line in written.getvalue().splitlines()]


def test_a_table_where_there_is_room() -> None:
    assert natural([NAMES, NUMBERS]) == 11 + 2 + 12
    whole = ["                     ours", "a long name  84.20 ± 0.28", "short                   7"]
    for width in (25, 80):
        assert lines(fitted([NAMES, NUMBERS], width)) == whole


@pytest.mark.parametrize("width", [24, 19, 10])
def test_words_wrap_and_numbers_never(width: int) -> None:
    found = lines(fitted([NAMES, NUMBERS], width), width=width)
    assert sum("84.20 ± 0.28" in line for line in found) == 1
    assert "…" not in "".join(found)
    assert {"a", "long", "name", "short"} <= set(" ".join(found).split())
    assert max(map(len, found)) <= max(width, 5 + 2 + 12)


def test_square_brackets_are_no_markup() -> None:
    found = lines(fitted([Column("", ["[red]x"], "left"), Column("", [Text("[2]", "red")])], 80))
    assert found[1] == "[red]x  [2]"


def test_blocks_are_about_equally_wide_and_each_has_the_names() -> None:
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
