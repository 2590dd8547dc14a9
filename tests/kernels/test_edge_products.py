"""Products over edges with a value for every edge and replica, against dense matrices."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from graphpartner.kernels.edge_products import Edges
from tests.kernels.conftest import take_kernels_away
from tests.lab.baselines.graphs import dense_adjacency, odd_graph


def graph_edges(seed, n=9):
    P = dense_adjacency(odd_graph(n, seed=seed))
    return Edges(P.to_sparse_csr()), P


def dense(edges, values):
    """[G, n, n] from [E, G]."""
    matrix = torch.zeros(values.shape[1], edges.num_nodes, edges.num_nodes, dtype=values.dtype)
    matrix[:, edges.target, edges.source] = values.T
    return matrix


@pytest.fixture(params=["compiled", "torch"])
def kernels(request, monkeypatch):
    if request.param == "torch":
        take_kernels_away(monkeypatch)
    else:
        pytest.importorskip("numba")


@pytest.mark.parametrize(("seed", "groups", "width"), [(0, 1, 1), (1, 3, 4), (2, 6, 7)])
def test_product_and_its_gradients(kernels, seed, groups, width):
    edges, _ = graph_edges(seed)
    values = torch.randn(edges.count, groups, requires_grad=True)
    H = torch.randn(edges.num_nodes, groups, width, requires_grad=True)
    out = edges.product(values, H)
    expected = torch.einsum("gij,jgc->igc", dense(edges, values), H)
    assert_close(out, expected)
    direction = torch.randn_like(out)
    ours = torch.autograd.grad((out * direction).sum(), (values, H))
    theirs = torch.autograd.grad((expected * direction).sum(), (values, H))
    for found, wanted in zip(ours, theirs, strict=True):
        assert_close(found, wanted)


@settings(max_examples=25)
@given(st.integers(0, 1000), st.integers(1, 4), st.floats(0.1, 50))
def test_softmax_and_its_gradient(seed, groups, size):
    edges, _ = graph_edges(seed)
    scores = (size * torch.randn(edges.count, groups)).requires_grad_()
    filled = torch.full((groups, edges.num_nodes, edges.num_nodes), -torch.inf)
    filled[:, edges.target, edges.source] = scores.T
    expected = filled.softmax(-1)[:, edges.target, edges.source].T
    found = edges.softmax(scores)
    assert_close(found, expected)
    direction = torch.randn_like(found)
    ours, theirs = (torch.autograd.grad((p * direction).sum(), scores)[0] for p in (found, expected))
    assert_close(ours, theirs)


def test_sums_and_their_gradients():
    edges, _ = graph_edges(3)
    by_source, by_target = (torch.randn(edges.num_nodes, 4, requires_grad=True) for _ in range(2))
    found = edges.sums(by_source, by_target)
    expected = by_source[edges.source] + by_target[edges.target]
    assert_close(found, expected)
    direction = torch.randn_like(found)
    ours, theirs = (torch.autograd.grad((s * direction).sum(), (by_source, by_target)) for s in (found, expected))
    for one, other in zip(ours, theirs, strict=True):
        assert_close(one, other)


def test_edges_know_their_ends():
    edges, P = graph_edges(0)
    assert_close(dense(edges, edges.weight[:, None])[0], P)
    assert int(edges.loop.sum()) == edges.num_nodes
    assert_close(edges.into @ torch.ones(edges.count, 1), (P != 0).sum(1, keepdim=True).float())
