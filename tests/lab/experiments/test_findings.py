"""Each finding on made-up data: where it holds, where it fails; and the committed verdicts on the committed data."""

import dataclasses
import json
from pathlib import Path

import pytest

from graphpartner.lab.experiments import findings
from graphpartner.lab.experiments.findings import paired, verdicts
from graphpartner.lab.experiments.reproduce import read_results
from tests.lab.experiments.examples import baselines, cell, curve

RESULTS = Path(__file__).parents[3] / "results"
STEPS = (2, 4, 6, 8, 12, 15)


def along(*values):
    return dict(zip(STEPS, values, strict=True))


def judged(judge, cells):
    return {verdict.finding: verdict.holds for verdict in judge(cells)}


def test_paired() -> None:
    found = paired([cell("a", [80, 81, 82, 83])], [cell("b", [79, 80.5, 80.5, 82])])
    assert found.mean == pytest.approx(1.0)
    assert found.pairs == 4
    assert found.p == pytest.approx(0.0163, abs=1e-3)
    assert found.ahead
    fewer = dataclasses.replace(cell("b", [79, 80.5]), seeds=[3, 9])  # one seed in common
    assert paired([cell("a", [80, 81, 82, 83])], [fewer]) is None
    assert not paired([cell("a", [80, 81, 82])], [cell("b", [80, 81, 82])]).ahead
    assert paired([cell("a", [80, 81])], [cell("b", [70, 71])]) is None  # two pairs show nothing


def fig3_cells(gpnn=(84, 84, 84, 84, 84, 84), gap=(0.5, 0.5, 0.5, 0.5, 0.5, 0.5), gcn=(81, 78, 70, 40, 30, 30)):
    cells = curve("GPNN", along(*gpnn)) + curve("GPNN", along(*gap), "mad_gap", spread=0.01)
    for row in ("GCN", "GAT"):
        cells += curve(row, along(*gcn)) + curve(row, along(0.9, 0.8, 0.6, 0.1, 0.1, 0.1), "mad_gap", spread=0.01)
    return cells


def test_fig3() -> None:
    assert judged(findings.fig3, fig3_cells()) == {
        "On Cora GCN collapses past 6 steps": True,
        "On Cora GAT collapses past 6 steps": True,
        "On Cora GPNN does not collapse past 6 steps": True,
        "When shallow, GPNN has the smaller MADGap and the higher accuracy on Cora": True,
    }
    found = judged(findings.fig3, fig3_cells(gpnn=(84, 84, 84, 80, 80, 80), gcn=(85, 78, 77, 76, 76, 76)))
    assert list(found.values()) == [False, False, False, False]
    found = judged(findings.fig3, fig3_cells(gap=(0.95, 0.5, 0.5, 0.1, 0.1, 0.1)))
    assert list(found.values()) == [True, True, False, False]


def test_fig3_without_data() -> None:
    assert judged(findings.fig3, []) == {}
    assert judged(findings.fig3, curve("GPNN", along(*[84] * 6))) == {}


def test_fig4() -> None:
    full, slightly = along(80, 84, 84, 84, 84, 83.5), along(79.7, 83.7, 83.7, 83.7, 83.7, 83.2)
    cells = (
        curve("full", full) + curve("w/o rectification", slightly) + curve("w/o partner", along(80, 83, 82, 80, 75, 70))
    )
    assert list(judged(findings.fig4, cells).values()) == [True, True]
    cells = (
        curve("full", full) + curve("w/o rectification", full) + curve("w/o partner", along(80, 84, 84, 84, 84, 83.6))
    )
    assert list(judged(findings.fig4, cells).values()) == [False, False]
    much = along(70, 74, 74, 74, 74, 73.5)  # helps, and not slightly
    assert list(judged(findings.fig4, curve("full", full) + curve("w/o rectification", much)).values()) == [False]


def fig5_cells(energy, without, accuracy):
    cells = curve("with", along(*energy), "energy", spread=0.01) + curve("without", along(*without), "energy")
    return cells + curve("with", along(*accuracy))


def test_fig5() -> None:
    falling = (60, 50, 40, 30, 20, 10)
    found = judged(findings.fig5, fig5_cells(falling, (6, 5, 4, 3, 2, 1), (80, 83, 84, 84, 82, 81)))
    assert list(found.values()) == [True, True]
    found = judged(findings.fig5, fig5_cells(falling, (6, 5, 4, 3, 2, 11), (80, 81, 82, 83, 84, 85)))
    assert list(found.values()) == [False, False]
    found = judged(findings.fig5, fig5_cells((60, 50, 55, 30, 20, 10), falling, (80, 83, 84, 84, 82, 81)))
    assert list(found.values()) == [False, False]


def layers(measure, values):
    return [cell("GCN", [value], measure=measure, layer=layer) for layer, value in enumerate(values, start=1)]


@pytest.mark.parametrize(("energy", "holds"), [(1.0, [True, True, True]), (100.0, [False, True, False])])
def test_fig1(energy, holds) -> None:
    cells = [cell("GCN", [1000.0], measure="input_energy"), *layers("layer_energy", [energy] * 8)]
    cells += layers("layer_s_min", [1e-6] * 8) + layers("layer_s_max", [4.0] * 8)
    cells += layers("layer_lower", [0.0] * 8) + layers("layer_upper", [50.0] * 8)
    assert list(judged(findings.fig1, cells).values()) == holds


def test_table1() -> None:
    best, alone = cell("GPNN (best)", [86, 86.2, 85.9]), cell("GPNN (paper)", [84, 84.2, 83.9])
    others = baselines([81, 81.3, 81])
    assert judged(findings.table1, [best, alone, *others]) == {
        "GPNN is ahead of the paper's nine baselines on Cora": True,
        "Our best preset is ahead of every baseline on Cora": True,
    }
    assert [verdict.ours for verdict in findings.table1([best, alone, *others])] == [False, True]
    rest = [each for each in others if each.row != "GAT"]
    empty = dataclasses.replace(cell("GAT", [0.0], method="gat"), mean=None, seeds=[], values=[])
    for missing in (rest, [*rest, empty]):
        verdicts = list(findings.table1([best, alone, *missing]))
        assert [verdict.holds for verdict in verdicts] == [None, None]  # a row that was not run may be ahead
        assert all(verdict.numbers.endswith("; too few runs: GAT") for verdict in verdicts)
    strong = [cell("GRAND", [85.9, 86.3, 85.8], method="grand") if each.row == "GRAND" else each for each in others]
    paper, every = findings.table1([best, alone, *strong])
    assert paper.holds is True  # the paper has nothing to say of GRAND
    assert "GRAND" not in paper.numbers
    assert every.holds is False
    assert "not ahead of GRAND" in every.numbers


def test_reaching_what_is_published_elsewhere() -> None:
    near = dataclasses.replace(cell("GCN", [81, 81.4], method="gcn"), elsewhere=82.1, elsewhere_source="someone")
    assert judged(findings.table1, [near]) == {
        "Our GCN reaches what is published elsewhere for it on the public splits": True
    }
    (verdict,) = findings.table1([dataclasses.replace(cell("GRACE", [70.2]), method="grace", elsewhere=71.2)])
    assert verdict.holds is True  # a point, and what binary fractions add to it
    (verdict,) = findings.table1([dataclasses.replace(near, elsewhere=82.3)])
    assert verdict.holds is False
    assert verdict.numbers == "Cora -1.10"


def test_table3() -> None:
    def gains(**points):
        cells = []
        for graph, gain in points.items():
            name = graph.replace("_", "-")
            cells += [
                cell("with enhancement", [80 + gain, 81 + gain, 82 + gain], name),
                cell("without enhancement", [80, 81, 82], name),
            ]
        return judged(findings.table3, cells)

    (most,) = gains(cora=0.1, citeseer=0.5, coauthor_cs=0.9)
    assert gains(cora=0.1, citeseer=0.5, coauthor_cs=0.9) == {most: True}
    assert gains(cora=0.6, citeseer=0.5, coauthor_cs=0.9) == {most: False}
    assert gains(cora=-0.6, citeseer=-0.1, coauthor_cs=0.9) == {most: False}
    assert gains(cora=0.6) == {}


def test_table4() -> None:
    def times(*ours):
        cells = []
        for graph, seconds in zip(
            ("cora", "citeseer", "pubmed", "coauthor-cs", "amazon-computers", "amazon-photo"), ours, strict=False
        ):
            cells += [cell("GPNN, one by one", [seconds], graph, "seconds")]
            cells += [cell("GCNII, one by one", [10.0], graph, "seconds")]
        return list(judged(findings.table4, cells).values())

    assert times(1, 2, 20, 3, 4, 5) == [True]
    assert times(1, 2, 20, 30, 4, 5) == [False]
    assert times(1, 2) == [None]  # too few graphs to say
    fewer = [cell("GPNN, one by one", [5], measure="parameters"), cell("GCNII, one by one", [9], measure="parameters")]
    assert judged(findings.table4, fewer) == {"GPNN has fewer parameters than GCNII": True}
    assert judged(findings.table4, [fewer[0], dataclasses.replace(fewer[1], mean=4.0)]) == {
        "GPNN has fewer parameters than GCNII": False
    }


def test_scores() -> None:
    plain, worse, same = [74, 74.5, 74.2], [70, 70.4, 70.3], [74.1, 74.4, 74.2]
    cells = [cell("inner, self", plain), cell("softmax, self", worse), cell("cosine, neighbours", same)]
    assert list(judged(findings.scores, cells).values()) == [True, True]
    cells = [cell("inner, self", plain), cell("softmax, self", same), cell("cosine, neighbours", worse)]
    assert list(judged(findings.scores, cells).values()) == [False, False]
    cells = [cell("inner, self", plain, "citeseer"), cell("cosine, neighbours", same, "citeseer")]
    assert list(judged(findings.scores, cells).values()) == [False]  # there the paper says improved


def test_bounds() -> None:
    def point(steps, mixed):
        values = {"graph_energy": 0.2, "mixed_energy": mixed, "published_lower": 0.1, "published_upper": 0.5}
        values |= {"lower": 0.05, "upper": 0.9}
        return [cell("GPNN", [value], measure=name, steps=steps, alpha=0.3) for name, value in values.items()]

    found = list(judged(findings.bounds, point(2, 0.3) + point(3, 0.07)).values())
    assert found == [True, False, True, False, True, True, True, True, True, True]
    assert list(judged(findings.bounds, point(2, 0.6)).values()) == [True, True, False, True, True]


def test_beyond() -> None:
    cells = [cell("paper", [80, 81, 82]), cell("tuned", [82, 83.1, 84.1]), cell("views", [82, 83, 84])]
    cells += [cell("distilled", [83, 84, 85]), cell("ensemble of 16", [82, 82.2, 82.1])]
    assert list(judged(findings.beyond, cells).values()) == [True, False, True]
    members = cell("ensemble of 16", [81, 81.3, 81.1], measure="member_accuracy")  # of splits of its own
    assert list(judged(findings.beyond, [*cells, members]).values()) == [True, False, True, True]


def test_committed_verdicts_follow_from_the_committed_data() -> None:
    committed = json.loads((RESULTS / "verdicts.json").read_text())
    assert [dataclasses.asdict(verdict) for verdict in verdicts(read_results(RESULTS))] == committed
