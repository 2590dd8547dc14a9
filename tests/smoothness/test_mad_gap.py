import math
import warnings

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from graphpartner.smoothness.mad_gap import hop_pairs, mad, mad_gap, mad_gap_details
from graphpartner.system.errors import InputError

from .reference import DrawnGraph, dense_mad, dense_mad_gap, floyd_warshall, graphs, random_graph

PATH = torch.tensor([[0, 1, 2], [1, 2, 3]])  # 0 − 1 − 2 − 3
H = torch.tensor([[1.0, 0.0], [2.0, 0.0], [0.0, 3.0], [-1.0, 0.0]])


def test_hops_on_a_path_by_hand() -> None:
    pairs = hop_pairs(PATH, 4, near=1, remote=3)
    ((rows, near, within),) = pairs.blocks()
    assert rows.tolist() == [0, 1, 2, 3]
    assert near.int().tolist() == [[1, 1, 0, 0], [1, 1, 1, 0], [0, 1, 1, 1], [0, 0, 1, 1]]
    assert within.int().tolist() == [[1, 1, 1, 0], [1, 1, 1, 1], [1, 1, 1, 1], [0, 1, 1, 1]]
    assert pairs.exact


@settings(max_examples=40)
@given(graphs())
def test_hops_equal_floyd_warshall(graph: DrawnGraph) -> None:
    edge_index, num_nodes, _ = graph
    hops = floyd_warshall(edge_index, num_nodes)
    for near, remote in ((1, 2), (3, 4), (2, 8)):
        ((_, close, within),) = hop_pairs(edge_index, num_nodes, near, remote).blocks()
        np.testing.assert_array_equal(close.numpy(), hops <= near)
        np.testing.assert_array_equal(within.numpy(), hops < remote)


def test_hops_in_many_words_and_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphpartner.smoothness.mad_gap.SEARCH_BLOCK", 300 * 64)
    edge_index = random_graph(np.random.default_rng(0), 300, 0.003)
    hops = floyd_warshall(edge_index, 300)
    blocks = list(hop_pairs(edge_index, 300).blocks())
    assert [rows.numel() for rows, _, _ in blocks] == [64, 64, 64, 64, 44]
    np.testing.assert_array_equal(torch.cat([near for _, near, _ in blocks], dim=1).numpy(), hops <= 3)
    np.testing.assert_array_equal(torch.cat([within for _, _, within in blocks], dim=1).numpy(), hops <= 7)


def test_a_sample_is_drawn_by_its_seed() -> None:
    edge_index = random_graph(np.random.default_rng(0), 200, 0.01)
    first, again, other = (hop_pairs(edge_index, 200, sample=70, seed=seed) for seed in (1, 1, 2))
    assert not first.exact
    assert first.rows.numel() == first.rows.unique().numel() == 70
    assert torch.equal(first.rows, again.rows)
    assert not torch.equal(first.rows, other.rows)
    hops = floyd_warshall(edge_index, 200)
    near = torch.cat([near for _, near, _ in first.blocks()], dim=1)
    np.testing.assert_array_equal(near.numpy(), hops[:, first.rows] <= 3)
    assert hop_pairs(edge_index, 200, sample=1000).exact


def test_wrong_hops_are_named() -> None:
    edge_index = torch.tensor([[0], [1]])
    with pytest.raises(InputError, match="near = 3, remote = 3: must be 1 ≤ near < remote"):
        hop_pairs(edge_index, 2, near=3, remote=3)
    with pytest.raises(InputError, match="near = 0, "):
        hop_pairs(edge_index, 2, near=0)
    with pytest.raises(InputError, match="sample = 0: must be at least 1"):
        hop_pairs(edge_index, 2, sample=0)
    with pytest.raises(InputError, match="num_nodes = 0: must be at least 1"):
        hop_pairs(torch.empty(2, 0, dtype=torch.long), 0)


def test_mad_by_hand() -> None:
    # distances: 0−1: 0, 0−2: 1, 0−3: 2, 1−2: 1, 1−3: 2, 2−3: 1.
    # row 0 with 1, 2, 3: (0 + 1 + 2)/3 = 1; row 1 with 3: 2; rows 2 and 3 have no pair: (1 + 2)/2.
    pairs = torch.tensor([[0, 0, 0, 1], [1, 2, 3, 3]])
    assert mad(H, pairs).item() == pytest.approx(1.5)
    # the self pair and the second copy of 1−3 change nothing.
    assert mad(H, torch.cat([pairs, torch.tensor([[2, 1], [2, 3]])], dim=1)).item() == pytest.approx(1.5)


def test_mad_gap_of_a_path_by_hand() -> None:
    # near = 1: row 0: D01 = 0; row 1: (D10 + D12)/2 = ½; row 2: (D21 + D23)/2 = 1; row 3: D32 = 1. Mean 2.5/4.
    # remote = 3: rows 0 and 3 only, D03 = 2 both. Gap 2 − 0.625.
    details = mad_gap_details(H, hop_pairs(PATH, 4, near=1, remote=3))
    assert details.near.item() == pytest.approx(0.625)
    assert details.remote.item() == pytest.approx(2.0)
    assert (details.near_rows.item(), details.remote_rows.item(), details.exact) == (4, 2, True)
    assert mad_gap(H, PATH, near=1, remote=3).item() == pytest.approx(1.375)


def test_unreachable_pairs_are_remote() -> None:
    # edges 0−1 and 2−3. near: D01 = 0 in rows 0, 1; D23 = 1 in rows 2, 3: mean ½.
    # remote: row 0: (D02 + D03)/2 = 1.5, row 1 the same, row 2: (1 + 1)/2 = 1, row 3: (2 + 2)/2 = 2: mean 1.5.
    assert mad_gap(H, torch.tensor([[0, 2], [1, 3]])).item() == pytest.approx(1.0)


def test_zero_vectors_are_out() -> None:
    # node 1 is zero: near pairs left are 2−3 alone, D = 1 in rows 2 and 3; remote 0−3 has D = 2.
    silent = H.clone()
    silent[1] = 0.0
    details = mad_gap_details(silent, hop_pairs(PATH, 4, near=1, remote=3))
    assert (details.near.item(), details.near_rows.item()) == (pytest.approx(1.0), 2)
    assert details.gap.item() == pytest.approx(1.0)
    assert mad(silent, torch.tensor([[0, 0, 1], [1, 2, 3]])).item() == pytest.approx(1.0)


def test_nan_where_nothing_can_be_compared() -> None:
    assert math.isnan(mad_gap(H, PATH).item())  # no pair 8 hops apart
    assert math.isnan(mad_gap(torch.zeros(4, 2), PATH, near=1, remote=3).item())
    assert math.isnan(mad(H, torch.empty(2, 0, dtype=torch.long)).item())
    diverged = H.clone()
    diverged[0, 0] = math.nan
    assert math.isnan(mad_gap(diverged, PATH, near=1, remote=3).item())


@settings(max_examples=60)
@given(graphs(), st.sampled_from([(1, 2), (1, 3), (2, 4), (3, 8)]))
def test_equals_brute_force(graph: DrawnGraph, limits: tuple[int, int]) -> None:
    edge_index, num_nodes, rng = graph
    embedding = rng.standard_normal((num_nodes, 3)) * (rng.random((num_nodes, 1)) < 0.9)
    found = mad_gap(torch.from_numpy(embedding), edge_index, *limits).item()
    assert found == pytest.approx(dense_mad_gap(embedding, edge_index, *limits), abs=1e-10, nan_ok=True)
    mask = rng.random((num_nodes, num_nodes)) < 0.3
    found = mad(torch.from_numpy(embedding), torch.from_numpy(np.argwhere(mask).T)).item()
    assert found == pytest.approx(dense_mad(embedding, mask), abs=1e-10, nan_ok=True)


def test_several_embeddings_share_one_search(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    edge_index = random_graph(rng, 150, 0.008)
    stack = torch.from_numpy(rng.standard_normal((2, 3, 150, 4)))
    alone = torch.stack([mad_gap(one, edge_index) for one in stack.reshape(6, 150, 4)]).reshape(2, 3)
    monkeypatch.setattr("graphpartner.smoothness.mad_gap.SEARCH_BLOCK", 150 * 64)
    torch.testing.assert_close(mad_gap(stack, edge_index), alone)
    pairs = torch.from_numpy(rng.integers(0, 150, (2, 500)))
    separate = torch.stack([mad(one, pairs) for one in stack.reshape(6, 150, 4)]).reshape(2, 3)
    monkeypatch.setattr("graphpartner.smoothness.mad_gap.BLOCK", 100)
    torch.testing.assert_close(mad(stack, pairs), separate)


def test_does_not_depend_on_the_order_of_nodes_nor_on_lengths() -> None:
    edge_index = random_graph(np.random.default_rng(4), 80, 0.02)
    embedding, order = torch.randn(80, 3, dtype=torch.float64), torch.randperm(80)
    expected = mad_gap(embedding, edge_index, near=2, remote=4)
    renamed = torch.argsort(order)[edge_index]
    torch.testing.assert_close(mad_gap(embedding[order], renamed, near=2, remote=4), expected)
    lengths = 10.0 ** torch.linspace(-200, 100, 80, dtype=torch.float64)[:, None]
    torch.testing.assert_close(mad_gap(embedding * lengths, edge_index, near=2, remote=4), expected)


def ring_of_cliques(num_cliques: int, size: int) -> torch.Tensor:
    inside = torch.combinations(torch.arange(size)).T
    first = torch.arange(num_cliques) * size
    cliques = (first[:, None, None] + inside).transpose(0, 1).reshape(2, -1)
    bridges = torch.stack([first, (first + size).remainder(num_cliques * size)])
    return torch.cat([cliques, bridges], dim=1)


def test_sampled_rows_come_close_to_all_rows() -> None:
    edge_index = ring_of_cliques(150, 10)
    angle = torch.arange(1500) / 1500 * 2 * math.pi
    embedding = torch.stack([angle.cos(), angle.sin()], dim=1) + 0.3 * torch.randn(
        1500, 2, generator=torch.Generator().manual_seed(0)
    )
    exact = mad_gap(embedding, edge_index).item()
    assert exact > 0.5  # near nodes point the same way
    assert mad_gap(embedding, edge_index, sample=300, seed=1).item() == pytest.approx(exact, abs=0.02)


def test_sampling_a_large_graph_warns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphpartner.smoothness.mad_gap.EXACT_UP_TO", 100)
    monkeypatch.setattr("graphpartner.smoothness.mad_gap.SAMPLED_ROWS", 64)
    edge_index, embedding = ring_of_cliques(20, 10), torch.randn(200, 3)
    with pytest.warns(UserWarning, match="64 of 200 rows"):
        mad_gap(embedding, edge_index)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mad_gap(embedding, edge_index, sample=64)  # asked for
    assert not mad_gap_details(embedding, hop_pairs(edge_index, 200)).exact


def test_an_embedding_that_needs_gradients_is_only_read() -> None:
    assert not mad_gap(H.clone().requires_grad_(), PATH, near=1, remote=3).requires_grad


def test_wrong_input_is_named() -> None:
    with pytest.raises(InputError, match="pairs = 0 → 9 at position 0: must be nodes 0 to 3"):
        mad(H, torch.tensor([[0], [9]]))
    with pytest.raises(InputError, match="embedding has 5 nodes: must be 4"):
        mad_gap_details(torch.ones(5, 2), hop_pairs(PATH, 4))
    with pytest.raises(InputError, match="embedding = "):
        mad_gap(torch.ones(4), PATH)
    with pytest.raises(InputError, match="edge_index = 2 → 3 at position 2"):
        mad_gap(H[:3], PATH)
