import io
import pickle

import numpy as np
import pytest
import torch
from scipy import sparse
from torch_geometric.io import read_npz

from graphpartner.graph.datasets import load_dataset
from graphpartner.graph.npz import read_benchmark_npz
from graphpartner.system.errors import InputError


def parts(**changes):
    """Three nodes: 0 → 1 and a self-loop on 2; counts as features; node 2 without words."""
    adjacency = sparse.csr_array(np.array([[0, 1.0, 0], [0, 0, 0], [0, 0, 1]]))
    features = sparse.csr_array(np.array([[0, 5.0], [1, 0], [0, 0]], dtype=np.float32))
    arrays = {"labels": np.array([1, 0, 1])}
    for name, matrix in (("adj", adjacency), ("attr", features)):
        arrays |= {f"{name}_data": matrix.data, f"{name}_indices": matrix.indices, f"{name}_indptr": matrix.indptr}
        arrays[f"{name}_shape"] = np.array(matrix.shape)
    return {name: array for name, array in (arrays | changes).items() if array is not None}


def npz(arrays):
    content = io.BytesIO()
    np.savez(content, **arrays)
    return content.getvalue()


def test_read_by_hand():
    graph = read_benchmark_npz(npz(parts()), "tiny.npz")
    assert graph.features.toarray().tolist() == [[0, 5], [1, 0], [0, 0]]  # counts are kept
    assert graph.edges.tolist() == [[1, 0], [0, 1]]
    assert graph.labels.tolist() == [1, 0, 1]
    assert graph.split is None


class Trap:
    def __reduce__(self):
        return pytest.fail, ("unpickled",)


def test_objects_are_left_alone():
    names = np.array([Trap(), Trap()], dtype=object)
    content = npz(parts(class_names=names))
    assert read_benchmark_npz(content, "tiny.npz").labels.tolist() == [1, 0, 1]
    with pytest.raises(InputError, match=r"tiny\.npz cannot be read as an npz file of plain arrays"):
        read_benchmark_npz(npz(parts(labels=np.array([Trap()] * 3, dtype=object))), "tiny.npz")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"labels": None}, "lacks the array labels"),
        ({"attr_data": None}, "lacks the array attr_data"),
        ({"labels": np.array(["a", "b", "c"])}, "an array labels of type <U1; it must hold numbers"),
        ({"labels": np.array([1, 0])}, r"labels of shape \(2,\), but the three must describe the same nodes"),
        ({"adj_indices": np.array([7, 2])}, "damaged matrix adj"),
        ({"adj_indices": np.array([-1, 2])}, "damaged matrix adj"),
        ({"attr_indptr": np.array([0, 1, 2, 99])}, "damaged matrix attr"),
        ({"attr_indptr": np.array([0, 2, 1, 2])}, "damaged matrix attr"),
        ({"attr_shape": np.array([3])}, "damaged matrix attr"),
        ({"adj_shape": np.array([3, 4])}, r"adj of shape \(3, 4\)"),
    ],
)
def test_damaged_arrays(changes, words):
    with pytest.raises(InputError, match=f"tiny.npz .*{words}"):
        read_benchmark_npz(npz(parts(**changes)), "tiny.npz")


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"text", pickle.dumps(Trap()), npz(parts())[:-60]])
def test_not_an_npz_file(content):
    with pytest.raises(InputError, match=r"tiny\.npz cannot be read"):
        read_benchmark_npz(content, "tiny.npz")


def test_a_single_array_is_not_an_npz_file():
    content = io.BytesIO()
    np.save(content, np.arange(3))
    with pytest.raises(InputError, match=r"tiny\.npz cannot be read"):
        read_benchmark_npz(content.getvalue(), "tiny.npz")


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("amazon-photo", "Photo/raw/amazon_electronics_photo.npz"),
        ("amazon-computers", "Computers/raw/amazon_electronics_computers.npz"),
    ],
)
def test_agrees_with_pytorch_geometric(name, file, data_root):
    ours, theirs = load_dataset(name, data_root), read_npz(str(data_root / file))
    assert torch.equal(ours.x, theirs.x)
    assert torch.equal(ours.y, theirs.y)
    assert torch.equal(ours.edge_index.flip(0), theirs.edge_index)  # undirected, sorted the other way
    assert "train_mask" not in ours


def test_coauthor_cs_keeps_its_counts(data_root):
    data = load_dataset("coauthor-cs", data_root)
    assert data.x.max() == 105
    assert data.x.min() == 0
    assert torch.equal(data.x[:100], data.x[:100].round())
    assert data.y.bincount().min() == 118
