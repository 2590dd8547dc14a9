from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from graphpartner.smoothness.bounds import LaplacianExtremes, energy_bounds, laplacian_extremes, partner_bounds
from graphpartner.smoothness.energy import dirichlet_energy
from graphpartner.system.errors import InputError

from .reference import DrawnGraph, dense_propagation, graphs, random_graph


def bipartite(left: int, right: int) -> torch.Tensor:
    return torch.cartesian_prod(torch.arange(left), left + torch.arange(right)).T


K33 = bipartite(3, 3)
TOP = torch.tensor([1.0, 1.0, 1.0, -1.0, -1.0, -1.0], dtype=torch.float64)[:, None] / 6**0.5  # P TOP = −½ TOP
SLACK = 1e-9


def propagate(edge_index: torch.Tensor, X: torch.Tensor, num_steps: int) -> torch.Tensor:
    P = torch.from_numpy(dense_propagation(edge_index, X.shape[0]))
    return torch.linalg.matrix_power(P, num_steps) @ X


def mixed_energy(edge_index: torch.Tensor, X: torch.Tensor, alpha: float, num_steps: int) -> float:
    return dirichlet_energy(alpha * X + (1 - alpha) * propagate(edge_index, X, num_steps), edge_index).item()


def test_eigenvalues_by_hand() -> None:
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
def test_equals_all_eigenvalues(graph: DrawnGraph) -> None:
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
    monkeypatch.setattr("graphpartner.smoothness.bounds.DENSE_UP_TO", 0)
    monkeypatch.setattr("graphpartner.smoothness.bounds._one_end", lambda P, which: None)
    found = laplacian_extremes(bipartite(50, 50), 100)
    assert found == LaplacianExtremes(0.0, 1.0, 2.0, ("lambda_0", "lambda_1", "lambda_max"))


def test_a_graph_without_edges_is_an_error() -> None:
    with pytest.raises(InputError, match="edge_index has no edge between two nodes: must"):
        laplacian_extremes(torch.tensor([[1], [1]]), 4)


@settings(max_examples=150)
@given(graphs(), st.floats(0, 1), st.integers(1, 9), st.booleans())
def test_propositions_on_random_graphs(graph: DrawnGraph, alpha: float, num_steps: int, extreme: bool) -> None:
    edge_index, num_nodes, rng = graph
    X = torch.from_numpy(rng.standard_normal((num_nodes, 2)))
    if extreme:  # the eigenvector at the negative end is where bounds break first
        X = torch.from_numpy(np.linalg.eigh(dense_propagation(edge_index, num_nodes))[1][:, :1])
    initial = dirichlet_energy(X, edge_index).item()
    final = mixed_energy(edge_index, X, alpha, num_steps)
    bounds = partner_bounds(alpha, num_steps, initial, laplacian_extremes(edge_index, num_nodes))
    slack = SLACK * (1 + initial)
    assert bounds.lower.item() - slack <= final <= bounds.upper.item() + slack
    if num_steps % 2 == 0:
        smoothed = dirichlet_energy(propagate(edge_index, X, num_steps), edge_index).item()
        assert final >= smoothed - slack  # Proposition 1
        assert final >= bounds.published_lower.item() - slack  # Proposition 2, lower
        assert bounds.lower.item() == bounds.published_lower.item()


def test_odd_steps_break_proposition_1_and_the_lower_bound() -> None:
    # P x = −½ x and E(x) = 3/2 ‖x‖², l = 1, α = ½: ½ x − ¼ x = ¼ x has energy 1/16 · 3/2 = 0.094,
    # below E(P x) = ¼ · 3/2 = 0.375 and below α² E(x) = 0.375.
    final = mixed_energy(K33, TOP, 0.5, 1)
    assert final == pytest.approx(1.5 / 16)
    bounds = partner_bounds(0.5, 1, 1.5, laplacian_extremes(K33, 6))
    assert final < dirichlet_energy(propagate(K33, TOP, 1), K33).item() == pytest.approx(0.375)
    assert final < bounds.published_lower.item() == pytest.approx(0.375)
    assert final == pytest.approx(bounds.lower.item())  # (½ − ½ · ½)² · 3/2: nothing more can be promised


def test_k33_breaks_the_published_upper_bound() -> None:
    # λ₀ = ¾, λ_max = 3/2, l = 2, α = ½: ½ x + ½ · ¼ x = ⅝ x, energy 25/64 · 3/2 = 0.586.
    # Published: 3/2 (¼ + 1/16) = 0.469. With q = ½: 3/2 (¼ + ¾ · ¼) = 0.656.
    initial = dirichlet_energy(TOP, K33).item()
    assert initial == pytest.approx(1.5)
    final = mixed_energy(K33, TOP, 0.5, 2)
    bounds = partner_bounds(0.5, 2, initial, laplacian_extremes(K33, 6))
    assert final == pytest.approx(0.5859375)
    assert bounds.published_upper.item() == pytest.approx(0.46875)
    assert bounds.upper.item() == pytest.approx(0.65625)
    assert bounds.published_lower.item() == pytest.approx(0.375)


def test_partner_bounds_take_replicas() -> None:
    extremes = laplacian_extremes(K33, 6)
    alpha, energy = torch.tensor([0.1, 0.5, 0.9]), torch.tensor([1.0, 1.5, 2.0])
    bounds = partner_bounds(alpha, 3, energy, extremes)
    alone = [partner_bounds(float(a), 3, float(e), extremes) for a, e in zip(alpha, energy, strict=True)]
    for name in ("lower", "upper", "published_lower", "published_upper"):
        torch.testing.assert_close(getattr(bounds, name), torch.stack([getattr(one, name) for one in alone]))


@settings(max_examples=80)
@given(graphs(), st.lists(st.integers(1, 5), min_size=2, max_size=4), st.booleans(), st.booleans())
def test_eq_6_on_random_linear_networks(graph: DrawnGraph, widths: list[int], transposed: bool, relu: bool) -> None:
    edge_index, num_nodes, rng = graph
    weights = [torch.from_numpy(rng.standard_normal(shape)) for shape in pairwise(widths)]
    embeddings = [torch.from_numpy(rng.standard_normal((num_nodes, widths[0])))]
    for W in weights:
        linear = propagate(edge_index, embeddings[-1], 1) @ W
        embeddings.append(linear.relu() if relu else linear)
    given_weights = [W.T for W in weights] if transposed else weights
    bounds = energy_bounds(embeddings, given_weights, edge_index)
    slack = SLACK * (1 + bounds.upper)
    assert (bounds.energy <= bounds.upper + slack).all()  # a ReLU moves no node away from another
    assert (bounds.published_upper <= bounds.upper + slack).all()
    if not relu:
        assert (bounds.energy >= bounds.lower - slack).all()
        rising = torch.tensor([wide <= narrow for wide, narrow in pairwise(widths)])
        assert (bounds.energy >= bounds.published_lower - slack)[rising].all()


def test_eq_6_by_hand() -> None:
    # the cycle of four: L̃ = 0, ⅔, ⅔, 4/3; x = (1, 0, −1, 0) has λ = ⅔, E = 4/3, and W = diag(2, 3) on (x, 0):
    # H¹ = (⅓ · 2 x, 0), E = 4/9 · 4/3. Bounds: (1/3)² · 4 · 4/3 ≤ · ≤ (1/3)² · 9 · 4/3: the lower one is met.
    cycle = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]])
    X = torch.tensor([[1.0, 0.0], [0.0, 0.0], [-1.0, 0.0], [0.0, 0.0]], dtype=torch.float64)
    W = torch.diag(torch.tensor([2.0, 3.0], dtype=torch.float64))
    bounds = energy_bounds([X, propagate(cycle, X, 1) @ W], [W], cycle)
    assert bounds.energy.tolist() == pytest.approx([16 / 27])
    assert bounds.lower.tolist() == bounds.published_lower.tolist() == pytest.approx([16 / 27])
    assert bounds.upper.tolist() == pytest.approx([4 / 3])
    assert bounds.published_upper.tolist() == pytest.approx([4 / 3])


def test_k33_breaks_the_published_upper_bound_of_eq_6() -> None:
    # W = 1, x the top eigenvector: E(P x) = ¼ · 3/2 = 0.375 > (1 − ¾)² · 3/2 = 0.094; with q = ½ it is met.
    bounds = energy_bounds([TOP, propagate(K33, TOP, 1)], [torch.ones(1, 1)], K33)
    assert bounds.energy.tolist() == pytest.approx([0.375])
    assert bounds.published_upper.tolist() == pytest.approx([0.09375])
    assert bounds.upper.tolist() == pytest.approx([0.375])


def test_a_narrow_weight_breaks_the_published_lower_bound_of_eq_6() -> None:
    # W = (1, 0)ᵀ has the one singular value 1, yet it drops the second column, where all the energy is.
    X, W = torch.cat([torch.zeros_like(TOP), TOP], dim=1), torch.tensor([[1.0], [0.0]], dtype=torch.float64)
    bounds = energy_bounds([X, propagate(K33, X, 1) @ W], [W], K33)
    assert bounds.energy.tolist() == bounds.lower.tolist() == [0.0]
    assert bounds.published_lower.tolist() == pytest.approx([1 / 16 * 1.5])


def test_relu_breaks_the_lower_bound_of_eq_6() -> None:
    # −x is all negative where x is positive: ReLU leaves nothing.
    X = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0, 7.0], dtype=torch.float64)[:, None]
    W = -torch.ones(1, 1, dtype=torch.float64)
    bounds = energy_bounds([X, (propagate(K33, X, 1) @ W).relu()], [W], K33)
    assert bounds.energy.item() == 0.0 < bounds.lower.item()


@settings(max_examples=10)
@given(graphs())
def test_replicas_of_weights(graph: DrawnGraph) -> None:
    edge_index, num_nodes, rng = graph
    assume(num_nodes > 2)
    weights = [torch.from_numpy(rng.standard_normal((3, 4, 2)))]
    X = torch.from_numpy(rng.standard_normal((num_nodes, 4)))
    together = energy_bounds([X, propagate(edge_index, X, 1) @ weights[0]], weights, edge_index)
    assert together.energy.shape == together.upper.shape == (1, 3)
    one = energy_bounds([X, propagate(edge_index, X, 1) @ weights[0][1]], [weights[0][1]], edge_index)
    torch.testing.assert_close(together.upper[:, 1], one.upper)


def test_known_eigenvalues_are_used() -> None:
    weak = LaplacianExtremes(0.0, 1.0, 2.0, ("lambda_0", "lambda_1", "lambda_max"))
    bounds = energy_bounds([TOP, propagate(K33, TOP, 1)], [torch.ones(1, 1)], K33, extremes=weak)
    assert (bounds.lower.item(), bounds.upper.item()) == pytest.approx((0.0, 1.5))
    assert bounds.extremes is weak


def test_wrong_input_is_named() -> None:
    extremes = laplacian_extremes(K33, 6)
    with pytest.raises(InputError, match=r"alpha = 1\.5: must be between 0 and 1"):
        partner_bounds(1.5, 2, 1.0, extremes)
    with pytest.raises(InputError, match="num_steps = 0: must be at least 1"):
        partner_bounds(0.5, 0, 1.0, extremes)
    with pytest.raises(InputError, match="embeddings, weights = 1 embeddings and 1 weights: must be"):
        energy_bounds([TOP], [torch.ones(1, 1)], K33)
    with pytest.raises(InputError, match=r"weights = \[2, 1\] at layer 1: must be \[\.\.\., 1, 1\]"):
        energy_bounds([TOP, TOP], [torch.ones(2, 1)], K33)
