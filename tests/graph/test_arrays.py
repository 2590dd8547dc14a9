import dataclasses
from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse

from graphpartner.graph.arrays import canonical

X = np.array([[0, 2.0, 0], [1, 0, 3], [0, 0, 0]])
EDGES = [[0, 1, 1, 2], [1, 0, 1, 1]]  # both directions of 0 – 1, a self-loop, one direction of 1 – 2
LABELS = [1, 0, -1]
SPLIT = [1, 2, 0]


def test_canonical_form() -> None:
    graph = canonical(sparse.csr_array(X), EDGES, LABELS, SPLIT)
    assert graph.features.dtype == np.float32
    assert graph.features.toarray().tolist() == X.tolist()
    assert graph.edges.tolist() == [[1, 0, 2, 1], [0, 1, 1, 2]]
    assert graph.labels.dtype == np.int64


def test_the_same_graph_has_the_same_digest() -> None:
    graph = canonical(sparse.csr_array(X), EDGES, LABELS, SPLIT)
    columns, values = np.array([1, 2, 0, 0], np.int64), np.array([2, 3, 1, 0], np.float64)
    # Columns unsorted, and a zero stored.
    untidy = sparse.csr_array((values, columns, np.array([0, 1, 3, 4])), shape=(3, 3))
    other = canonical(untidy, np.array([[1, 1], [2, 0]], np.int16), np.array(LABELS, np.int8), np.array(SPLIT, ">i4"))
    assert other.digest() == graph.digest()
    assert untidy.nnz == 4  # the argument is left alone


@pytest.mark.parametrize(
    "change",
    [
        {"features": sparse.csr_array(X * [1, 1, 2])},
        {"features": sparse.csr_array(X[:, [1, 0, 2]])},
        {"features": sparse.csr_array(np.hstack([X, np.zeros((3, 1))]))},
        {"edges": [[0], [1]]},
        {"labels": [1, 0, 0]},
        {"split": [1, 0, 2]},
        {"split": None},
    ],
)
def test_another_graph_has_another_digest(change: dict[str, Any]) -> None:
    parts = {"features": sparse.csr_array(X), "edges": EDGES, "labels": LABELS, "split": SPLIT}
    assert canonical(**(parts | change)).digest() != canonical(**parts).digest()


def test_the_digest_stays_the_same() -> None:
    """The catalogue's digests rest on it."""
    graph = canonical(sparse.csr_array(X), EDGES, LABELS, SPLIT)
    assert graph.digest() == "d0a878688abf6b6ce21565207bc314572c089b462caca1ce611c7840021d7d8c"


def test_to_data() -> None:
    graph = canonical(sparse.csr_array(X), EDGES, LABELS, SPLIT)
    data = graph.to_record()
    assert torch.equal(data.x, torch.tensor(X, dtype=torch.float32))
    assert data.edge_index.tolist() == graph.edges.tolist()
    assert data.y.tolist() == LABELS
    assert data.train_mask.tolist() == [True, False, False]
    assert data.val_mask.tolist() == [False, True, False]
    assert data.test_mask.tolist() == [False, False, False]
    data.y[0] = 5  # a copy
    assert graph.labels.tolist() == LABELS
    assert "train_mask" not in dataclasses.replace(graph, split=None).to_record()
