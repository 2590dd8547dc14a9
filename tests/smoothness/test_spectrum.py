import numpy as np
import pytest
import torch
from hypothesis import given, settings

from graphpartner.smoothness.bounds import laplacian_extremes
from graphpartner.system.errors import InputError

from .dense import dense_propagation, graphs, random_graph


def bipartite(left: int, right: int) -> torch.Tensor:
    return torch.cartesian_prod(torch.arange(left), left + torch.arange(right)).T


def test_by_hand() -> None:
    # K₃,₃: Ã has eigenvalues 1 + 3, 1 (four times), 1 − 3, and d̃ = 4: λ = 0, ¾, 3/2.
    found = laplacian_extremes(bipartite(3, 3), 6)
    assert (found.lambda_0, found.lambda_1, found.lambda_max) == pytest.approx((0.75, 0.75, 1.5))
    assert found.q == pytest.approx(0.5)
    # the cycle of four: Ã has 3, 1, 1, −1, d̃ = 3: λ = 0, ⅔, ⅔, 4/3; ⅔ and 4/3 are equally close to 1.
    found = laplacian_extremes(torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]]), 4)
    assert (found.lambda_0, found.lambda_max, abs(1 - found.lambda_1)) == pytest.approx((2 / 3, 4 / 3, 1 / 3))
    # one edge and two isolated nodes: λ = 0, 0, 0, 1.
    found = laplacian_extremes(torch.tensor([[0], [1]]), 4)
    assert (found.lambda_0, found.lambda_1, found.lambda_max) == pytest.approx((1.0, 1.0, 1.0))
    assert found.unknown == ()


@settings(max_examples=50)
@given(graphs())
def test_equals_all_eigenvalues(graph) -> None:
    edge_index, num_nodes, _ = graph
    values = 1.0 - np.linalg.eigvalsh(dense_propagation(edge_index, num_nodes))
    values = values[values > 1e-9]
    found = laplacian_extremes(edge_index, num_nodes)
    assert found.lambda_0 == pytest.approx(values.min())
    assert found.lambda_max == pytest.approx(values.max())
    assert abs(1 - found.lambda_1) == pytest.approx(np.abs(1 - values).min(), abs=1e-9)


def test_a_tiny_eigenvalue_is_not_zero() -> None:
    # a path of 400 nodes: λ₀ is about ⅓ (π/400)² = 2e-5, well below what a loose tolerance would call zero.
    path = torch.stack([torch.arange(399), torch.arange(1, 400)])
    assert laplacian_extremes(path, 400).lambda_0 == pytest.approx((np.pi / 400) ** 2 / 3, rel=0.01)


@pytest.mark.parametrize("density", [0.002, 0.01, 0.05])
def test_lanczos_equals_dense(density: float, monkeypatch: pytest.MonkeyPatch) -> None:
    edge_index = random_graph(np.random.default_rng(5), 300, density)  # the first has many components
    dense = laplacian_extremes(edge_index, 300)
    monkeypatch.setattr("graphpartner.smoothness.bounds.DENSE_UP_TO", 0)
    lanczos = laplacian_extremes(edge_index, 300)
    assert lanczos.lambda_0 == pytest.approx(dense.lambda_0, abs=1e-7)
    assert lanczos.lambda_max == pytest.approx(dense.lambda_max, abs=1e-7)
    assert lanczos.lambda_1 == 1.0
    assert (lanczos.unknown == ("lambda_1",)) == (dense.lambda_1 != 1.0)


def test_twins_make_lambda_1_one(monkeypatch: pytest.MonkeyPatch) -> None:
    # 1 and 2 are neighbours, and 0 is the other neighbour of both: their rows of Ã are equal.
    edge_index = torch.tensor([[0, 0, 1, 0], [1, 2, 2, 3]])
    assert np.abs(np.linalg.eigvalsh(dense_propagation(edge_index, 4))).min() < 1e-12
    assert laplacian_extremes(edge_index, 4).lambda_1 == 1.0
    clique_and_tail = torch.cat([torch.combinations(torch.arange(5)).T, torch.arange(95) + torch.tensor([[4], [5]])], 1)
    monkeypatch.setattr("graphpartner.smoothness.bounds.DENSE_UP_TO", 0)
    assert "lambda_1" not in laplacian_extremes(clique_and_tail, 100).unknown


def test_what_does_not_converge_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    from graphpartner.smoothness import bounds as spectrum

    monkeypatch.setattr(spectrum, "DENSE_UP_TO", 0)
    monkeypatch.setattr(spectrum, "_one_end", lambda P, which: None)
    found = laplacian_extremes(bipartite(50, 50), 100)
    assert found == spectrum.LaplacianExtremes(0.0, 1.0, 2.0, ("lambda_0", "lambda_1", "lambda_max"))


def test_a_graph_without_edges_is_an_error() -> None:
    with pytest.raises(InputError, match="no edge between two nodes"):
        laplacian_extremes(torch.tensor([[1], [1]]), 4)
