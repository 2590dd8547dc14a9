"""The suite ``fit``: the page follows from the results, and cases are drawn as described."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphpartner.cli import main
from graphpartner.lab.bench import own_graph
from graphpartner.lab.bench.own_graph import draw, measure_fits, own_graph_page, points, read_cases
from graphpartner.system.errors import InputError

REPOSITORY = Path(__file__).parents[3]


def own_row(graph: str, case: str, **more: Any) -> dict[str, Any]:
    estimate = {"accuracy": 0.875, "low": 0.85, "high": 0.9}
    references = dict.fromkeys(["majority", "logistic regression", "MLP", "label propagation", "GCN"], 0.8)
    row = {"graph": graph, "case": case, "budget": "2m", "accuracy": 0.9, "ece": 0.01, "chance": 0.01, "nodes": 5000}
    return row | {"seconds": 118.2, "estimate": estimate, "references": references} | more


def test_memory_has_a_column_where_it_was_measured() -> None:
    rows = [own_row("cora", "as it is"), own_row("planted", "as it is", memory=1_840_000_000), own_row("cora", "hubs")]
    tables = re.findall(r"(?:^\|.*\n)+", own_graph_page(rows), re.MULTILINE)
    known, unknown = ([line.strip("| ").split(" | ") for line in text.splitlines()] for text in tables)
    assert known[0][:6] == ["graph", "test nodes", "accuracy", "to best", "time", "memory"]
    cells = ["5,000", "**90.0\N{NO-BREAK SPACE}%**", "+10.0", "118\N{NO-BREAK SPACE}s"]
    assert known[2:] == [
        ["cora", *cells, "–", *known[2][6:]],
        ["planted", *cells, "1.8\N{NO-BREAK SPACE}GB", *known[3][6:]],
    ]
    assert unknown[0] == [name for name in known[0] if name != "memory"]
    assert unknown[2] == ["cora", *cells, *known[2][6:]]
    assert known[2][-7:-5] == ["87.5\N{NO-BREAK SPACE}%", "85.0 to 90.0\N{NO-BREAK SPACE}%"]


def test_the_page_gives_the_error_of_few_labels_and_names_what_is_generated() -> None:
    few = [
        own_row("cora", "5 labels per class", accuracy=0.5),
        own_row("coauthor-cs", "5 labels per class", accuracy=0.9),
    ]
    assert points(few) == "3 to 8"  # √(0.9 · 0.1 / 75) and √(0.5 · 0.5 / 35)
    assert "here 3 to 8 points" in own_graph_page(few)
    assert "*planted*" not in own_graph_page(few)
    assert "- *planted*: generated to see" in own_graph_page([*few, own_row("planted", "as it is")])


def test_the_committed_page_follows_from_the_committed_results() -> None:
    rows = json.loads((REPOSITORY / "results" / "own-graph.json").read_text())
    assert own_graph_page(rows) == (REPOSITORY / "docs" / "own-graph.md").read_text()


@pytest.mark.parametrize("case", read_cases()["cases"])
def test_every_case_can_be_drawn(case: str) -> None:
    graph, known = draw("citeseer", case, None, np.random.default_rng(0))
    assert (graph.y[known] >= 0).all()
    assert len(set(known.tolist())) == len(known)
    assert graph.edges.max() < len(graph.y)
    assert (graph.edges[0] != graph.edges[1]).all()


def test_only_cases_that_are_missing_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_graph, "measure_fit", lambda *_: {"accuracy": 0.5})
    rows = [own_row("cora", "hubs"), own_row("citeseer", "hubs", budget="1m")]
    done: list[tuple[str, str]] = []
    for again in (False, True):
        measure_fits(
            rows,
            ["cora", "citeseer", "planted"],
            ["hubs"],
            again=again,
            on_row=lambda row: done.append((row["graph"], row["budget"])),
        )
    assert done == [("citeseer", "2m"), ("cora", "2m"), ("citeseer", "2m")]  # planted is left as it is
    assert [row["graph"] for row in rows] == ["cora", "citeseer"]
    with pytest.raises(InputError, match="--cases all: must be one of as it is, rewired 25 %"):
        measure_fits(rows, cases=["all"])


def test_the_page_is_written_without_measuring(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    results, page = REPOSITORY / "results" / "own-graph.json", tmp_path / "page.md"
    words = ["bench", "--suite", "fit", "--no-run", "--json", str(results), "--page", str(page)]
    monkeypatch.setattr("sys.argv", ["gpnn", *words])
    main()
    assert page.read_text() == (REPOSITORY / "docs" / "own-graph.md").read_text()
    monkeypatch.setattr("sys.argv", ["gpnn", *words[:4]])
    with pytest.raises(SystemExit):
        main()
