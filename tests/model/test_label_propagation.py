"""Label propagation on graphs small enough to work out, and against a dense loop."""

import math

import torch
from hypothesis import given
from hypothesis import strategies as st

from graphpartner.graph.adjacency import normalized_adjacency, simple_edges
from graphpartner.model.label_propagation import RESERVE, LabelPropagation, majority_class


def test_majority():
    y = torch.tensor([0, 1, 1, -1])
    assert majority_class(y, torch.tensor([0, 1, 2]), 3).tolist() == torch.tensor([1 / 3, 2 / 3, 0]).tolist()


def test_a_path_with_two_ends_known():
    edge_index = simple_edges(torch.tensor([[0, 1, 2, 3], [1, 2, 3, 4]]), 6)
    y = torch.tensor([0, -1, -1, -1, 1, -1])
    answer = LabelPropagation(edge_index, 6)(y, torch.tensor([0, 4]), 2)
    assert answer[0].tolist() == [1, 0]  # known stays known
    assert answer[4].tolist() == [0, 1]
    torch.testing.assert_close(answer[2], torch.tensor([0.5, 0.5]))
    assert answer[1, 0] > 0.7
    assert answer[5].tolist() == [0.5, 0.5]  # nothing reaches it: the shares in training
    torch.testing.assert_close(answer.sum(1), torch.ones(6))


@given(seed=st.integers(0, 50), alpha=st.sampled_from([0.0, 0.5, 0.95]))
def test_against_a_dense_loop(seed, alpha):
    torch.manual_seed(seed)
    n, C = 8, 3
    edge_index = simple_edges(torch.randint(0, n, (2, 10)), n)
    y, train = torch.randint(0, C, (n,)), torch.randperm(n)[:4]
    P = normalized_adjacency(edge_index, n).to_dense()
    Y = torch.zeros(n, C)
    Y[train, y[train]] = 1
    F = Y.clone()
    for _ in range(50):
        F = alpha * P @ F + (1 - alpha) * Y
        F[train] = Y[train]
    others = [i for i in range(n) if i not in train.tolist()]
    logs = [math.log(float(F[i].sum())) for i in others if F[i].sum() > 1e-12]
    reserve = RESERVE * 4 / n * math.exp(sum(logs) / len(logs)) if logs else 1.0
    shares = Y.sum(0) / 4
    expected = torch.stack(
        [Y[i] if i not in others else (F[i] + reserve * shares) / (F[i].sum() + reserve) for i in range(n)]
    )
    answer = LabelPropagation(edge_index, n)(y, train, C, alpha)
    torch.testing.assert_close(answer, expected, atol=1e-4, rtol=1e-4)


def test_no_class_is_impossible_and_little_evidence_counts_little():
    # 0 and 1 are known, of class 0 and 1; 2 is a neighbour of 0, 3 one of 2, 4 one of 3
    edge_index = simple_edges(torch.tensor([[0, 2, 3], [2, 3, 4]]), 5)
    answer = LabelPropagation(edge_index, 5)(torch.tensor([0, 1, 0, 0, 0]), torch.tensor([0, 1]), 2)
    assert 0.99 > answer[2, 0] > answer[3, 0] > answer[4, 0] > 0.5


def test_chooses_on_validation():
    edge_index = simple_edges(torch.tensor([[0, 1], [1, 2]]), 3)
    y = torch.tensor([0, 0, 1])
    alpha, answer = LabelPropagation(edge_index, 3).choose(y, torch.tensor([0, 2]), torch.tensor([1]), 2)
    assert alpha == 0.5
    assert answer.shape == (3, 2)
