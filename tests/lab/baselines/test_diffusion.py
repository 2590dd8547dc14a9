import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from graphpartner.graph.adjacency import normalized_adjacency
from graphpartner.lab.baselines.mvgrl import EPSILONS, is_symmetric, personalized_pagerank, sparsified
from graphpartner.system.errors import InputError
from tests.lab.baselines.small import dense_adjacency, odd_graph, weighted
from tests.training.graphs import toy


@settings(max_examples=15)
@given(st.integers(0, 1000), st.sampled_from([0.05, 0.2, 1.0]))
def test_pagerank_is_the_sum_over_all_walks(seed: int, alpha: float) -> None:
    data = toy(n=15, seed=seed)
    A = torch.eye(15, dtype=torch.float64)
    A[data.edge_index[1], data.edge_index[0]] = 1
    root = A.sum(1).sqrt()
    P = A / root[:, None] / root
    total, power = torch.zeros(15, 15, dtype=torch.float64), torch.eye(15, dtype=torch.float64)
    for _ in range(600):
        total, power = total + alpha * power, (1 - alpha) * power @ P
    S = personalized_pagerank(data.edge_index, 15, alpha, "cpu")
    torch.testing.assert_close(S.double(), total, rtol=1e-4, atol=1e-5)


@settings(max_examples=15)
@given(st.integers(0, 1000), st.sampled_from([0.001, 0.05, 0.2, 1.0]), st.booleans(), st.booleans())
@example(109, 0.001, True, True)  # ill-conditioned
def test_pagerank_is_the_dense_inverse(seed: int, alpha: float, directed: bool, weights: bool) -> None:
    data = odd_graph(20, seed=seed) if directed else toy(n=20, seed=seed)
    if weights:
        data = weighted(data, seed)
    P = dense_adjacency(data).double()
    expected = alpha * torch.linalg.inv(torch.eye(20, dtype=torch.float64) - (1 - alpha) * P)
    S = personalized_pagerank(data.edge_index, 20, alpha, "cpu", data.get("edge_weight"))
    torch.testing.assert_close(S.double(), expected, rtol=1e-3, atol=1e-4)


def test_edge_weights_that_say_the_same_both_ways_are_symmetric() -> None:
    for data, symmetric in ((toy(), True), (weighted(toy()), True), (odd_graph(), False)):
        assert is_symmetric(normalized_adjacency(data.edge_index, data.num_nodes, data.get("edge_weight"))) == symmetric


@pytest.mark.parametrize("edge", [[[0], [1]], [[1], [0]]])
def test_pagerank_flows_along_an_edge_and_not_against_it(edge: list[list[int]]) -> None:
    (source,), (target,) = edge
    S = personalized_pagerank(torch.tensor(edge), 2, 0.2, "cpu")
    assert S[target, source] > 0.1
    assert S[source, target] == 0


def test_sparsified_keeps_about_as_many_entries_as_there_are_edges() -> None:
    data = toy()
    S = personalized_pagerank(data.edge_index, 40, 0.2, "cpu")
    sparse = sparsified(S, data.edge_index.shape[1]).csr.to_dense()
    counts = {epsilon: int((epsilon <= S).sum()) for epsilon in EPSILONS}
    epsilon = min(counts, key=lambda each: abs(counts[each] - data.edge_index.shape[1]))
    for column in range(40):
        kept = [float(value) if value >= epsilon else 0.0 for value in S[:, column]]
        low, high = min(kept), max(kept)
        expected = torch.tensor([(value - low) / (high - low) for value in kept])
        torch.testing.assert_close(sparse[:, column], expected)


def test_too_large_a_graph_is_refused() -> None:
    with pytest.raises(InputError, match=r"50000 nodes.*at most 30000"):
        personalized_pagerank(torch.empty(2, 0, dtype=torch.long), 50_000, 0.2, "cpu")
