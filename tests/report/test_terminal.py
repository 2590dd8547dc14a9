import re

import pytest

from graphpartner.report import terminal
from graphpartner.report.terminal import bullets, duration, facts, progress, show


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
    assert duration(seconds) == words


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
