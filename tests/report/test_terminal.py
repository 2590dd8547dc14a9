import io
import re
import time

import pytest
from rich.console import Console

from graphpartner.report import terminal
from graphpartner.report.terminal import bullets, facts, progress, show
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
def test_duration(seconds, words):
    assert format_duration(seconds) == words


def test_lines_in_a_pipe(monkeypatch, capsys):
    now = iter([0.0, 10.0, 12.0, 15.0, 20.0, 21.0])
    monkeypatch.setattr(terminal.time, "monotonic", lambda: next(now))
    with progress("training") as tell:
        tell(0, 100)  # ten seconds of preparation do not count for the pace
        tell(10, 100)
        tell(25, 100)
        tell(50, 100)
        tell(60, 100)
    assert capsys.readouterr().err.splitlines() == [
        "training: 10%, 12 s taken, at most 18 s left",
        "training: 50%, 20 s taken, at most 10 s left",
    ]


def test_the_last_line_in_a_pipe_leaves_nothing(monkeypatch, capsys):
    now = iter([0.0, 1.0, 6.0])
    monkeypatch.setattr(terminal.time, "monotonic", lambda: next(now))
    with progress("training") as tell:
        tell(0, 100)
        tell(100, 100)
    assert capsys.readouterr().err == "training: 100%, 6 s taken\n"


def test_a_pipe_hears_that_a_job_has_begun_before_anything_is_done(monkeypatch, capsys):
    monkeypatch.setattr(terminal, "FIRST_AFTER", 0.01)
    with progress("training"):
        time.sleep(0.5)
    assert capsys.readouterr().err == "training: begun\n"


def test_a_bar_tells_the_end_when_it_is_known(monkeypatch):
    seen = io.StringIO()
    console = Console(file=seen, force_terminal=True, width=80)
    monkeypatch.setattr(terminal, "notes", lambda: console)
    with progress("training") as tell:
        time.sleep(0.3)  # the bar moves ten times a second
        assert "training" in seen.getvalue()
        assert "ends within" not in seen.getvalue()
        for done in range(1, 5):
            tell(done, 100)
            time.sleep(0.2)
    assert re.search(r"ends within \d:\d\d:\d\d", re.sub(r"\x1b\[[0-9;]*m", "", seen.getvalue()))


def test_nothing_is_said_about_a_short_job(capsys):
    with progress("training") as tell:
        tell(0, 2)
        tell(2, 2)
    assert capsys.readouterr() == ("", "")


def test_tables_in_a_pipe_end_where_their_words_end(capsys):
    show(facts([("nodes", "3"), ("a longer name", "a longer value")]), bullets(["one thing", "word " * 80]))
    out, err = capsys.readouterr()
    assert err == ""
    assert out.splitlines()[:3] == ["nodes          3", "a longer name  a longer value", "• one thing"]
    assert all(line == line.rstrip() for line in out.splitlines())
    assert re.search(r"^  word", out, re.MULTILINE)  # a long sentence goes on beside its bullet
