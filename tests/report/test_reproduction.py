"""Tables, figures and the page that people see, from made-up cells."""

import dataclasses
from pathlib import Path

import pytest
from PIL import Image

from graphpartner.experiments.cells import write_cells
from graphpartner.experiments.reproduce import read_results
from graphpartner.report.alt_texts import SEEN, alt_text
from graphpartner.report.curves import FIGURES, draw
from graphpartner.report.reproduction import markdown, terminal_tables
from graphpartner.report.results_page import results_page, target_text, write_results_page, write_target
from graphpartner.report.terminal import show
from tests.experiments.toy import cell, curve

REPOSITORY = Path(__file__).parents[2]
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


def test_terminal(capsys):
    for table in terminal_tables("table1", table1()):
        show(table)
    out = capsys.readouterr().out
    assert "86.0 ± 0.4" in out
    assert "84.20 ± 0.28 †" in out
    assert "-1.80" in out
    assert "lower" in out
    assert "no baselines" in out
    for table in terminal_tables("fig4", curve("full", dict.fromkeys(STEPS, 80.0))):
        show(table)
    assert "steps 16" in capsys.readouterr().out


def test_markdown():
    lines = markdown(table1()).splitlines()
    assert lines[0] == "|  | CiteSeer | A-Photo |"
    assert "**84.20 ± 0.28** (2) †<br>paper 86.0 ± 0.4, -1.80 lower" in lines[2]
    assert "*no baselines*<br>paper 86.0 ± 0.4" in lines[3]


def test_the_page_says_where_we_fall_short(tmp_path):
    write_cells(tmp_path / "table1.json", table1())
    write_cells(tmp_path / "fig4.json", depth_cells("fig4"))
    for target, cells in read_results(tmp_path).items():
        write_target(target, cells, tmp_path)
    page = tmp_path / "docs" / "results.md"
    write_results_page(tmp_path, page)
    text = page.read_text()
    assert "| table1 |" not in text  # the experiment's name is what the row says
    assert "| toy | GPNN (best) | CiteSeer | 86.0 ± 0.4 | 84.20 | -1.80 | too few epochs |" in text
    assert "Measured on a machine; graphpartner 1.2." in text
    assert "![From 2 to 16 steps, accuracy on Cora: full 80.0 to 80.0, w/o rectification 80.5 to 80.1, " in text
    assert "](../fig4.svg)" in text
    links = "[The paper's findings](#the-papers-findings)", "[Table 1: accuracy](#table-1-accuracy)"
    assert all(link in text for link in links)
    assert "(#figure-3-over-smoothing)" not in text  # which has no results here
    assert "Without the partner accuracy falls faster on cora" in text
    assert (tmp_path / "table1.md").exists()


def depth_cells(target):
    rows = {
        "fig3": ("GPNN", "GCN", "GAT"),
        "fig4": ("full", "w/o rectification", "w/o partner", "w/o both"),
        "fig5": ("with", "without"),
    }.get(target, ())
    cells = []
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
def test_every_figure_is_drawn(tmp_path, target):
    svg, png = draw(target, depth_cells(target), tmp_path)
    assert svg.read_bytes().lstrip().startswith(b"<?xml")
    with Image.open(png) as image:
        assert image.size == (1440, 624)
        assert len(image.convert("RGB").getcolors(1 << 20)) > 20
    again = draw(target, depth_cells(target), tmp_path)
    assert again[0].read_bytes() == svg.read_bytes()


def test_every_figure_is_told_in_a_sentence():
    assert set(SEEN) == set(FIGURES)
    told = {target: alt_text(target, depth_cells(target)) for target in FIGURES}
    assert told["fig3"].startswith("From 2 to 16 steps, MADGap on Cora: GPNN 80 to 80, GCN 80.5 to 80.1, GAT")
    assert told["fig1"].endswith("beside it 2 nodes in the plane by their embedding, in 2 classes")
    assert "on Cora 0.2 to 0.2 at α = 0.1, 0.2 to 0.2 at α = 0.5" in told["bounds"]
    peaked = curve("with", {1: 70.0, 2: 84.0, 4: 1234.5}, "energy") + curve("with", {1: 70.0, 2: 84.0, 4: 81.0})
    assert alt_text("fig5", peaked) == (
        "From 1 to 4 steps, energy of H^(l+1) on Cora: with the contrastive loss 70 to 1,234; "
        "accuracy on Cora: with the contrastive loss 70.0 by way of 84.0 to 81.0"
    )


def test_no_data_no_figure(tmp_path):
    assert draw("fig3", [], tmp_path) == []
    assert draw("table1", table1(), tmp_path) == []


@pytest.mark.skipif(not (REPOSITORY / "docs" / "results.md").exists(), reason="no results yet")
def test_the_committed_page_follows_from_the_committed_results():
    page = REPOSITORY / "docs" / "results.md"
    assert results_page(REPOSITORY / "results", page) == page.read_text()


def test_a_remark_says_whom_it_is_about_and_is_told_where_a_method_is_behind_its_own_authors():
    near = dataclasses.replace(
        cell("JKNet", [71.4], "citeseer"), experiment="table1-jknet", outcome="holds", remark="one seed"
    )
    ours = dataclasses.replace(cell("GPNN", [86.2]), experiment="table1-gpnn", outcome="higher", remark="as it is")
    behind = dataclasses.replace(near, elsewhere=72.5)
    text = target_text("table1", [behind, ours])
    assert "- JKNet on CiteSeer: one seed\n- GPNN on Cora: as it is" in text
    for fine in (near, dataclasses.replace(near, elsewhere=72.3)):
        assert "one seed" not in target_text("table1", [fine, ours])
    assert "- CiteSeer: one seed" in target_text("table1", [behind])
