"""Every cell of the paper's tables has an entry that equals the printed value; every file loads; mistakes are named."""

from pathlib import Path

import pytest

from graphpartner.lab.experiments.experiment import FOLDER, TARGETS, load_experiments, read_experiment
from graphpartner.system.errors import InputError
from graphpartner.training.presets import preset

GRAPHS = ["cora", "citeseer", "pubmed", "coauthor-cs", "amazon-computers", "amazon-photo"]

TABLE1 = """
GCN                 &81.5 &70.3  &79.0  & 91.1 ± 0.5  & 76.3 ± 0.5         & 87.3 ± 1.0
GAT            &83.0 ± 0.7 &72.5 ± 0.7  &79.0 ± 0.3  & 90.8 ± 0.8    & 79.8 ± 1.2         & 86.5 ± 1.3
DGI         &81.7 ± 0.6 &71.5 ± 0.7 &77.3 ± 0.6    & 90.0 ± 0.3    & 75.9 ± 0.6         & 83.1 ± 0.5
MVGRL     &82.9 ± 0.7  &72.6 ± 0.7  &79.4 ± 0.3     & 91.3 ± 0.1    & 79.0 ± 0.6         & 87.3 ± 0.3
GRACE     &80.0 ± 0.4 &71.7 ± 0.6        &79.5 ± 1.1   & 90.1 ± 0.8    & 71.8 ± 0.4         & 81.8 ± 1.0
JKNet  &81.8 ± 0.7  &68.1 ± 1.1 &78.8 ± 0.5 &90.5 ± 0.3   &80.2 ± 0.6  &87.5 ± 0.6
APPNP &83.6 ± 0.5 &71.6 ± 0.4 &79.7 ± 0.5  &91.6 ± 1.2  &81.9 ± 0.6 &90.8 ±  0.8
JKNet(Drop)  &83.4 ± 0.6 &70.9 ± 0.6 &79.0 ± 1.0     &91.2 ± 0.4  &80.4 ± 0.5  &90.5 ± 0.4
GCNII    &85.5 ± 0.5 &73.4 ± 0.6 & 80.2 ± 0.4    & 92.5 ± 0.4  & 80.8 ± 1.4        & 90.6 ± 0.4
GPNN      &86.0 ± 0.4  &76.5 ± 0.5    &80.8 ± 0.4 &93.1 ± 0.5  &84.8 ± 0.5   &91.6 ± 0.6
"""

TABLE2 = """
cora    & 7          & 1,433         & 2,708          &5,429
citeseer      & 6          & 3,703          & 3,327   &4,732
pubmed      & 3            & 500          & 19,717     &44,338
coauthor-cs & 15         & 6,805         & 18,333       &81,894
amazon-computers    & 10          & 767         & 13,752 & 245,861
amazon-photo      &8        &745      &7,650      &119,081
"""

TABLE3 = """
edges/original_rate    & 81.0   & 80.2     & 80.8
edges/new_rate   & 90.1 & 78.3     & 90.2
edges/original_similarity  & 0.17      &0.27          &0.40
edges/new_similarity &0.53     &0.50            &0.49
without enhancement/accuracy &85.5 ± 0.5 &80.4 ± 0.4    &92.2 ± 0.3
with enhancement/accuracy     &86.0 ± 0.4  &80.8 ± 0.4    &93.1 ± 0.5
"""

TABLE4 = """
cora        & 94.9  & 10.9
citeseer    &48.8   & 31.5
pubmed      & 20.7 &  37.3
coauthor-cs &171.6  &  65.4
amazon-computers  &79.8  &  10.1
amazon-photo     & 152.7  &  9.7
"""


def rows(text):
    for line in text.strip().splitlines():
        name, *cells = (part.strip() for part in line.split("&"))
        yield name, [value(cell) for cell in cells]


def value(text):
    numbers = [float(part.replace(",", "")) for part in text.split("±")]
    return numbers if len(numbers) > 1 else numbers[0]


def published(target):
    found = {}
    for experiment in load_experiments(target):
        for row, measures in experiment.published.items():
            for measure, numbers in measures.items():
                found |= {(row, measure, graph): number for graph, number in numbers.items()}
    return found


def test_table1_is_as_printed() -> None:
    printed = {}
    for name, cells in rows(TABLE1):
        for row in ["GPNN (paper)", "GPNN (tuned)", "GPNN (best)"] if name == "GPNN" else [name]:
            printed |= {(row, "accuracy", graph): cell for graph, cell in zip(GRAPHS, cells, strict=True)}
    assert published("table1") == printed


def test_table2_is_as_printed() -> None:
    measures = ("classes", "features", "nodes", "edges")
    printed = {
        ("graph", measure, graph): cell
        for graph, cells in rows(TABLE2)
        for measure, cell in zip(measures, cells, strict=True)
    }
    assert published("table2") == printed


def test_table3_is_as_printed() -> None:
    printed = {}
    for name, cells in rows(TABLE3):
        row, _, measure = name.partition("/")
        printed |= {
            (row, measure, graph): cell for graph, cell in zip(["cora", "pubmed", "coauthor-cs"], cells, strict=True)
        }
    assert published("table3") == printed
    (experiment,) = load_experiments("table3")
    assert set(experiment.runs) == set(GRAPHS)  # CiteSeer included, whose row the paper leaves out


def test_table4_is_as_printed() -> None:
    printed = {
        (f"{method}, one by one", "seconds", graph): cell
        for graph, cells in rows(TABLE4)
        for method, cell in zip(("GCNII", "GPNN"), cells, strict=True)
    }
    assert published("table4") == printed


def test_every_target_has_a_file_and_enough_runs() -> None:
    found = load_experiments()
    assert sorted({experiment.target for experiment in found}) == sorted(TARGETS)
    methods = {row.method for experiment in load_experiments("table1") for row in experiment.rows.values()}
    assert methods == {
        "gpnn", "gcn", "gat", "dgi", "mvgrl", "grace", "jknet", "jknet-dropedge", "appnp", "gcnii",
        "mlp", "sgc", "dagnn", "grand",
    }  # fmt: skip
    for experiment in load_experiments("table1"):
        least = (100, 20) if experiment.name == "table1-gpnn" else (20, 10)
        assert [experiment.runs[graph] for graph in GRAPHS] == [least[0]] * 3 + [least[1]] * 3
        assert (experiment.tolerance == 1.0) == (experiment.name != "table1-gpnn")
    (fig3,) = load_experiments("fig3")
    assert fig3.vary == {"steps": list(range(2, 16))}


WRONG = [
    ("target: table1", "target: table9", ["target = 'table9': must be", "table1"]),
    ("title: GCN", "tilte: GCN", ["unknown key tilte; must be one of", "title"]),
    ("title: GCN\n", "", ["the key title is missing"]),
    ("cora: 20", "cora: many", ["runs.cora = 'many'", "a whole number"]),
    ("cora: 20", "imdb: 20", ["runs.imdb: must be one of", "cora"]),
    ("{method: gcn}", "{methd: gcn}", ["unknown key rows.GCN.methd", "method"]),
    ("{method: gcn}", "{method: gpnn}", ["rows.GCN.preset: must be given"]),
    ("{method: gcn}", "gcn", ["rows.GCN = 'gcn': must be keys and values"]),
    ("published:\n  GCN:", "published:\n  GAT:", ["published.GAT: must be one of the rows GCN"]),
    ("cora: 81.5, citeseer", "cora: high, citeseer", ["published.GCN.accuracy.cora = 'high'", "a number"]),
    ("quick: {runs: 2", "quick: {runs: 2.5", ["quick.runs = 2.5", "a whole number"]),
    ("tolerance: 1.0", "tolerance: true", ["tolerance = True", "a number"]),
]


@pytest.mark.parametrize(("right", "wrong", "words"), WRONG, ids=[wrong for _, wrong, _ in WRONG])
def test_mistakes_name_file_and_key(tmp_path: Path, right, wrong, words) -> None:
    text = (FOLDER / "table1-gcn.yaml").read_text()
    assert right in text
    path = tmp_path / "mine.yaml"
    path.write_text(text.replace(right, wrong, 1))
    with pytest.raises(InputError) as error:
        read_experiment(path)
    assert "mine.yaml" in str(error.value)
    for word in words:
        assert word in str(error.value)


def test_what_is_no_yaml(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    for text in ("a: [", "- 1\n"):
        path.write_text(text)
        with pytest.raises(InputError, match=r"mine\.yaml"):
            read_experiment(path)


def test_settings_that_remarks_name_are_those_of_the_presets() -> None:
    (fig4,) = load_experiments("fig4")
    for graph, name in (("cora", "Cora"), ("citeseer", "CiteSeer")):
        weight = preset(f"{graph}/paper").settings.lambda_rt
        assert f"of {round(weight, 1 if weight > 1 else 2):g} on {name}" in fig4.remarks["all"]
    (table4,) = load_experiments("table4")
    computers = preset("amazon-computers/paper").settings
    assert f"at t = {computers.threshold:g}" in table4.remarks["amazon-computers"]
