import numpy as np
import pytest
import torch
from hypothesis import given, settings

from graphpartner.smoothness.mad_gap import hop_pairs
from graphpartner.system.errors import InputError

from .dense import floyd_warshall, graphs, random_graph


def test_path_of_four_nodes_by_hand() -> None:
    pairs = hop_pairs(torch.tensor([[0, 1, 2], [1, 2, 3]]), 4, near=1, remote=3)
    ((rows, near, within),) = pairs.blocks()
    assert rows.tolist() == [0, 1, 2, 3]
    assert near.int().tolist() == [[1, 1, 0, 0], [1, 1, 1, 0], [0, 1, 1, 1], [0, 0, 1, 1]]
    assert within.int().tolist() == [[1, 1, 1, 0], [1, 1, 1, 1], [1, 1, 1, 1], [0, 1, 1, 1]]
    assert pairs.exact


@settings(max_examples=40)
@given(graphs())
def test_equals_floyd_warshall(graph) -> None:
    edge_index, num_nodes, _ = graph
    hops = floyd_warshall(edge_index, num_nodes)
    for near, remote in ((1, 2), (3, 4), (2, 8)):
        ((_, close, within),) = hop_pairs(edge_index, num_nodes, near, remote).blocks()
        np.testing.assert_array_equal(close.numpy(), hops <= near)
        np.testing.assert_array_equal(within.numpy(), hops < remote)


def test_many_words_and_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_wrong_input_is_named() -> None:
    edge_index = torch.tensor([[0], [1]])
    with pytest.raises(InputError, match="near is 3 and remote is 3"):
        hop_pairs(edge_index, 2, near=3, remote=3)
    with pytest.raises(InputError, match="near is 0"):
        hop_pairs(edge_index, 2, near=0)
    with pytest.raises(InputError, match="sample is 0"):
        hop_pairs(edge_index, 2, sample=0)
    with pytest.raises(InputError, match="num_nodes is 0"):
        hop_pairs(torch.empty(2, 0, dtype=torch.long), 0)
