import json
from dataclasses import asdict

import numpy as np
import torch
from scipy import sparse

from graphpartner.graph.adjacency import normalized_adjacency, simple_edges, to_scipy
from graphpartner.tables.structure import Structure


def two_groups(n: int = 60, seed: int = 0) -> torch.Tensor:
    """Return the edges of two groups, dense within and joined by one edge."""
    generator = np.random.default_rng(seed)
    inside = generator.random((n, n)) < 0.3
    group = np.arange(n) < n // 2
    inside &= group[:, None] == group[None]
    inside[0, n - 1] = True
    return simple_edges(torch.from_numpy(np.stack(np.nonzero(inside))), n)


def test_positions_are_eigenvectors() -> None:
    edges = two_groups()
    structure = Structure.fit(edges, 60)
    x = structure.features(edges, 60)
    assert x.shape == (60, structure.width) == (60, 62)
    value, vector = np.linalg.eigh(to_scipy(normalized_adjacency(edges, 60, dtype=torch.float64)).toarray())
    expected = vector[:, ::-1] * np.clip(value[::-1], 0, None) ** 8
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(np.abs(x[:, 2:6]), np.abs(expected[:, :4]), atol=0.02)
    gram = x[:, 2:] @ x[:, 2:].T
    np.testing.assert_allclose(gram, expected @ expected.T, atol=0.02)


def test_degrees_are_standardised() -> None:
    edges = two_groups()
    x = Structure.fit(edges, 60).features(edges, 60).numpy()
    degree = np.log1p(np.bincount(edges[0], minlength=60))
    np.testing.assert_allclose(x[:, 0], (degree - degree.mean()) / degree.std(), rtol=1e-4, atol=1e-5)


def test_the_same_graph_gives_the_same_features() -> None:
    edges = two_groups()
    structure = Structure.fit(edges, 60)
    again = Structure(**json.loads(json.dumps(asdict(structure))))
    assert torch.equal(structure.features(edges, 60), again.features(edges, 60))


def test_a_new_node_lies_among_its_neighbours() -> None:
    edges = two_groups()
    structure = Structure.fit(edges, 60)
    x = structure.features(edges, 60)
    new = torch.tensor([[60, 60, 61, 62], [1, 2, 60, 50]])  # 61 hangs on 60, 63 is alone
    more = simple_edges(torch.cat([edges, new], dim=1), 64)
    grown = structure.features(more, 64, old=x).numpy()
    np.testing.assert_array_equal(grown[:60], x)
    positions = grown[:, 2:]
    middle = positions[1] + positions[2] + positions[61]
    np.testing.assert_allclose(positions[60], middle / np.linalg.norm(middle), atol=1e-3)
    np.testing.assert_allclose(positions[61], positions[60], atol=1e-3)
    np.testing.assert_allclose(positions[62], positions[50], atol=1e-6)
    assert not positions[63].any()


def test_odd_graphs() -> None:
    nothing = torch.zeros(2, 0, dtype=torch.int64)
    x = Structure.fit(nothing, 3).features(nothing, 3)
    assert x.isfinite().all()
    assert not x[:, 2:].any()
    ring = sparse.coo_array(sparse.eye_array(500, k=1))
    edges = simple_edges(torch.from_numpy(np.stack([ring.row, ring.col]).astype(np.int64)), 500)
    x = Structure.fit(edges, 500).features(edges, 500)
    assert x.shape == (500, 130)
    torch.testing.assert_close(x[:, 2:].norm(dim=1), torch.ones(500))
