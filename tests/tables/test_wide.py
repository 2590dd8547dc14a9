"""Tables of hundreds of numbers a row mean the same as if every cell had been read as text."""

import gzip

import numpy as np
import pandas as pd
import pytest
import torch

from graphpartner.system.errors import InputError
from graphpartner.tables import text_table
from graphpartner.tables.problems import Problems
from graphpartner.tables.read_graph import read_graph
from graphpartner.tables.read_table import read_table
from graphpartner.tables.text_table import WIDE, number_columns


def table(n=60, width=150, share=0.05, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.integers(1, 4, (n, width)) * (rng.random((n, width)) < share)
    frame = pd.DataFrame(x, columns=[f"w{i}" for i in range(width)]).astype(str)
    frame.insert(0, "id", [f"{i:03d}" for i in range(n)])
    frame.insert(2, "class", np.where(np.arange(n) % 3, "01", "2"))
    frame.insert(4, "amount", rng.normal(size=n).round(3).astype(str))
    frame.loc[3, "amount"] = ""
    frame["word"] = np.where(np.arange(n) % 2, "red", "blue")
    return frame


def dense(x):
    return x.to_dense() if x.layout != torch.strided else x


@pytest.mark.parametrize("share", [0.05, 0.9])
@pytest.mark.parametrize("ending", ["csv", "csv.gz"])
def test_as_if_every_cell_were_text(tmp_path, monkeypatch, share, ending):
    file = tmp_path / f"nodes.{ending}"
    content = table(share=share).to_csv(index=False).encode()
    file.write_bytes(gzip.compress(content) if ending.endswith("gz") else content)
    found = read_graph(file, label="class")
    monkeypatch.setattr(text_table, "WIDE", 10**9)
    plain = read_graph(file, label="class")
    assert list(found.ids[:2]) == ["000", "001"]
    assert found.classes == plain.classes == ["01", "2"]
    assert found.encoder.columns == plain.encoder.columns
    assert found.notes == plain.notes
    assert torch.equal(dense(found.data.x), dense(plain.data.x))
    assert torch.equal(found.data.y, plain.data.y)


def test_zeros_take_no_room(tmp_path):
    file = tmp_path / "nodes.csv"
    table().to_csv(file, index=False)
    read = read_table(str(file), "node", Problems())
    assert isinstance(read.frame["w0"].dtype, pd.SparseDtype)
    assert read.frame["id"].iloc[0] == "000"
    assert list(read.frame.columns) == list(table().columns)


def test_a_gap_among_zeros_is_a_gap(tmp_path):
    frame = table()
    frame.loc[[7, 11], "w4"] = ["", "NA"]
    file = tmp_path / "nodes.csv"
    frame.to_csv(file, index=False)
    read = read_table(str(file), "node", Problems())
    assert np.flatnonzero(read.frame["w4"].isna()).tolist() == [7, 11]


def test_a_cell_that_is_no_number_is_named(tmp_path):
    frame = table(n=400)
    frame.loc[390, "w4"] = "four"
    file = tmp_path / "nodes.csv"
    frame.to_csv(file, index=False)
    with pytest.raises(InputError, match=r"line 392: 'four' in column 'w4'"):
        read_graph(file, label="class")


def test_new_rows_of_a_model_that_took_a_column_for_words(tmp_path):
    frame = table()
    frame["w4"] = np.where(np.arange(60) % 3, "7", "many")
    known, new = tmp_path / "nodes.csv", tmp_path / "new.csv"
    frame.to_csv(known, index=False)
    frame["w4"] = np.where(np.arange(60) % 6, "7", "")
    frame.to_csv(new, index=False)
    fitted = read_graph(known, label="class")
    (words,) = [code.words for code in fitted.encoder.columns if code.name == "w4"]
    x = read_graph(new, encoder=fitted.encoder).data.x
    start = [name for code in fitted.encoder.columns for name in [code.name] * code.width].index("w4")
    assert dense(x)[:, start + words.index("7")].tolist() == [float(i % 6 > 0) for i in range(60)]


def test_lines_longer_than_a_first_look(tmp_path):
    frame = table(n=12, width=3000)
    frame.columns = [name if name in ("id", "class") else f"{name} {'long' * 30}" for name in frame.columns]
    file = tmp_path / "nodes.csv"
    frame.to_csv(file, index=False)
    assert len(file.read_bytes().split(b"\n", 1)[0]) > text_table.HEAD_BYTES
    read = read_table(str(file), "node", Problems())
    assert list(read.frame.columns) == list(frame.columns)
    assert len(read) == 12


def test_a_very_long_text_beside_the_numbers(tmp_path):
    frame = table()
    frame["word"] = "long " * 30_000
    file = tmp_path / "nodes.csv"
    frame.to_csv(file, index=False)
    assert len(read_table(str(file), "node", Problems())) == 60


def test_what_counts_as_numbers():
    rows = [["0", "1.5", "007", str(i), "x", "", "-2e3"] * 30 for i in range(4)]
    found = number_columns(rows)
    assert [place % 7 for place in found[:4]] == [0, 1, 5, 6]  # 0 to 3 may be ids, 007 is a name
    assert number_columns(rows, text={0})[0] == 1
    assert number_columns([row[:20] for row in rows]) == []
    assert number_columns([]) == []
    assert WIDE > 20


@pytest.mark.parametrize("width", [3, 150])
def test_reading_says_how_far_it_is(tmp_path, width):
    nodes, edges = tmp_path / "nodes.csv", tmp_path / "edges.csv"
    table(width=width, n=200).to_csv(nodes, index=False)
    pd.DataFrame({"source": ["000", "001"], "target": ["001", "002"]}).to_csv(edges, index=False)
    told = []
    read_graph(nodes, edges, label="class", progress=lambda done, total: told.append((done, total)))
    total = nodes.stat().st_size + edges.stat().st_size
    assert 0.9 * total < told[-1][0] <= told[-1][1] == total
    assert [done for done, _ in told] == sorted(done for done, _ in told)
