import gzip
import json
import time
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse
from torch_geometric.data import Data

from graphpartner.graph.checks import check_graph
from graphpartner.system.errors import InputError
from graphpartner.tables.read_graph import GraphTable, read_graph

NODES = pd.DataFrame(
    {
        "id": ["007", "7", "b", "c", "d", "e"],
        "size": [1.0, 2.0, None, 4.0, 5.0, 8.0],
        "flag": [True, False, True, True, False, False],
        "colour": ["red", "blue", "red", None, "blue", "red"],
        "kind": ["x", "y", "x", "y", None, "x"],
    }
)
EDGES = pd.DataFrame(
    {"source": ["007", "7", "b", "b"], "target": ["7", "b", "007", "c"], "weight": [1.0, 2.0, 1.0, 0.5]}
)


def same(one: GraphTable, other: GraphTable) -> None:
    """Check that two graphs and the decisions about their columns are the same."""
    assert [str(id) for id in one.ids] == [str(id) for id in other.ids]
    assert one.classes == other.classes
    assert set(one.data.fields()) == set(other.data.fields())
    for name in one.data.fields():
        first, second = (
            graph.data[name].to_dense() if graph.data[name].layout == torch.sparse_csr else graph.data[name]
            for graph in (one, other)
        )
        assert first.dtype == second.dtype, name
        torch.testing.assert_close(first, second, rtol=0, atol=0, msg=name)
    codes = [
        [{**code, "name": place} for place, code in enumerate(graph.encoder.asdict()["columns"])]
        for graph in (one, other)
    ]
    assert codes[0] == codes[1]


def write(frame: Any, path: Path) -> Path:
    """Write a table as a file of the kind that its name has."""
    ending = path.name.removesuffix(".gz").rpartition(".")[2]
    if ending == "parquet":
        frame.to_parquet(path)
    elif ending in ("jsonl", "ndjson"):
        rows = [{k: v if v == v else None for k, v in row.items()} for row in frame.to_dict("records")]
        text = "\n".join(json.dumps(row) for row in rows) + "\n"
        path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    else:
        frame.to_csv(path, index=False, sep={"csv": ",", "tsv": "\t", "txt": ";"}[ending])
    return path


def as_networkx(nodes: Any, edges: Any, directed: bool = False) -> Any:
    graph = nx.DiGraph() if directed else nx.Graph()
    for row in nodes.to_dict("records"):
        graph.add_node(row.pop("id"), **{k: v for k, v in row.items() if v is not None and v == v})
    for row in edges.to_dict("records"):
        graph.add_edge(row["source"], row["target"], weight=row.get("weight", 1.0))
    return graph


def test_every_number_of_a_small_graph(tmp_path: Path) -> None:
    own = read_graph(write(NODES, tmp_path / "nodes.csv"), write(EDGES, tmp_path / "edges.csv"), label="kind")
    assert own.ids.tolist() == ["007", "7", "b", "c", "d", "e"]
    assert own.classes == ["x", "y"]
    assert own.data.y.tolist() == [0, 1, 0, 1, -1, 0]
    assert own.data.edge_index.tolist() == [[1, 2, 0, 2, 0, 1, 3, 2], [0, 0, 1, 1, 2, 2, 2, 3]]
    assert own.data.edge_weight.tolist() == [1, 1, 1, 2, 1, 2, 0.5, 0.5]
    deviation = float(np.std([1, 2, 4, 5, 8]))
    expected: list[list[float]] = [
        [-3 / deviation, 0, 1, 0, 1],
        [-2 / deviation, 0, 0, 1, 0],
        [0, 1, 1, 0, 1],
        [0, 0, 1, 0, 0],
        [1 / deviation, 0, 0, 1, 0],
        [4 / deviation, 0, 0, 0, 1],
    ]
    np.testing.assert_allclose(own.data.x.numpy(), expected, rtol=1e-6)
    assert own.columns == {
        "id": "id",
        "label": "kind",
        "split": None,
        "source": "source",
        "target": "target",
        "weight": "weight",
    }
    assert own.rows.tolist() == [0, 1, 2, 3, 4, 5]
    text = "\n".join(own.notes)
    for part in (
        "edges go from 'source' to 'target'",
        "the id of a node is in 'id'",
        "the weight of an edge is in 'weight'",
        "1 numeric column standardised: 'size'",
        "'colour' has 2 words, one-hot",
        "gaps filled with the mean and marked in a column of their own: 'size'",
        "1 node without a label",
        "2 nodes of 6 without an edge",
    ):
        assert part in text, text
    check_graph(own.data)


@pytest.mark.parametrize("ending", ["csv", "tsv", "txt", "parquet", "jsonl", "ndjson", "csv.gz", "jsonl.gz"])
def test_every_kind_of_file_gives_the_same_graph(tmp_path: Path, ending: str) -> None:
    here = read_graph(NODES, EDGES, label="kind")
    files = write(NODES, tmp_path / f"n.{ending}"), write(EDGES, tmp_path / f"e.{ending}")
    same(here, read_graph(*files, label="kind"))
    same(here, read_graph(str(files[0]), EDGES, label="kind"))
    same(here, read_graph(NODES, files[1], label="kind"))


def test_every_object_gives_the_same_graph() -> None:
    simple = EDGES.drop(index=0)  # three edges, each once
    here = read_graph(NODES, simple, label="kind")
    same(here, read_graph(as_networkx(NODES, simple), label="kind"))
    same(here, read_graph(NODES, as_networkx(NODES, simple), label="kind"))
    directed = read_graph(as_networkx(NODES, simple, directed=True), label="kind")
    same(here, directed)
    assert any("directed" in note for note in directed.notes)
    matrix = sparse.lil_array((6, 6))
    for source, target, weight in ((1, 2, 2.0), (2, 0, 1.0), (2, 3, 0.5)):
        matrix[source, target] = weight
    same(here, read_graph(NODES, matrix, label="kind"))
    same(here, read_graph(NODES, sparse.csr_matrix(matrix + matrix.T), label="kind"))


def test_a_pyg_graph_and_its_csv(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    x = generator.integers(-8, 8, (12, 4)).astype(np.float32) / 4
    y = torch.tensor([0, 1, 2, 1] * 3)
    y[5] = -1
    split = np.array(["train", "val", "test"] * 4)
    edge_index = torch.from_numpy(generator.integers(0, 12, (2, 20)))
    data = Data(x=torch.from_numpy(x), y=y, edge_index=edge_index)
    for name in ("train", "val", "test"):
        data[f"{name}_mask"] = torch.from_numpy(split == name)
    nodes = pd.DataFrame(x, columns=[f"x[{place}]" for place in range(4)])
    nodes.insert(0, "id", np.arange(12))
    nodes["y"], nodes["split"] = y.numpy(), split
    edges = pd.DataFrame(edge_index.numpy().T, columns=["u", "v"])
    files = write(nodes, tmp_path / "n.csv"), write(edges, tmp_path / "e.tsv")
    own = read_graph(data)
    same(own, read_graph(*files, label="y"))
    assert own.classes == ["0", "1", "2"]
    assert own.data.y[5] == -1
    assert own.data.val_mask.nonzero().ravel().tolist() == [1, 4, 7, 10]
    sparse_x = Data(x=data.x.to_sparse_csr(), y=y, edge_index=edge_index)
    torch.testing.assert_close(read_graph(sparse_x).data.x, own.data.x)


words = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=6)
numbers = st.one_of(st.none(), st.integers(-1000, 1000).map(float), st.floats(-1e6, 1e6, width=32))


@st.composite
def tables(draw: st.DrawFn) -> tuple[Any, Any]:
    n = draw(st.integers(4, 12))
    ids = draw(st.lists(words, min_size=n, max_size=n, unique=True))
    cells = st.lists(numbers, min_size=n, max_size=n)
    nodes = pd.DataFrame({"id": ids, "a": draw(cells), "b": draw(cells)})
    nodes["c"] = draw(st.lists(st.sampled_from(["p", "q", "r,s", 't"u', "v\tw", None]), min_size=n, max_size=n))
    rest = draw(st.lists(st.sampled_from(["one", "two", None]), min_size=n - 4, max_size=n - 4))
    nodes["y"] = ["one", "one", "two", "two", *rest]
    ends = st.lists(st.integers(0, n - 1), min_size=5, max_size=5)
    edges = pd.DataFrame({"source": [ids[i] for i in draw(ends)], "target": [ids[i] for i in draw(ends)]})
    return nodes.astype({"a": float, "b": float}), edges


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tables(), st.sampled_from(["csv", "tsv", "parquet", "jsonl"]), st.sampled_from(["csv", "parquet", "jsonl"]))
def test_any_table_comes_back_from_any_file(tmp_path: Path, both: tuple[Any, Any], one: str, other: str) -> None:
    nodes, edges = both
    here = read_graph(nodes, edges, label="y")
    same(here, read_graph(write(nodes, tmp_path / f"n.{one}"), write(edges, tmp_path / f"e.{other}"), label="y"))
    graph = as_networkx(nodes, edges)
    order = {id: place for place, id in enumerate(graph.nodes)}
    assert list(order) == list(nodes["id"])
    through = read_graph(graph, label="y")
    assert torch.equal(through.data.edge_index, here.data.edge_index)
    assert torch.equal(through.data.y, here.data.y)


def test_ids_of_every_type(tmp_path: Path) -> None:
    edges = pd.DataFrame({"src": [1_000_000_007, 5], "dst": [5, 12]})
    nodes = pd.DataFrame({"node_id": [12, 1_000_000_007, 5], "a": [1.0, 2.0, 4.0]})
    own = read_graph(nodes, edges)
    assert own.ids.tolist() == [12, 1_000_000_007, 5]
    assert own.data.edge_index.tolist() == [[2, 2, 0, 1], [0, 1, 2, 2]]
    assert own.data.y.tolist() == [-1, -1, -1]
    assert own.classes == []
    text = read_graph(write(nodes, tmp_path / "n.csv"), edges)  # text in the file, integers in the frame
    assert text.ids.tolist() == ["12", "1000000007", "5"]
    assert torch.equal(text.data.edge_index, own.data.edge_index)
    floats = write(edges.astype(float), tmp_path / "e.csv")
    pointed = read_graph(nodes, floats)
    assert torch.equal(pointed.data.edge_index, own.data.edge_index)
    assert any("(12.0)" in note for note in pointed.notes)


def test_the_id_column_is_found_by_what_edges_refer_to(tmp_path: Path) -> None:
    edges = pd.DataFrame({"a": ["p1", "p2"], "b": ["p2", "p3"], "since": [1, 2]})
    nodes = pd.DataFrame({"year": [1, 2, 2], "paper": ["p1", "p2", "p3"], "topic": ["x", "x", "y"]})
    own = read_graph(nodes, edges)
    assert own.columns["id"] == "paper"
    assert own.columns["source"] == "a"
    nodes["copy"] = nodes["paper"]
    with pytest.raises(InputError, match=r"the ids may be 'paper', 'copy'; name the column of the ids with --id"):
        read_graph(nodes, edges)
    with pytest.raises(InputError, match=r"refer to none of its columns.*--id.*'year', 'topic'"):
        read_graph(nodes[["year", "topic"]], edges)
    assert read_graph(nodes, edges, id="copy").columns["id"] == "copy"


def test_classes_in_order_and_minus_one() -> None:
    nodes = pd.DataFrame({"id": range(6), "a": range(6), "y": ["10", "9", "10", "9", "", "NA"]})
    own = read_graph(nodes, label="y")
    assert own.classes == ["9", "10"]
    assert own.data.y.tolist() == [1, 0, 1, 0, -1, -1]
    assert own.data.edge_index.shape == (2, 0)
    nodes["y"] = [-1, 0, 0, 1, 1, -1]
    assert read_graph(nodes, label="y").data.y.tolist() == [-1, 0, 0, 1, 1, -1]
    nodes["y"] = [-1, 1, 1, -1, 1, -1]
    assert read_graph(nodes, label="y").classes == ["-1", "1"]
    nodes["y"] = [1.0, None, 2.0, 1.0, 2.0, None]
    assert read_graph(nodes, label="y").classes == ["1", "2"]


def test_a_split_column() -> None:
    nodes = NODES.assign(part=["train", "train", "VALIDATION", "Valid", "test", None])
    own = read_graph(nodes, EDGES, label="kind", split="part")
    assert own.data.train_mask.tolist() == [True] * 2 + [False] * 4
    assert own.data.val_mask.tolist() == [False, False, True, True, False, False]
    assert own.data.test_mask.tolist() == [False] * 4 + [True, False]
    assert "part" not in own.encoder.names
    own = read_graph(nodes.rename(columns={"part": "Split"}), EDGES, label="kind")
    assert own.columns["split"] == "Split"


def test_nodes_marked_for_testing_are_not_for_training() -> None:
    nodes = NODES.assign(part=["test", None, None, "val", None, None])
    own = read_graph(nodes, EDGES, label="kind", split="part")
    assert own.data.train_mask.tolist() == [False, True, True, False, True, True]
    assert own.data.val_mask.nonzero().tolist() == [[3]]
    assert own.data.test_mask.nonzero().tolist() == [[0]]
    assert any("no cell in 'part' is train" in note for note in own.notes)
    own = read_graph(NODES.assign(part=None), EDGES, label="kind", split="part")
    assert own.data.get("train_mask") is None


@pytest.mark.parametrize(
    ("part", "classes"),
    [(["train", None, "train", None, "train", "val"], "1"), ([None, "val", None, "val", "train", "test"], "no")],
)
def test_nodes_for_training_have_labels_of_two_classes(part: list[str | None], classes: str) -> None:
    with pytest.raises(InputError, match=f"split column 'part' have labels of {classes} class; mark labelled"):
        read_graph(NODES.assign(part=part), EDGES, label="kind", split="part")


def test_edges_are_merged_and_loops_dropped() -> None:
    nodes = pd.DataFrame({"id": list("abc"), "f": [1.0, 2.0, 3.0]})
    edges = pd.DataFrame({"u": list("aabac"), "v": list("bbaac"), "weight": [1.0, 2.0, 5.0, 9.0, 1.0]})
    own = read_graph(nodes, edges)
    assert own.data.edge_index.tolist() == [[1, 0], [0, 1]]
    assert own.data.edge_weight.tolist() == [5.0, 5.0]  # 1 + 2 one way, 5 the other
    text = "\n".join(own.notes)
    assert "2 edges from a node to itself dropped" in text
    assert "2 rows merged" in text
    assert "edge_weight" not in read_graph(nodes, edges.assign(weight=3.0)).data
    assert "1 edge of weight 0 dropped" in "\n".join(read_graph(nodes, edges.assign(weight=[0, 1, 2, 3, 4])).notes)


def test_a_graph_grows() -> None:
    own = read_graph(NODES, EDGES, label="kind")
    new = pd.DataFrame(
        {
            "id": ["new", "c", "lone"],
            "size": [4.0, 8.0, None],
            "flag": [True, True, False],
            "colour": ["green", "red", "blue"],
            "kind": ["y", None, None],
        }
    )
    edges = pd.DataFrame({"source": ["new", "new"], "target": ["007", "c"]})
    more = read_graph(new, edges, like=own, label="kind")
    assert more.ids.tolist() == [*own.ids, "new", "lone"]
    assert more.rows.tolist() == [6, 3, 7]
    assert more.classes == own.classes
    assert more.data.y.tolist() == [*own.data.y.tolist(), 1, -1]
    kept = [0, 1, 2, 4, 5]
    assert torch.equal(more.data.x[kept], own.data.x[kept])
    deviation = float(np.std([1, 2, 4, 5, 8]))
    expected: list[list[float]] = [[0, 0, 1, 0, 0], [4 / deviation, 0, 1, 0, 1], [0, 1, 0, 1, 0]]
    np.testing.assert_allclose(more.data.x[[6, 3, 7]], expected)
    pairs = set(map(tuple, more.data.edge_index.T.tolist()))
    assert pairs == set(map(tuple, own.data.edge_index.T.tolist())) | {(6, 0), (0, 6), (6, 3), (3, 6)}
    weights = dict(zip(map(tuple, more.data.edge_index.T.tolist()), more.data.edge_weight.tolist(), strict=True))
    assert weights[6, 0] == 1.0
    assert weights[2, 1] == 2.0
    with pytest.raises(InputError, match="row 1: label 'z' in column 'kind' is no class of the model"):
        read_graph(new.assign(kind=["z", None, None]), like=own, label="kind")


@pytest.mark.parametrize("flip", [False, True])
def test_edges_read_again_change_nothing(flip: bool) -> None:
    own = read_graph(NODES, EDGES)
    again = EDGES.rename(columns={"source": "target", "target": "source"}) if flip else EDGES
    more = read_graph(NODES, again, like=own)
    assert torch.equal(more.data.edge_index, own.data.edge_index)
    assert torch.equal(more.data.edge_weight, own.data.edge_weight)
    more = read_graph(NODES, again.drop(columns="weight"), like=own)
    assert torch.equal(more.data.edge_weight, own.data.edge_weight)
    more = read_graph(NODES, again.assign(weight=4.0).head(1), like=own)  # a new weight is the new one
    changed = dict(zip(map(tuple, more.data.edge_index.T.tolist()), more.data.edge_weight.tolist(), strict=True))
    known = dict(zip(map(tuple, own.data.edge_index.T.tolist()), own.data.edge_weight.tolist(), strict=True))
    assert changed == known | {(0, 1): 4.0, (1, 0): 4.0}


def test_the_weight_that_all_edges_had_stays_the_unit() -> None:
    own = read_graph(NODES, EDGES.assign(weight=5.0), label="kind")
    assert own.edge_unit == 5.0
    new = pd.DataFrame({"id": ["new", "other"], "size": 1.0, "flag": True, "colour": "red"})
    edges = pd.DataFrame({"source": ["new", "other"], "target": ["7", "7"], "weight": [5.0, 5.0]})
    more = read_graph(new, edges, like=own)
    assert "edge_weight" not in more.data
    more = read_graph(new, edges.assign(weight=[5.0, 10.0]), like=own)
    weights = dict(zip(map(tuple, more.data.edge_index.T.tolist()), more.data.edge_weight.tolist(), strict=True))
    assert (weights[6, 1], weights[7, 1], weights[0, 1]) == (1.0, 2.0, 1.0)


def test_new_nodes_need_ids_and_no_edges() -> None:
    nodes = pd.DataFrame({"a": [1.0, 2.0, 3.0]})
    own = read_graph(nodes)
    assert own.ids.tolist() == [0, 1, 2]
    with pytest.raises(InputError, match=r"no id column, which new nodes and those of the model need; .* --id"):
        read_graph(nodes, like=own)
    more = read_graph(nodes.assign(id=["p", "q", "r"]), like=own)
    assert more.ids.tolist() == [0, 1, 2, "p", "q", "r"]
    assert torch.equal(more.data.x, own.data.x.repeat(2, 1))


def test_objects_that_do_not_fit() -> None:
    with pytest.raises(InputError, match=r"edges = a 5 × 5 matrix: must be 6 × 6, one row per node"):
        read_graph(NODES, sparse.eye_array(5))
    with pytest.raises(InputError, match=r"edges\[0, 1\] = -1.0: must be finite and not negative"):
        read_graph(NODES, sparse.csr_array(([-1.0], ([0], [1])), shape=(6, 6)))
    with pytest.raises(InputError, match="edges = a DataFrame: must be None where nodes is a PyTorch Geometric Data"):
        read_graph(Data(x=torch.ones(2, 1), edge_index=torch.zeros(2, 0, dtype=torch.int64)), EDGES)
    lonely = nx.Graph()
    lonely.add_nodes_from([("a", {"f": 1.0}), ("b", {"f": 2.0})])
    assert read_graph(lonely).data.edge_index.shape == (2, 0)


def test_structure_where_there_are_no_features() -> None:
    nodes = pd.DataFrame({"id": range(40), "y": [0, 1] * 20, "always": 1})
    ring = pd.DataFrame({"u": np.arange(40), "v": (np.arange(40) + 2) % 40})  # two rings, even and odd
    own = read_graph(nodes, ring, label="y")
    assert own.encoder.structure is not None
    assert own.data.x.shape == (40, own.encoder.num_features)
    assert torch.equal(own.data.x, read_graph(nodes, ring, label="y").data.x)
    more = read_graph(pd.DataFrame({"id": [40, 41]}), pd.DataFrame({"u": [40], "v": [0]}), like=own)
    assert torch.equal(more.data.x[:40], own.data.x)
    torch.testing.assert_close(more.data.x[40, 2:], own.data.x[0, 2:])  # where its only neighbour is
    assert not more.data.x[41, 2:].any()


def test_speed_and_a_large_table(tmp_path: Path) -> None:
    n = 100_000
    generator = np.random.default_rng(0)
    nodes = pd.DataFrame({"id": np.arange(n) * 7, "y": generator.choice(["a", "b", ""], n)})
    for column in range(5):
        nodes[f"f{column}"] = generator.normal(size=n).round(4)
    edges = pd.DataFrame(generator.choice(nodes["id"], (n, 2)), columns=["source", "target"])
    files = write(nodes, tmp_path / "n.csv"), write(edges, tmp_path / "e.csv")
    began = time.perf_counter()
    own = read_graph(*files, label="y")
    assert time.perf_counter() - began < 10
    assert own.data.x.shape == (n, 5)
    np.testing.assert_allclose(own.data.x.std(dim=0), 1.0, rtol=1e-3)
