"""From lines to cells: means, outcomes, and what stays when cells are written again."""

import dataclasses
import json
import math
from pathlib import Path

import pytest

from graphpartner.lab.experiments.experiment import Experiment, Row
from graphpartner.lab.experiments.results import NOT_RUN, Cell, cells_of, grid, merged, read_cells, write_cells
from graphpartner.system.errors import InputError
from tests.lab.experiments.examples import line, run

BASE = Experiment("toy", "table1", "Toy", "a paper", {"cora": 3}, {"GPNN": Row("gpnn", "paper")})


def made(values, **changes):
    lines = [line(run(seed), accuracy=value) for seed, value in enumerate(values)]
    return cells_of(dataclasses.replace(BASE, **changes), "GPNN", "cora", {}, lines)[0]


def test_mean_and_standard_deviation() -> None:
    cell = made([80.0, 81.0, 85.0])
    assert cell.mean == pytest.approx(82.0)
    assert cell.sd == pytest.approx(math.sqrt(7.0))
    assert cell.standard_error == pytest.approx(math.sqrt(7 / 3))
    assert (cell.runs, cell.seeds, cell.values) == (3, [0, 1, 2], [80.0, 81.0, 85.0])
    assert (cell.published, cell.outcome) == (None, "")
    assert made([80.0]).sd is None


@pytest.mark.parametrize(
    ("published", "changes", "expected"),
    [
        ([82.5, 0.4], {}, "holds"),  # two standard errors are 1.15
        ([83.2, 0.4], {}, "lower"),
        (80.8, {}, "higher"),
        (80.8, {"tolerance": 1.3}, "holds"),
        (83.4, {"tolerance": 1.3}, "lower"),
        (82.0, {"digits": {"accuracy": 0}}, "holds"),
        (81.6, {"digits": {"accuracy": 0}}, "holds"),  # cut off, not rounded
        (82.6, {"digits": {"accuracy": 0}}, "lower"),
    ],
)
def test_outcome(published, changes, expected) -> None:
    cell = made([81.0, 82.0, 83.0], published={"GPNN": {"accuracy": {"cora": published}}}, **changes)
    assert cell.outcome == expected
    assert cell.source == "a paper"


def test_seconds_of_another_machine_are_not_judged() -> None:
    experiment = dataclasses.replace(
        BASE,
        rows={"GPNN": Row("gpnn", "paper", measures=["seconds"])},
        published={"GPNN": {"seconds": {"cora": 10.9}}},
    )
    (cell,) = cells_of(experiment, "GPNN", "cora", {}, [line(run(0), seconds=1.0)])
    assert (cell.difference, cell.outcome) == (pytest.approx(-9.9), "")


def test_a_run_that_gave_no_number() -> None:
    cell = made([80.0, None])
    assert (cell.mean, cell.reason) == (None, "1 of 2 runs gave no number")


def test_one_value_a_layer() -> None:
    experiment = dataclasses.replace(BASE, rows={"GPNN": Row("gpnn", "paper", measures=["layer_energy"])})
    lines = [line(run(seed), layer_energy=[1.0 + seed, 2.0]) for seed in range(2)]
    first, second = cells_of(experiment, "GPNN", "cora", {"steps": 8}, lines)
    assert (first.at, first.mean, second.mean) == ({"steps": 8, "layer": 1}, 1.5, 2.0)


def test_grid() -> None:
    assert grid({}) == [{}]
    assert grid({"steps": [1, 2], "alpha": [0.1]}) == [{"steps": 1, "alpha": 0.1}, {"steps": 2, "alpha": 0.1}]


def test_written_again() -> None:
    old = [Cell("e", "a", "gpnn", "cora", "accuracy", mean=1.0), Cell("e", "b", "gpnn", "cora", "accuracy", mean=2.0)]
    gone = Cell("e", "gone", "gpnn", "cora", "accuracy", mean=3.0)
    new = [
        Cell("e", "a", "gpnn", "cora", "accuracy", mean=5.0),
        Cell("e", "b", "gpnn", "cora", "accuracy", reason="no"),
    ]
    places = [cell.place for cell in old]
    assert merged([*old, gone], new, places) == [new[0], old[1]]  # a reason does not replace a number
    never = dataclasses.replace(new[1], reason=NOT_RUN)
    assert merged(old, [new[0], never], places) == [new[0], never]  # the old number is of other settings
    assert merged([], new, places) == new
    assert merged([], new[::-1], places) == new


def test_fewer_of_the_same_runs_do_not_replace_more() -> None:
    whole, part, other = made([80.0, 81.0, 82.0]), made([80.0, 81.0]), made([80.0, 83.0])
    assert merged([whole], [part], [whole.place]) == [whole]
    assert merged([part], [whole], [whole.place]) == [whole]
    assert merged([whole], [other], [whole.place]) == [other]  # not the same runs


def layered(values):
    return [Cell("e", "a", "gpnn", "cora", "layer_energy", {"layer": n}, value) for n, value in enumerate(values, 1)]


def test_layers_are_replaced_together() -> None:
    empty = Cell("e", "a", "gpnn", "cora", "layer_energy", reason="not here")
    never, place = dataclasses.replace(empty, reason=NOT_RUN), [empty.place]
    old, new = layered([1.0, 2.0, 3.0]), layered([4.0, 5.0])
    assert merged([empty], new, place) == new
    assert merged([never], new, place) == new
    assert merged(old, new, place) == new  # of fewer layers
    assert merged(old, [empty], place) == old
    assert merged(old, [never], place) == [never]


def test_a_picture_is_not_lost() -> None:
    picture = Cell("e", "a", "gpnn", "cora", "picture", detail={"points": [], "classes": []})
    empty = dataclasses.replace(picture, detail=None, reason="not here")
    assert merged([picture], [empty], [picture.place]) == [picture]


def test_files(tmp_path: Path) -> None:
    cells = [made([80.0, 81.0]), Cell("e", "b", "gpnn", "cora", "accuracy", at={"steps": 2}, reason="not here")]
    write_cells(tmp_path / "a.json", cells)
    assert read_cells(tmp_path / "a.json") == cells
    assert read_cells(tmp_path / "b.json") == []
    whole = dataclasses.asdict(cells[0])
    for wrong, words in (
        ({"row": 1}, "row = 1: must be text"),
        (whole | {"at": None}, "at = None: must be keys and values"),
        (whole | {"mean": "abc"}, "mean = 'abc': must be a number"),
        (whole | {"values": 3}, "values = 3: must be a list"),
        (whole | {"spread": 3}, "unknown key .*spread; must be one of experiment, row"),
    ):
        (tmp_path / "b.json").write_text(json.dumps([wrong]))
        with pytest.raises(InputError, match=rf"b\.json: .*{words}.*; delete the file to have it written again"):
            read_cells(tmp_path / "b.json")
    (tmp_path / "folder.json").mkdir()
    with pytest.raises(InputError, match=r"folder\.json: cannot be read"):
        read_cells(tmp_path / "folder.json")
