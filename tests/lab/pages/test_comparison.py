"""Tables, figures and the page that people see, from made-up cells."""

import dataclasses
import io
import re
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import pytest
from matplotlib.figure import Figure
from rich.console import Console

from graphpartner.graph.catalogue import CATALOGUE
from graphpartner.lab.experiments import findings
from graphpartner.lab.experiments.findings import Verdict
from graphpartner.lab.experiments.reproduce import read_results
from graphpartner.lab.experiments.results import write_cells
from graphpartner.lab.pages.comparison import difference, markdown, mean_sd, published, short, terminal_tables
from graphpartner.lab.pages.result_figures import FIGURES, alt_text, draw, draw_accuracies
from graphpartner.lab.pages.results_page import in_short, notes, results_page, write_results_page
from graphpartner.report.terminal import show
from tests.lab.experiments.examples import baselines, cell, curve

REPOSITORY = Path(__file__).parents[3]
STEPS = (2, 4, 8, 16)


def table1():
    ours = dataclasses.replace(
        cell("GPNN (best)", [84.0, 84.4], "citeseer"),
        published=86.0, published_sd=0.4, outcome="lower", source="Table 1", saw_test=True, remark="too few epochs",
        device="a machine", version="1.2",
    )  # fmt: skip
    empty = dataclasses.replace(
        ours, row="GCN", method="gcn", mean=None, outcome="", reason="no baselines", remark=None
    )
    return [ours, empty, cell("GPNN (best)", [90.0], "amazon-photo")]


def page_of(folder, page):
    results = read_results(folder)
    return results_page(results, findings.verdicts(results), folder, page)


def test_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    for table in terminal_tables("table1", table1(), 240):
        show(table)
    out = capsys.readouterr().out
    assert out.startswith("table1: test accuracy, %\n")
    assert "measure" not in out  # there is one
    assert "86.0 ± 0.4" in out
    assert "84.20 ± 0.28 †" in out
    assert "-1.80" in out
    assert "lower" in out
    assert "no baselines" in out
    for table in terminal_tables("fig4", curve("full", dict.fromkeys(STEPS, 80.0)), 240):
        show(table)
    heading, steps, *_ = capsys.readouterr().out.splitlines()
    assert heading == "fig4: test accuracy, %, Cora"
    assert steps.split() == ["steps", "2", "4", "8", "16"]


def test_measures_have_a_column_or_a_table_each() -> None:
    cells = [cell("GPNN", [9.0], measure=measure) for measure in ("parameters", "seconds")]
    (both,) = rendered("table3", cells, 80)
    assert both.splitlines()[0] == "table3"
    assert "parameters" in both
    assert [part.splitlines()[0] for part in rendered("table3", cells, 30)] == [
        "table3: parameters",
        "table3: seconds per run",
    ]


def rendered(target, cells, width):
    """Each table as it is printed on a terminal of this width, nothing of it cut off by the terminal."""
    texts = []
    for table in terminal_tables(target, cells, width):
        console = Console(width=width, file=io.StringIO())
        console.print(table, crop=False)
        texts.append(console.file.getvalue())
    return texts


COMMITTED = {"made up": table1()} | read_results(REPOSITORY / "results")


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("target", list(COMMITTED))
def test_numbers_and_names_are_whole_at_every_width(target: str, width) -> None:
    cells = [each for each in COMMITTED[target] if each.measure != "picture"]
    text = "".join(rendered(target, cells, width))
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= width
    expected = Counter()
    for each in cells:
        if each.at:
            expected[short(each)] += 1
        else:
            expected[each.graph] += 1
            expected.update(published(each).split() + difference(each).split())
            expected.update(mean_sd(each.measure, each.mean, each.sd).split() if each.mean is not None else [])
    assert not expected - Counter(text.split())


def test_a_graph_that_joins_the_catalogue_has_a_column(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CATALOGUE, "mine", CATALOGUE["pubmed"])
    cells = [cell("GCN", [80.0]), cell("GCN", [70.0], "mine")]
    assert markdown(cells).splitlines()[0] == "| test accuracy, % | Cora | PubMed |"


def test_markdown() -> None:
    lines = markdown(table1()).splitlines()
    assert lines[0] == "| test accuracy, % | CiteSeer | A-Photo |"
    assert "**84.20 ± 0.28** (2) †<br>paper 86.0 ± 0.4, -1.80 lower" in lines[2]
    assert "*no baselines*<br>paper 86.0 ± 0.4" in lines[3]
    assert markdown(curve("full", {2: 80.0, 16: 79.5})).splitlines() == [
        "**Cora: test accuracy, %**",
        "",
        "| steps | 2 | 16 |",
        "|---|--:|--:|",
        "| full | 80.00 | 79.50 |",
    ]


def test_the_page_says_where_we_fall_short(tmp_path: Path) -> None:
    write_cells(tmp_path / "table1.json", table1())
    write_cells(tmp_path / "fig4.json", depth_cells("fig4"))
    results = read_results(tmp_path)
    for target, cells in results.items():
        draw(target, cells, tmp_path)
    page = tmp_path / "docs" / "results.md"
    write_results_page(results, findings.verdicts(results), tmp_path, page)
    text = page.read_text()
    assert "| table1 |" not in text  # the experiment's name is what the row says
    assert "| toy | GPNN (best) | CiteSeer | 86.0 ± 0.4 | 84.20 | -1.80 | too few epochs |" in text
    assert "Measured on a machine; graphpartner 1.2." in text
    assert "![From 2 to 16 steps, test accuracy on Cora: full 80.0 to 80.0, w/o rectification 80.5 to 80.1, " in text
    assert "](../fig4.svg)" in text
    links = "[The paper's findings](#the-papers-findings)", "[Table 1: accuracy](#table-1-accuracy)"
    assert all(link in text for link in links)
    assert "(#figure-3-over-smoothing)" not in text  # which has no results here
    assert "Without the partner accuracy falls faster on Cora" in text
    before, behind = text.index("](../fig4.svg)"), text.index("| toy")
    assert behind < before < text.index("<details><summary>The numbers behind the figure</summary>")


def test_a_shortfall_is_listed_once_and_counts_are_none(tmp_path: Path) -> None:
    ours = table1()[0]
    again = dataclasses.replace(ours, row="paper", remark="the same numbers elsewhere")
    edges = dataclasses.replace(cell("graph", [5278.0], measure="edges"), published=5429, outcome="lower")
    behind = dataclasses.replace(cell("JKNet", [71.4, 71.4], "citeseer"), outcome="holds", elsewhere=72.5)
    write_cells(tmp_path / "table1.json", [ours, again, edges, behind])
    text = page_of(tmp_path, tmp_path / "page.md")
    shortfalls = text[text.index("## Where we fall short") : text.index("## Table 1")]
    assert [line.split(" | ")[1] for line in shortfalls.splitlines()[6:] if line] == ["GPNN (best)", "JKNet"]
    assert "| JKNet | CiteSeer | 72.5 elsewhere | 71.40 | -1.10 |" in shortfalls


def test_findings_of_the_paper_and_claims_of_our_own_stand_apart_and_are_counted(tmp_path: Path) -> None:
    cells = [cell("GPNN (paper)", [80, 80.1, 80.05]), cell("GPNN (best)", [86, 86.2, 86.1])]
    write_cells(tmp_path / "table1.json", [*cells, *baselines([81, 81.3, 81.15])])
    text = page_of(tmp_path, tmp_path / "page.md")
    paper, ours = text.split("## What we claim ourselves")
    assert "Of 1, 0 hold and 1 do not." in paper
    assert (
        "| GPNN is ahead of the paper's nine baselines on Cora | does not hold | 80.0; not ahead of GCN -1.10" in paper
    )
    assert "Of 1, 1 hold and 0 do not." in ours
    assert "| Our best preset is ahead of every baseline on Cora | **holds** | 86.1; ahead of GCN +4.95" in ours


def depth_cells(target):
    rows = {
        "fig3": ("GPNN", "GCN", "GAT"),
        "fig4": ("full", "w/o rectification", "w/o partner", "w/o both"),
        "fig5": ("with", "without"),
    }.get(target, ())
    cells = table1() if target == "table1" else []
    for place, row in enumerate(rows):
        for measure in ("accuracy", "mad_gap", "energy"):
            cells += curve(row, {step: 80.0 + place / step for step in STEPS}, measure)
    if target == "bounds":
        names = ("graph_energy", "mixed_energy", "published_lower", "published_upper", "lower", "upper")
        cells = [
            cell("GPNN", [0.1 + at / 10], measure=name, steps=step, alpha=share)
            for at, name in enumerate(names) for step in STEPS for share in (0.1, 0.5, 0.9)
        ]  # fmt: skip
    if target == "fig1":
        for name in ("layer_energy", "layer_s_min", "layer_s_max", "layer_lower", "layer_upper"):
            cells += [cell("GCN", [0.5**layer], measure=name, layer=layer) for layer in range(1, 9)]
        points = {"points": [[0.0, 1.0], [1.0, 0.5]], "classes": [0, 1]}
        cells.append(dataclasses.replace(cell("GCN", [0.0], measure="picture"), mean=None, detail=points))
    return cells


@pytest.mark.parametrize("target", list(FIGURES))
def test_every_figure_is_drawn(tmp_path: Path, target: str) -> None:
    svg = draw(target, depth_cells(target), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [f"{target}.svg"]
    content = svg.read_bytes()
    assert content.lstrip().startswith(b"<?xml")
    root = ElementTree.fromstring(content)
    size = root.get("width"), root.get("height")
    assert size == ("648pt", "280.8pt") or target == "table1"  # which grows with methods and graphs
    assert len(set(re.findall(rb"(?:fill|stroke): (#[0-9a-f]{6})", content))) > 3
    assert draw(target, depth_cells(target), tmp_path).read_bytes() == content


def test_every_figure_is_described_in_a_sentence() -> None:
    texts = {target: alt_text(target, depth_cells(target)) for target in FIGURES}
    assert texts["fig3"].startswith("From 2 to 16 steps, MADGap on Cora: GPNN 80 to 80, GCN 80.5 to 80.1, GAT")
    assert texts["fig1"].endswith("beside it 2 nodes in the plane by their embedding, in 2 classes")
    assert "on Cora 0.2 to 0.2 at α = 0.1, 0.2 to 0.2 at α = 0.5" in texts["bounds"]
    assert texts["table1"] == (
        "Highest and lowest test accuracy of 1 methods, %: "
        "CiteSeer 84.2 (GPNN (best)) to 84.2 (GPNN (best)), A-Photo 90.0 (GPNN (best)) to 90.0 (GPNN (best))"
    )
    peaked = curve("with", {1: 70.0, 2: 84.0, 4: 1234.5}, "energy") + curve("with", {1: 70.0, 2: 84.0, 4: 81.0})
    assert alt_text("fig5", peaked) == (
        "From 1 to 4 steps, energy of H^(l+1) on Cora: with the contrastive loss 70 to 1,234; "
        "test accuracy on Cora: with the contrastive loss 70.0 by way of 84.0 to 81.0"
    )


def test_no_data_no_figure(tmp_path: Path) -> None:
    assert draw("fig3", [], tmp_path) is None
    assert draw("table2", table1(), tmp_path) is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("mean", "words"), [(46.5, ["◂ 46.5"]), (80.0, [])])
def test_a_method_far_below_the_others_is_printed_at_the_edge(mean, words) -> None:
    figure = Figure()
    draw_accuracies(figure, [*table1(), cell("MLP", [mean], "citeseer", method="mlp")])
    assert [text.get_text() for axes in figure.axes for text in axes.texts] == words


def test_a_grid_of_which_some_points_were_never_run(tmp_path: Path) -> None:
    cells = depth_cells("bounds")
    holes = [dataclasses.replace(each, mean=None, values=[]) if each.at["alpha"] > 0.4 else each for each in cells]
    assert "at α = 0.1" in alt_text("bounds", holes)
    assert "at α = 0.5" not in alt_text("bounds", holes)
    assert draw("bounds", holes, tmp_path) == tmp_path / "bounds.svg"
    empty = [dataclasses.replace(each, mean=None, values=[]) for each in cells]
    write_cells(tmp_path / "bounds.json", empty)
    assert "![" not in page_of(tmp_path, tmp_path / "page.md")  # the figure there is an older one


def test_links_lead_to_figures_wherever_they_lie(tmp_path: Path) -> None:
    folder = tmp_path / "my (results)"
    folder.mkdir()
    write_cells(folder / "fig4.json", depth_cells("fig4"))
    draw("fig4", depth_cells("fig4"), folder)
    assert "](my%20%28results%29/fig4.svg)" in page_of(folder, tmp_path / "my page.md")


def test_the_page_in_short(tmp_path: Path) -> None:
    rows = [
        dataclasses.replace(cell("GPNN (paper)", [84.2, 84.3, 84.1]), published=86.0, outcome="lower"),
        dataclasses.replace(cell("GPNN (best)", [86.1, 86.3, 86.2]), published=86.0, outcome="higher"),
        *baselines([81.0, 81.2, 81.1]),
    ]
    rows[2] = dataclasses.replace(rows[2], published=82.5)
    found = [*findings.table1(rows), Verdict("bounds", "Proposition 1", "always", False, "")]
    assert in_short(rows, found).splitlines() == [
        "| test accuracy, % | Cora |",
        "|---|---|",
        "| GPNN (paper) | **84.2** (-1.8) |",
        "| GPNN (best) | **86.2** (+0.2) |",
        "| best baseline | 81.1 GCN |",
        "",
        "In parentheses: less the published number.",
        "",
        "- The paper's method alone reaches the published number on 0 of 1 graphs.",
        "- GPNN (best), which goes beyond the paper, is ahead of every baseline on 1 of 1 graphs by a paired test.",
        "- The paper's baselines reach its numbers, or come within 1 point, in 8 of 9 cells of Table 1.",
        "- Of 1 findings of the paper's experiments 1 hold.",
        "- Of 1 cases of its two propositions 0 hold.",
    ]
    assert in_short([], []) == ""


def test_the_committed_page_follows_from_the_committed_results() -> None:
    page = REPOSITORY / "docs" / "results.md"
    assert page_of(REPOSITORY / "results", page) == page.read_text()


def test_one_thread_is_one(tmp_path: Path) -> None:
    machines = "a CPU, 1 threads", "a CPU, 11 threads"
    cells = [
        dataclasses.replace(cell("GPNN", [80.0], graph), device=machine)
        for graph, machine in zip(("cora", "citeseer"), machines, strict=True)
    ]
    write_cells(tmp_path / "table1.json", cells)
    assert "Measured on a CPU, 1 thread; a CPU, 11 threads;" in page_of(tmp_path, tmp_path / "results.md")


def test_a_remark_names_its_row_and_appears_where_a_method_is_behind_its_own_authors() -> None:
    near = dataclasses.replace(
        cell("JKNet", [71.4], "citeseer"), experiment="table1-jknet", outcome="holds", remark="one seed"
    )
    ours = dataclasses.replace(cell("GPNN", [86.2]), experiment="table1-gpnn", outcome="higher", remark="as it is")
    behind = dataclasses.replace(near, elsewhere=72.5)
    text = notes([behind, ours])
    assert "- JKNet on CiteSeer: one seed\n- GPNN on Cora: as it is" in text
    for fine in (near, dataclasses.replace(near, elsewhere=72.3)):
        assert "one seed" not in notes([fine, ours])
    assert "- CiteSeer: one seed" in notes([behind])
