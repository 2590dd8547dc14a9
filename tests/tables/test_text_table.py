"""Tables with hundreds of numbers per row mean the same as if every cell had been read as text."""

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from graphpartner.system.errors import InputError
from graphpartner.tables import text_table
from graphpartner.tables.problems import Problems
from graphpartner.tables.read_graph import read_graph
from graphpartner.tables.read_table import Table, read_table
from graphpartner.tables.text_table import WIDE, number_columns


def table(n: int = 60, width: int = 150, share: float = 0.05, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    x = rng.integers(1, 4, (n, width)) * (rng.random((n, width)) < share)
    frame = pd.DataFrame(x, columns=[f"w{i}" for i in range(width)]).astype(str)
    frame.insert(0, "id", [f"{i:03d}" for i in range(n)])
    frame.insert(2, "class", np.where(np.arange(n) % 3, "01", "2"))
    frame.insert(4, "amount", rng.normal(size=n).round(3).astype(str))
    frame.loc[3, "amount"] = ""
    frame["word"] = np.where(np.arange(n) % 2, "red", "blue")
    return frame


def read(file: Path) -> Table:
    found = read_table(str(file), "node", Problems())
    assert found is not None
    return found


def dense(x: torch.Tensor) -> torch.Tensor:
    return x.to_dense() if x.layout != torch.strided else x


@pytest.mark.parametrize("share", [0.05, 0.9])
@pytest.mark.parametrize("ending", ["csv", "csv.gz"])
def test_as_if_every_cell_were_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, share: float, ending: str) -> None:
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


def test_zeros_take_no_room(tmp_path: Path) -> None:
    file = tmp_path / "nodes.csv"
    table().to_csv(file, index=False)
    found = read(file)
    assert isinstance(found.frame["w0"].dtype, pd.SparseDtype)
    assert found.frame["id"].iloc[0] == "000"
    assert list(found.frame.columns) == list(table().columns)


def test_a_gap_among_zeros_is_a_gap(tmp_path: Path) -> None:
    frame = table()
    frame.loc[[7, 11], "w4"] = ["", "NA"]
    file = tmp_path / "nodes.csv"
    frame.to_csv(file, index=False)
    found = read(file)
    assert np.flatnonzero(found.frame["w4"].isna()).tolist() == [7, 11]


def test_a_cell_that_is_no_number_is_named(tmp_path: Path) -> None:
    frame = table(n=400)
    frame.loc[390, "w4"] = "four"
    file = tmp_path / "nodes.csv"
    frame.to_csv(file, index=False)
    with pytest.raises(InputError, match=r"line 392: 'four' in column 'w4'"):
        read_graph(file, label="class")


def test_new_rows_of_a_model_that_took_a_column_for_words(tmp_path: Path) -> None:
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


def test_lines_longer_than_a_first_look(tmp_path: Path) -> None:
    frame = table(n=12, width=3000)
    frame.columns = [name if name in ("id", "class") else f"{name} {'long' * 30}" for name in frame.columns]
    file = tmp_path / "nodes.csv"
    frame.to_csv(file, index=False)
    assert len(file.read_bytes().split(b"\n", 1)[0]) > text_table.HEAD_BYTES
    found = read(file)
    assert list(found.frame.columns) == list(frame.columns)
    assert len(found) == 12


def test_a_very_long_text_beside_the_numbers(tmp_path: Path) -> None:
    frame = table()
    frame["word"] = "long " * 30_000
    file = tmp_path / "nodes.csv"
    frame.to_csv(file, index=False)
    assert len(read(file)) == 60


def test_what_counts_as_numbers() -> None:
    rows = [["0", "1.5", "007", str(i), "x", "", "-2e3"] * 30 for i in range(4)]
    found = number_columns(rows)
    assert [place % 7 for place in found[:4]] == [0, 1, 5, 6]  # 0 to 3 may be ids, 007 is a name
    assert number_columns(rows, text={0})[0] == 1
    assert number_columns([row[:20] for row in rows]) == []
    assert number_columns([]) == []
    assert WIDE > 20


@pytest.mark.parametrize("width", [3, 150])
def test_progress_is_reported(tmp_path: Path, width: int) -> None:
    nodes, edges = tmp_path / "nodes.csv", tmp_path / "edges.csv"
    table(width=width, n=200).to_csv(nodes, index=False)
    pd.DataFrame({"source": ["000", "001"], "target": ["001", "002"]}).to_csv(edges, index=False)
    calls: list[tuple[int, int]] = []
    read_graph(nodes, edges, label="class", progress=lambda done, total: calls.append((done, total)))
    total = nodes.stat().st_size + edges.stat().st_size
    assert 0.9 * total < calls[-1][0] <= calls[-1][1] == total
    assert [done for done, _ in calls] == sorted(done for done, _ in calls)
