from collections.abc import Sequence

import pytest

from graphpartner.system.errors import InputError
from graphpartner.tables.problems import Problems, pluralise, quoted


def lines(problems: Problems) -> list[str]:
    with pytest.raises(InputError) as error:
        problems.stop_if_any()
    return str(error.value).splitlines()


def at(rows: Sequence[int]) -> list[str]:
    return [f"a.csv, line {row + 2}" for row in rows]


def test_nothing_wrong() -> None:
    problems = Problems()
    assert not problems
    problems.add_rows(at, [], lambda row: "never")
    problems.add_all([])
    problems.stop_if_any()


def test_one_problem_is_one_line() -> None:
    problems = Problems()
    problems.add("a.csv is empty; fill it.")
    assert problems
    assert lines(problems) == ["a.csv is empty; fill it."]


def test_twenty_at_once_and_every_kind_is_shown() -> None:
    problems = Problems()
    described: list[int] = []
    problems.add_rows(at, range(151), lambda row: described.append(row) or f"unknown id {row}")
    problems.add("a.csv: a single problem.")
    problems.add_all(["line 1", "line 2"])
    found = lines(problems)
    assert found[0] == "154 problems:"
    assert found[1] == "  a.csv, line 2: unknown id 0"
    assert found[17] == "  a.csv, line 18: unknown id 16"
    assert found[18:] == ["  a.csv: a single problem.", "  line 1", "  line 2", "  and 134 more"]
    assert described == list(range(17))  # no work for those that are not shown


def test_words() -> None:
    assert quoted(list("ab")) == "'a', 'b'"
    assert quoted(range(12)).endswith("'9' and 2 more")
    assert quoted([]) == "none"
    assert [pluralise(1, "node"), pluralise(2000, "node")] == ["1 node", "2,000 nodes"]
