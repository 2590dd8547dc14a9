"""Files are checked against dataclasses, and errors name file, key, value and what would be right."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest

from graphpartner.system.errors import InputError
from graphpartner.system.schema import check_content, check_json, read_yaml


@dataclass(frozen=True)
class Inner:
    runs: int = 2
    vary: dict[str, list[float]] = field(default_factory=dict)


@dataclass(frozen=True)
class Outer:
    name: str
    inner: Inner | None = None
    rows: dict[str, Inner] = field(default_factory=dict)
    mean: dict[str, float | list[float]] = field(default_factory=dict)
    saw_test: bool = False
    steps: int | float = 1
    timing: Literal["alone", "together"] = "alone"
    anything: dict[str, Any] = field(default_factory=dict)


def test_dataclasses_are_made_at_every_level() -> None:
    content = {
        "name": "a", "inner": {"runs": 3}, "rows": {"b": {"vary": {"c": [1, 2.5]}}}, "mean": {"d": 1, "e": [1, 2]},
        "anything": {"f": [None, "g"]},
    }  # fmt: skip
    outer = check_content(Outer, content, "a.yaml")
    rows = {"b": Inner(vary={"c": [1.0, 2.5]})}
    assert outer == Outer("a", Inner(3), rows, {"d": 1.0, "e": [1.0, 2.0]}, anything={"f": [None, "g"]})
    assert type(outer.mean["d"]) is float
    assert [type(check_content(Outer, {"name": "a", "steps": n}, "a.yaml").steps) for n in (2, 2.0)] == [int, float]
    assert check_json(list[Inner], '[{"runs": 1}, {}]', "a.json") == [Inner(1), Inner(2)]

    assert check_json(Inner, '{"runs": 1, "more": 2}', "a.json", more_keys=True) == Inner(1)


WRONG: list[tuple[Any, str]] = [
    (None, "must hold keys and values"),
    ([1], "[1]: must be keys and values"),
    ({}, "the key name is missing"),
    ({"name": 3}, "name = 3: must be text"),
    ({"name": "a", "rows": {"b": "c"}}, "rows.b = 'c': must be keys and values"),
    ({"name": "a", "rows": {"b": {"run": 1}}}, "unknown key rows.b.run; must be one of runs, vary"),
    ({"name": "a", "inner": {"run": 1}}, "unknown key inner.run; must be one of runs, vary"),
    ({"nam": "a"}, "unknown key nam; must be one of name, inner, rows, mean, saw_test, steps, timing, anything"),
    ({"name": "a", "mean": {"d": float("inf")}}, "mean.d = inf: must be a finite number or a list"),
    ({"name": "a", "steps": "2"}, "steps = '2': must be a number"),
    ({"name": "a", "timing": "both"}, "timing = 'both': must be 'alone' or 'together'"),
    ({"name": "a", "inner": {"runs": 2.5}}, "inner.runs = 2.5: must be a whole number"),
    ({"name": "a", "inner": {"runs": True}}, "inner.runs = True: must be a whole number"),
    ({"name": "a", "inner": {"vary": {"c": [1, "2"]}}}, "inner.vary.c[1] = '2': must be a number"),
    ({"name": "a", "mean": {"d": "high"}}, "mean.d = 'high': must be a number or a list"),
    ({"name": "a", "mean": {"d": [1, "high"]}}, "mean.d[1] = 'high': must be a number"),
    ({"name": "a", "saw_test": "no"}, "saw_test = 'no': must be true or false"),
]


@pytest.mark.parametrize(("content", "message"), WRONG, ids=[message for _, message in WRONG])
def test_errors_name_file_key_and_value(content: Any, message: str) -> None:
    with pytest.raises(InputError) as error:
        check_content(Outer, content, "a.yaml")
    assert str(error.value) == f"a.yaml: {message}"


def test_what_is_no_json_or_yaml(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^a\.json: must be JSON \(EOF"):
        check_json(Outer, '{"name"', "a.json")
    path = tmp_path / "a.yaml"
    for text, message in (("a: [", "must be a YAML file"), ("- 1\n", "must hold keys and values")):
        path.write_text(text)
        with pytest.raises(InputError, match=rf"a\.yaml: {message}"):
            read_yaml(path)
    with pytest.raises(InputError, match=r"b\.yaml: cannot be read \(No such file"):
        read_yaml(tmp_path / "b.yaml")
    path.write_text("a: 1\n")
    assert read_yaml(path) == {"a": 1}
