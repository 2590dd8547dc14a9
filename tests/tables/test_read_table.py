"""Every mistake that a file can have is reported with its exact place and a remedy."""

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from graphpartner.system.errors import InputError
from graphpartner.tables.read_graph import GraphTable, read_graph

Reader = Callable[..., GraphTable]
NODES = "id,f,y\na,1,p\nb,2,q\nc,4,p\nd,3,q\n"
EDGES = "source,target\na,b\nb,c\n"


@pytest.fixture
def read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Reader:
    """Return a function that writes files (text or bytes) into a folder and reads the graph from there."""
    monkeypatch.chdir(tmp_path)

    def reader(
        nodes: str | bytes | None = NODES,
        edges: str | bytes | None = EDGES,
        node_file: str = "nodes.csv",
        edge_file: str = "edges.csv",
        **options: Any,
    ) -> GraphTable:
        for name, content in ((node_file, nodes), (edge_file, edges)):
            if content is not None:
                (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        return read_graph(node_file, edge_file, **{"label": "y", **options})

    return reader


def problems(read: Reader, *arguments: Any, **options: Any) -> list[str]:
    with pytest.raises(InputError) as error:
        read(*arguments, **options)
    return [line.strip() for line in str(error.value).splitlines()]


def test_nothing_wrong(read: Reader) -> None:
    assert read().data.edge_index.tolist() == [[1, 0, 2, 1], [0, 1, 1, 2]]


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ("", "nodes.csv: the file is empty; give a table with a header line and at least one row"),
        ("\n \n", "nodes.csv: the file is empty; give a table with a header line and at least one row"),
        ("id,f,y\n", "nodes.csv: a header but no rows; give a table with at least one row"),
        ("id,f,f,y\na,1,1,p\n", "nodes.csv: two columns have the same name, 'f'; rename one of them"),
        (
            "id,f,y\na,1,p\nb,2\nc,4,p\n",
            "nodes.csv, line 3: 2 fields, but the header has 3 (separated by comma); "
            "complete the row, or quote a field that contains the separator",
        ),
        (
            'id,f,y\na,1,p\n"b,2,q\nc,4,p\n',
            "nodes.csv, line 3: 1 fields, but the header has 3 (separated by comma); "
            'a quoted field spans several lines: perhaps a " is not closed',
        ),
        (
            NODES.replace("y\n", "class\n"),
            "nodes.csv: no column 'y' (--label); its columns are 'id', 'f', 'class'",
        ),
        (
            NODES + "b,5,p\n",
            "nodes.csv, line 6: id 'b' is already in line 3; remove one of the two, or give it another id",
        ),
        (NODES + ",5,p\n", "nodes.csv, line 6: no id in column 'id'; give the node one"),
        (
            "id,f,y\na,1,\nb,2,\nc,3,NA\n",
            "nodes.csv: no node has a label in column 'y'; fill in some, at least two per class",
        ),
        (
            "id,f,y\na,1,p\nb,2,p\nc,3,\n",
            "nodes.csv: all labels in column 'y' are 'p'; give at least two classes",
        ),
        (
            NODES + "e,5,r\n",
            "nodes.csv, line 6: the only node of class 'r' (column 'y'); "
            "label another one, or merge the class with one like it",
        ),
        (
            "id;f;y|z\na;1;p|z\n".replace(";", "^").replace("|z", ""),
            "nodes.csv: no column 'y' (--label); its columns are 'id^f^y'; "
            "perhaps the columns are separated otherwise: name the separator with --sep",
        ),
    ],
)  # fmt: skip
def test_node_files(read: Reader, nodes: str, expected: str | None) -> None:
    assert problems(read, nodes) == [expected]


@pytest.mark.parametrize(
    ("edges", "expected"),
    [
        (
            EDGES + "a,x9\n",
            "edges.csv, line 4: id 'x9' in column 'target' is not in nodes.csv; add the node, or remove the edge",
        ),
        (EDGES + "a,\n", "edges.csv, line 4: no id in column 'target'; give both ends of the edge, or remove it"),
        (
            "source,target,weight\na,b,-1\nb,c,1\n",
            "edges.csv, line 2: weight '-1' in column 'weight'; give a finite number that is not negative",
        ),
        (
            "source,target,weight\na,b,2\nb,c,inf\n",
            "edges.csv, line 3: weight 'inf' in column 'weight'; give a finite number that is not negative",
        ),
        (
            "source,target,weight\na,b,heavy\nb,c,1\n",
            "edges.csv, line 2: weight 'heavy' in column 'weight'; give a finite number that is not negative",
        ),
        (
            "source,target,weight\na,b,\nb,c,1\n",
            "edges.csv, line 2: no weight in column 'weight'; give a finite number that is not negative",
        ),
        (
            "ends\na^b\n",
            "edges.csv, line 1: one column only, 'ends', but an edge table has two ids per row; "
            "separate the columns by comma, tab, semicolon or bar, or name the separator with --sep",
        ),
        (
            "source,target,u,v\na,b,c,d\n",
            "edges.csv: the ends of an edge may be 'source' and 'target' or 'u' and 'v'; "
            "name them with --source and --target",
        ),
        (
            "a,b\nb,c\n",
            "edges.csv, line 1: no header, 'a' and 'b' are ids of nodes; add a first line: source,target",
        ),
        ("a;b,c\nd;e,f\n", None),
    ],
)  # fmt: skip
def test_edge_files(read: Reader, edges: str, expected: str | None) -> None:
    if expected is None:  # a comma is what .csv promises
        assert "id 'd;e' in column 'a;b' is not in nodes.csv" in problems(read, NODES, edges)[0]
    else:
        assert problems(read, NODES, edges) == [expected]


def test_options_that_name_nothing(read: Reader) -> None:
    found = problems(read, id="key", source="s", target="t", weight="w", split="part", features=["g"])
    assert found[0] == "6 problems:"
    assert set(found[1:]) == {
        "nodes.csv: no column 'part' (--split); its columns are 'id', 'f', 'y'",
        "nodes.csv: no column 'g' (--features); its columns are 'id', 'f', 'y'",
        "edges.csv: no column 's' (--source); its columns are 'source', 'target'",
        "edges.csv: no column 't' (--target); its columns are 'source', 'target'",
        "edges.csv: no column 'w' (--weight); its columns are 'source', 'target'",
        "nodes.csv: no column 'key' (--id); its columns are 'id', 'f', 'y'",
    }
    assert problems(read, features=["y"])[0].startswith("nodes.csv: 'y' is the id, label or split")
    assert problems(read, sep=";;") == ["sep = ';;': must be one character, such as ';'"]


def test_files_that_are_not_there(read: Reader, tmp_path: Path) -> None:
    found = problems(read, None, None)
    assert found[0] == "2 problems:"
    assert found[1].startswith("nodes.csv: does not exist; give the node table as a file (.csv, .tsv,")
    assert found[2].startswith("edges.csv: does not exist; give the edge table")
    assert problems(read, node_file="nodes.xlsx")[0].startswith(
        "nodes.xlsx: unknown ending; the node table must be a .csv"
    )
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(InputError, match=r"folder.csv: is a folder"):
        read_graph("folder.csv")
    with pytest.raises(InputError, match=r"the node table: must be a file .* or a pandas DataFrame, not a list"):
        read_graph([1, 2])


@pytest.mark.parametrize("blank", ["", "\n", "\n\n\n", "\r\n"])
def test_blank_lines_before_the_header(tmp_path: Path, blank: str) -> None:
    (tmp_path / "n.csv").write_bytes(f"{blank}id,a\n1,5\n\n2,7\n3,8\n4,6\n".encode())
    (tmp_path / "e.csv").write_bytes(f"{blank}source,target\n1,2\n\n2,3\n".encode())
    own = read_graph(tmp_path / "n.csv", tmp_path / "e.csv")
    assert own.ids.tolist() == ["1", "2", "3", "4"]
    assert own.data.edge_index.tolist() == [[1, 0, 2, 1], [0, 1, 1, 2]]
    (tmp_path / "e.csv").write_bytes(f"{blank}source,target\n1,2\n\n2,9\n".encode())
    line = 4 + blank.count("\n")
    with pytest.raises(InputError, match=rf"e\.csv, line {line}: id '9' in column 'target' is not in "):
        read_graph(tmp_path / "n.csv", tmp_path / "e.csv")


def test_all_kinds_of_problems_together_up_to_twenty(read: Reader) -> None:
    nodes = "id,f,y\n" + "".join(f"n{i},{i},{'pq'[i % 2]}\n" for i in range(100))
    nodes += "n1,5,p\n" + "m,many,q\n"
    edges = "source,target\n" + "".join(f"n{i},ghost{i}\n" for i in range(90))
    found = problems(read, nodes, edges)
    assert found[0] == "92 problems:"
    assert found[1] == (
        "nodes.csv, line 102: id 'n1' is already in line 3; remove one of the two, or give it another id"
    )
    assert found[2].startswith("edges.csv, line 2: id 'ghost0' in column 'target' is not in nodes.csv")
    assert found[20] == (
        "nodes.csv, line 103: 'many' in column 'f' is no finite number, as the others are; "
        "correct it, or leave the cell empty"
    )
    assert found[21:] == ["and 72 more"]


def test_ragged_rows_twenty_at_once(read: Reader) -> None:
    found = problems(read, NODES + "x\n" * 30, "source,target\na\n")
    assert found[0] == "31 problems:"
    assert found[1].startswith("nodes.csv, line 6: 1 fields, but the header has 3")
    assert found[20].startswith("edges.csv, line 2: 1 fields, but the header has 2")
    assert found[21] == "and 11 more"


def test_lines_are_counted_as_an_editor_does(read: Reader) -> None:
    nodes = 'id,f,y,note\r\n\r\na,1,p,"two\r\nlines"\r\nb,2,q,x\r\nc,2,q,x\r\na,3,p,y\r\n'
    (found,) = problems(read, nodes)
    assert found.startswith("nodes.csv, line 7: id 'a' is already in line 3;")


def test_encodings(read: Reader) -> None:
    umlaut = NODES.replace("p", "über")
    here = read(umlaut)
    assert here.classes == ["q", "über"]
    for encoding in ("utf-8-sig", "utf-16"):
        there = read(umlaut.encode(encoding), EDGES.encode(encoding))
        assert there.classes == here.classes
        assert there.data.edge_index.equal(here.data.edge_index)
        assert there.columns["id"] == "id"
    found = problems(read, umlaut.encode("latin-1"))
    assert found == [
        "2 problems:",
        "nodes.csv, line 2, byte 5: 0xFC is not UTF-8 (in Latin-1 it is 'ü'); save the file as UTF-8",
        "nodes.csv, line 4, byte 5: 0xFC is not UTF-8 (in Latin-1 it is 'ü'); save the file as UTF-8",
    ]
    mixed = umlaut.encode() + "e,5,ü\n".encode("latin-1")
    assert problems(read, mixed) == [
        "nodes.csv, line 6, byte 5: 0xFC is not UTF-8 (in Latin-1 it is 'ü'); "
        "save the file as UTF-8 (other lines are UTF-8 already: the encodings are mixed)"
    ]
    assert "UTF-16" in problems(read, umlaut.encode("utf-16")[:-1])[0]


@pytest.mark.parametrize("sep", [",", ";", "\t", "|", " "])
@pytest.mark.parametrize("file", ["nodes.csv", "nodes.tsv", "nodes.txt"])
def test_the_separator_is_found(read: Reader, sep: str, file: str) -> None:
    own = read(NODES.replace(",", sep), EDGES.replace(",", sep), node_file=file)
    assert own.encoder.names == ["f"]
    assert own.data.edge_index.shape[1] == 4


def test_separators_that_could_be_another_one(read: Reader) -> None:
    nodes = "id;f|y;z\na;1|p;1\nb;1|q;2\nc;1|p;3\nd;1|q;4\n"
    assert problems(read, nodes) == [
        "nodes.csv, line 1: the columns may be separated by semicolon or bar; name the separator with --sep"
    ]
    assert read(nodes, EDGES.replace(",", ";"), sep=";", label="f|y").classes
    found = problems(read, NODES, sep=";")
    assert found[1] == (
        "nodes.csv, line 1: one column only if separated by semicolon; it looks separated by comma: "
        "leave out --sep, or give that one"
    )


def test_packed_files(read: Reader) -> None:
    packed = gzip.compress(NODES.encode())
    assert read(packed, node_file="nodes.csv.gz").encoder.names == ["f"]
    assert "nodes.csv.gz: cannot be" in problems(read, packed[:-12], node_file="nodes.csv.gz")[0]
    assert "nodes.csv.gz: cannot be read" in problems(read, NODES, node_file="nodes.csv.gz")[0]


def test_json_lines(read: Reader) -> None:
    nodes = '{"id": "007", "f": 1, "y": "p"}\n\n{"id": "b", "f": 2.5, "y": "q"}\n'
    nodes += '{"id": "c", "f": 3, "y": "p"}\n{"id": "d", "y": "q"}\n'
    edges = '{"source": "007", "target": "b"}\n{"source": "b", "target": "z"}\n'
    files = {"node_file": "nodes.jsonl", "edge_file": "edges.ndjson"}
    assert problems(read, nodes, edges, **files)[0].startswith("edges.ndjson, line 2: id 'z' in column 'target'")
    own = read(nodes, edges.replace("z", "c"), **files)
    assert own.ids.tolist() == ["007", "b", "c", "d"]
    assert problems(read, nodes + "{broken\n[1]\n", edges.replace("z", "c"), **files) == [
        "2 problems:",
        "nodes.jsonl, line 6: no JSON (Expecting property name enclosed in double quotes at character 2); "
        'write one object per line, {"id": "a", …}, in UTF-8',
        'nodes.jsonl, line 7: a JSON list, not an object; write one object per line, {"id": "a", …}, in UTF-8',
    ]
    assert problems(read, "", edges, **files)[0].startswith("nodes.jsonl: the file is empty; write one object per line")
    mixed = nodes.replace("2.5", '"2.5"')  # a number once as text
    assert read(mixed, edges.replace("z", "c"), **files).data.x.equal(own.data.x)
    dated = nodes.replace('"007"', '"2020-01-01"')
    assert read(dated, edges.replace("z", "c").replace("007", "2020-01-01"), **files).ids[0] == "2020-01-01"


def test_parquet(read: Reader, tmp_path: Path) -> None:
    assert "nodes.parquet: no Parquet file" in problems(read, node_file="nodes.parquet")[0]
    vectors = pd.DataFrame(
        {"id": list("abcd"), "x": [[1.0, 0.5], [2.0, 1.5], [3.0, 0.0], [4.0, 9.0]], "y": list("ppqq")}
    )
    vectors.to_parquet(tmp_path / "nodes.parquet")
    own = read(None, node_file="nodes.parquet")
    assert own.encoder.names == ["x[0]", "x[1]"]
    np.testing.assert_allclose(own.data.x[:, 0], (np.arange(4) - 1.5) / np.std(np.arange(4)), rtol=1e-6)
    vectors.at[2, "x"] = [3.0]
    vectors.to_parquet(tmp_path / "nodes.parquet")
    assert problems(read, None, node_file="nodes.parquet") == [
        "nodes.parquet, row 3: the list in column 'x' has length 1, others have 2; give lists of one length"
    ]
