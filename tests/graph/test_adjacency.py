from random import Random

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.utils import to_dense_adj

from graphpartner.graph.adjacency import (
    adjacency,
    neighbor_mean,
    normalized_adjacency,
    row_normalized,
    simple_edges,
    to_scipy,
    to_torch,
)

# The path 0 – 1 – 2, and node 3 alone.
PATH = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])


@st.composite
def edge_lists(draw: st.DrawFn) -> tuple[torch.Tensor, int]:
    n = draw(st.integers(1, 8))
    pairs = draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=20))
    return torch.tensor(pairs, dtype=torch.long).reshape(-1, 2).T, n


def test_normalized_adjacency_of_a_path() -> None:
    a, b = 1 / 6**0.5, 1 / 3
    expected = torch.tensor([[1 / 2, a, 0, 0], [a, b, a, 0], [0, a, 1 / 2, 0], [0, 0, 0, 1]])
    P = normalized_adjacency(PATH, 4)
    assert P.layout == torch.sparse_csr
    assert P.dtype == torch.float32
    torch.testing.assert_close(P.to_dense(), expected)


def test_neighbor_mean_of_a_path() -> None:
    expected = torch.tensor([[0, 1, 0, 0], [0.5, 0, 0.5, 0], [0, 1, 0, 0], [0, 0, 0, 0]])
    torch.testing.assert_close(neighbor_mean(PATH, 4).to_dense(), expected)


def test_rows_receive() -> None:
    A = adjacency(torch.tensor([[0], [1]]), 2)  # 0 → 1
    assert A.toarray().tolist() == [[0, 0], [1, 0]]


def test_weights() -> None:
    edges, weight = torch.tensor([[0, 1, 1, 0], [1, 0, 1, 1]]), torch.tensor([2.0, 3.0, 9.0, 1.0])
    # 0 → 1 twice, 2 + 1; 1 → 0 with 3; the self-loop is left out.
    assert adjacency(edges, 2, weight).toarray().tolist() == [[0, 3], [3, 0]]
    expected = torch.tensor([[1 / 4, 3 / 4], [3 / 4, 1 / 4]])
    torch.testing.assert_close(normalized_adjacency(edges, 2, weight).to_dense(), expected)
    torch.testing.assert_close(neighbor_mean(edges, 2, weight).to_dense(), torch.tensor([[0.0, 1], [1, 0]]))


def test_a_weighted_mean_weighs() -> None:
    edges, weight = torch.tensor([[0, 1], [2, 2]]), torch.tensor([1.0, 3.0])
    assert neighbor_mean(edges, 3, weight).to_dense()[2].tolist() == [0.25, 0.75, 0]


def test_unweighted_duplicates_count_once() -> None:
    twice = torch.cat([PATH, PATH, torch.tensor([[2], [2]])], dim=1)
    assert torch.equal(normalized_adjacency(twice, 4).to_dense(), normalized_adjacency(PATH, 4).to_dense())
    assert torch.equal(neighbor_mean(twice, 4).to_dense(), neighbor_mean(PATH, 4).to_dense())


def test_no_edges_at_all() -> None:
    none = torch.empty(2, 0, dtype=torch.long)
    assert torch.equal(normalized_adjacency(none, 3).to_dense(), torch.eye(3))
    assert torch.equal(neighbor_mean(none, 3).to_dense(), torch.zeros(3, 3))
    assert simple_edges(none, 3).shape == (2, 0)


def test_simple_edges() -> None:
    given_edges = torch.tensor([[0, 0, 1, 2, 3], [1, 1, 0, 2, 0]])
    assert simple_edges(given_edges, 4).tolist() == [[1, 3, 0, 0], [0, 0, 1, 3]]


def test_simple_edges_of_32_bits_do_not_overflow() -> None:
    n = 100_000
    edges = torch.tensor([[n - 1], [n - 2]], dtype=torch.int32)
    assert simple_edges(edges, n).tolist() == [[n - 1, n - 2], [n - 2, n - 1]]


@given(edge_lists())
@settings(max_examples=50)
def test_simple_edges_are_the_pattern_of_a_symmetric_matrix(drawn: tuple[torch.Tensor, int]) -> None:
    edges, n = drawn
    dense = torch.zeros(n, n, dtype=torch.bool)
    dense[edges[1], edges[0]] = True
    dense |= dense.T.clone()
    dense.fill_diagonal_(False)
    target, source = dense.nonzero().T
    assert torch.equal(simple_edges(edges, n), torch.stack([source, target]))


@given(edge_lists(), st.booleans())
@settings(max_examples=50)
def test_agrees_with_gcn_norm(drawn: tuple[torch.Tensor, int], directed: bool) -> None:
    edges, n = drawn
    # gcn_norm counts duplicates and keeps self-loops, so it gets none.
    edges = torch.unique(edges[:, edges[0] != edges[1]], dim=1) if directed else simple_edges(edges, n)
    index, weight = gcn_norm(edges, num_nodes=n, dtype=torch.float64)
    expected = to_dense_adj(index, edge_attr=weight, max_num_nodes=n)[0].T  # rows receive
    torch.testing.assert_close(normalized_adjacency(edges, n, dtype=torch.float64).to_dense(), expected)


@given(edge_lists(), st.randoms(use_true_random=False))
@settings(max_examples=50)
def test_permutation(drawn: tuple[torch.Tensor, int], random: Random) -> None:
    edges, n = drawn
    order = torch.tensor(random.sample(range(n), n))
    for matrix in (normalized_adjacency, neighbor_mean):
        renamed = matrix(order[edges], n, dtype=torch.float64).to_dense()
        torch.testing.assert_close(renamed[order][:, order], matrix(edges, n, dtype=torch.float64).to_dense())


@given(edge_lists())
@settings(max_examples=30)
def test_rows_of_the_mean_sum_to_one_or_zero(drawn: tuple[torch.Tensor, int]) -> None:
    edges, n = drawn
    sums = neighbor_mean(edges, n, dtype=torch.float64).to_dense().sum(1)
    assert torch.all(((sums - 1).abs() < 1e-12) | (sums == 0))


def test_to_torch_adds_duplicates_and_leaves_its_argument_alone() -> None:
    data, columns = np.array([1.0, 2.0, 4.0]), np.array([1, 0, 1])
    matrix = sparse.csr_array((data, columns, np.array([0, 3, 3])), shape=(2, 2))
    tensor = to_torch(matrix, torch.float64)
    assert tensor.to_dense().tolist() == [[2, 5], [0, 0]]
    assert tensor.col_indices().tolist() == [0, 1]
    assert matrix.indices.tolist() == [1, 0, 1]
    tidy = sparse.csr_array(np.eye(2))
    to_torch(tidy, torch.float64).values().zero_()
    assert tidy.data.tolist() == [1, 1]


def test_to_scipy_and_back() -> None:
    P = normalized_adjacency(PATH, 4)
    assert torch.equal(to_torch(to_scipy(P)).to_dense(), P.to_dense())
    assert to_scipy(P).toarray() == pytest.approx(P.to_dense().numpy())


def test_normalized_rows_sum_to_one_and_empty_rows_stay() -> None:
    x = torch.tensor([[1.0, 3.0, 0.0], [0.0, 0.0, 0.0], [2.0, -2.0, 0.0]])
    expected = [[0.25, 0.75, 0.0], [0.0, 0.0, 0.0], [2.0, -2.0, 0.0]]
    assert row_normalized(x).tolist() == expected
    assert row_normalized(x.to_sparse_csr()).to_dense().tolist() == expected
