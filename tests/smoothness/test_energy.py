import numpy as np
import pytest
import torch
from hypothesis import given, settings

from graphpartner.graph.adjacency import normalized_adjacency
from graphpartner.smoothness.energy import dirichlet_energy
from graphpartner.system.errors import InputError

from .reference import DrawnGraph, dense_energy, dense_propagation, graphs, random_graph

PATH = torch.tensor([[0, 1, 2], [1, 2, 3]])  # 0 − 1 − 2 − 3
STAR = torch.tensor([[0, 0, 0], [1, 2, 3]])  # 0 in the middle


def test_path_of_four_nodes_by_hand() -> None:
    # degrees 1 2 2 1, so 1 + d = 2 3 3 2. H = (√2, √3, 0, 0), scaled to (1, 1, 0, 0):
    # edges 0−1: (1 − 1)² = 0, 1−2: (1 − 0)² = 1, 2−3: 0. Sum 1.
    H = torch.tensor([[2.0**0.5], [3.0**0.5], [0.0], [0.0]], dtype=torch.float64)
    assert dirichlet_energy(H, PATH).item() == pytest.approx(1.0)
    # a unit at node 1: L̃_11 = 1 − 1/3 = 2/3.
    H = torch.tensor([[0.0], [1.0], [0.0], [0.0]])
    assert dirichlet_energy(H, PATH).item() == pytest.approx(2 / 3)


def test_star_of_four_nodes_by_hand() -> None:
    # 1 + d = 4 2 2 2. Two columns: (2, 0, 0, 0) scaled (1, 0, 0, 0): three edges of 1, sum 3;
    # (2, √2, −√2, √2) scaled (1, 1, −1, 1): 0 + (1 + 1)² + 0 = 4. Together 7.
    r = 2.0**0.5
    H = torch.tensor([[2.0, 2.0], [0.0, r], [0.0, -r], [0.0, r]])
    assert dirichlet_energy(H, STAR).item() == pytest.approx(7.0)


@settings(max_examples=60)
@given(graphs())
def test_equals_the_dense_trace(graph: DrawnGraph) -> None:
    edge_index, num_nodes, rng = graph
    H = rng.standard_normal((num_nodes, 3))
    expected = dense_energy(H, edge_index)
    assert dirichlet_energy(torch.from_numpy(H), edge_index).item() == pytest.approx(expected, rel=1e-10, abs=1e-12)
    both = torch.cat([edge_index, edge_index.flip(0)], dim=1)
    P = normalized_adjacency(both, num_nodes, dtype=torch.float64)
    assert dirichlet_energy(torch.from_numpy(H), P).item() == pytest.approx(expected, rel=1e-10, abs=1e-12)


def test_weights_come_in_through_the_matrix() -> None:
    # one edge of weight 3, 1 + d = 4 4, two isolated nodes: 3 (h_0/2 − h_1/2)² with h = (2, 0): 3.
    edge_index, weight = torch.tensor([[0, 1], [1, 0]]), torch.tensor([3.0, 3.0])
    P = normalized_adjacency(edge_index, 4, weight)
    assert dirichlet_energy(torch.tensor([[2.0], [0.0], [5.0], [7.0]]), P).item() == pytest.approx(3.0)


def test_gradient() -> None:
    H = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda h: dirichlet_energy(h, STAR), (H,))
    dirichlet_energy(H, STAR).backward()
    laplacian = torch.eye(4, dtype=torch.float64) - torch.from_numpy(dense_propagation(STAR, 4))
    torch.testing.assert_close(H.grad, 2 * laplacian @ H.detach())


def test_leading_dimensions_are_replicas(monkeypatch: pytest.MonkeyPatch) -> None:
    edge_index = random_graph(np.random.default_rng(0), 30, 0.2)
    H = torch.randn(2, 3, 30, 5)
    whole = dirichlet_energy(H, edge_index)
    assert whole.shape == (2, 3)
    alone = torch.stack([dirichlet_energy(h, edge_index) for h in H.reshape(6, 30, 5)]).reshape(2, 3)
    torch.testing.assert_close(whole, alone)
    monkeypatch.setattr("graphpartner.smoothness.energy.BLOCK", 100)  # many blocks of edges
    torch.testing.assert_close(dirichlet_energy(H, edge_index), whole)


def test_does_not_depend_on_the_order_of_nodes_or_edges() -> None:
    edge_index = random_graph(np.random.default_rng(1), 20, 0.2)
    H, order = torch.randn(20, 4, dtype=torch.float64), torch.randperm(20)
    renamed = torch.argsort(order)[edge_index][:, torch.randperm(edge_index.shape[1])]
    torch.testing.assert_close(dirichlet_energy(H[order], renamed), dirichlet_energy(H, edge_index))


def test_a_smooth_embedding_has_no_energy_left_in_float32() -> None:
    # rows √(1 + d_i) (1, 1000): the null space, plus 1e-3 at a leaf of the star, which leaves ½ (1e-3)².
    root = torch.tensor([4.0, 2.0, 2.0, 2.0], dtype=torch.float64).sqrt()
    H = root[:, None] * torch.tensor([1.0, 1000.0])
    assert dirichlet_energy(H.float(), STAR).item() < 1e-7
    H[3, 0] += 1e-3
    trace = (H.float() * (H.float() - torch.from_numpy(dense_propagation(STAR, 4)).float() @ H.float())).sum()
    exact = dirichlet_energy(H, STAR).item()
    assert exact == pytest.approx(0.5e-6)
    assert dirichlet_energy(H.float(), STAR).item() == pytest.approx(exact, rel=0.05)
    assert abs(trace.item() - exact) > 0.1 * exact  # what the first form of Eq. 5 makes of it


def test_no_edges_no_energy() -> None:
    assert dirichlet_energy(torch.randn(4, 2), torch.empty(2, 0, dtype=torch.long)).item() == 0.0


@pytest.mark.parametrize(
    ("embedding", "edge_index", "words"),
    [
        (torch.ones(4), PATH, r"embedding = float32 \[4\]: must be floating-point"),
        (torch.ones(4, 2, dtype=torch.long), PATH, r"embedding = int64 \[4, 2\]: must be floating-point"),
        (torch.ones(3, 2), PATH, "edge_index = 2 → 3 at position 2: must be nodes 0 to 2"),
        (torch.ones(4, 2), PATH - 1, "edge_index = -1 → 0 at position 0"),
        (torch.ones(4, 2), PATH.T, r"edge_index = int64 \[3, 2\]: must be int64 or int32 \[2, E\]"),
        (torch.ones(4, 2), PATH.float(), r"edge_index = float32 \[2, 3\]: must be"),
        (torch.ones(4, 2), torch.eye(3).to_sparse_csr(), r"edge_index = matrix \[3, 3\]: must be \[4, 4\]"),
        (torch.ones(4, 2), (torch.ones(4, 4) / 2).to_sparse_csr(), "edge_index = sparse matrix: must be D̃"),
    ],
)
def test_wrong_input_is_named(embedding: torch.Tensor, edge_index: torch.Tensor, words: str) -> None:
    with pytest.raises(InputError, match=words):
        dirichlet_energy(embedding, edge_index)
