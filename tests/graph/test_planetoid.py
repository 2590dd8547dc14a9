import hashlib
import os
import pickle
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse
from torch_geometric.io import read_planetoid_data
from torch_geometric.utils import coalesce, remove_self_loops

from graphpartner.graph.datasets import load_dataset
from graphpartner.graph.planetoid import assemble, read_planetoid, restricted_unpickle
from graphpartner.system.errors import InputError


class Malicious:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch {self.path}",)


def tiny() -> dict[str, Any]:
    """Nodes 0 … 3 in ``allx``; the index lists the test ids 6, 4 and 7, so 5 has neither features nor label."""
    graph = defaultdict(list, {0: [1, 1, 0], 1: [0], 2: [], 3: [5], 4: [], 5: [3], 6: [7], 7: []})
    return {
        "x": sparse.csr_matrix([[1.0, 0]]),
        "allx": sparse.csr_matrix([[1.0, 0], [0, 1], [1, 1], [0, 0]]),
        "tx": sparse.csr_matrix([[0, 6.0], [4, 0], [7, 7]]),
        "y": np.array([[1, 0]]),
        "ally": np.array([[1, 0], [0, 1], [0, 1], [0, 0]]),
        "ty": np.array([[0, 1], [1, 0], [0, 1]]),
        "graph": graph,
        "test.index": np.array([6, 4, 7]),
    }


def test_assemble_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphpartner.graph.planetoid.NUM_VALIDATION", 2)
    graph = assemble(tiny())
    assert graph.features.toarray().tolist() == [[1, 0], [0, 1], [1, 1], [0, 0], [4, 0], [0, 0], [0, 6], [7, 7]]
    assert graph.labels.tolist() == [0, 1, 1, -1, 0, -1, 1, 1]
    assert graph.edges.tolist() == [[1, 0, 5, 3, 7, 6], [0, 1, 3, 5, 6, 7]]  # the duplicate and the self-loop are gone
    assert graph.split is not None
    assert graph.split.tolist() == [1, 2, 2, 0, 3, 0, 3, 3]
    monkeypatch.setattr("graphpartner.graph.planetoid.NUM_VALIDATION", 3)
    graph = assemble(tiny())
    assert graph.split is not None
    assert graph.split[3] == 0  # an unlabelled node is never in the validation set


def test_read_planetoid_from_bytes() -> None:
    parts = tiny()
    contents = {f"ind.tiny.{name}": pickle.dumps(part, protocol=3) for name, part in parts.items()}
    contents["ind.tiny.test.index"] = b"6\n4\n7\n"
    hashes = {file: hashlib.sha256(content).hexdigest() for file, content in contents.items()}
    assert read_planetoid(contents, hashes, "here").digest() == assemble(parts).digest()


def test_a_file_with_another_hash_is_not_unpickled(tmp_path: Path) -> None:
    contents = {"ind.tiny.x": pickle.dumps(Malicious(tmp_path / "ran"))}
    with pytest.raises(InputError, match=r"here/ind\.tiny\.x: sha256 \w{12}…, but the published file has 0{12}…"):
        read_planetoid(contents, {"ind.tiny.x": "0" * 64}, "here")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_malicious_pickle_is_refused_even_with_the_right_hash(tmp_path: Path, protocol: int) -> None:
    content = pickle.dumps({"a": [Malicious(tmp_path / "ran")]}, protocol=protocol)
    with pytest.raises(InputError, match=r"here/ind\.tiny\.x: not a pickle .*\(it asks for \w+\.system\)"):
        read_planetoid({"ind.tiny.x": content}, {"ind.tiny.x": hashlib.sha256(content).hexdigest()}, "here")
    assert not (tmp_path / "ran").exists()
    pickle.loads(content)  # it would have run
    assert (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "content",
    [
        b"cbuiltins\neval\n(S'1'\ntR.",
        b"c__builtin__\ngetattr\n.",
        b"cnumpy\nload\n.",
        b"cnumpy\nndarray.tofile\n.",
        b"\x80\x04\x8c\x05numpy\x8c\x0endarray.tofile\x93.",
        b"cscipy.sparse\nload_npz\n.",
        b"ccollections\nOrderedDict\n.",
        b"not a pickle",
        b"",
    ],
)
def test_nothing_else_is_admitted(content: bytes) -> None:
    with pytest.raises(InputError, match="evil: not a pickle of plain arrays"):
        restricted_unpickle(content, "evil")


def test_plain_arrays_are_admitted() -> None:
    matrix = sparse.csr_matrix([[0, 1.5], [2, 0]])
    for protocol in (3, 4):
        assert restricted_unpickle(pickle.dumps(np.arange(3), protocol), "fine").tolist() == [0, 1, 2]
        assert (restricted_unpickle(pickle.dumps(matrix, protocol), "fine") != matrix).nnz == 0
        assert restricted_unpickle(pickle.dumps(defaultdict(list, {1: [2]}), protocol), "fine") == {1: [2]}


@pytest.mark.parametrize(("name", "folder"), [("cora", "Cora"), ("citeseer", "CiteSeer"), ("pubmed", "PubMed")])
def test_agrees_with_pytorch_geometric(name: str, folder: str, data_root: Path) -> None:
    ours = load_dataset(name, data_root)  # has checked the hashes of the files
    theirs = read_planetoid_data(str(data_root / folder / "raw"), name)
    labelled = ours.y >= 0  # they give the class 0 to the 15 nodes without a label
    assert int((~labelled).sum()) == (15 if name == "citeseer" else 0)
    assert torch.equal(ours.y[labelled], theirs.y[labelled])
    assert torch.equal(ours.x, theirs.x)
    edges = coalesce(remove_self_loops(theirs.edge_index)[0], sort_by_row=False)
    assert torch.equal(ours.edge_index, edges)
    for mask in ("train_mask", "val_mask", "test_mask"):
        assert torch.equal(ours[mask], theirs[mask])


def test_the_nodes_without_features_have_no_label_and_no_mask(data_root: Path) -> None:
    data = load_dataset("citeseer", data_root)
    empty = data.x.sum(dim=1) == 0
    assert torch.equal(empty, data.y == -1)
    assert not (empty & (data.train_mask | data.val_mask | data.test_mask)).any()
    assert [int(mask.sum()) for mask in (data.train_mask, data.val_mask, data.test_mask)] == [120, 500, 1000]
    assert data.y[data.train_mask].bincount().tolist() == [20] * 6
