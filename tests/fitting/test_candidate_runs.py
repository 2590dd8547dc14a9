"""A linear model in the form of a network, against scikit-learn's and against a dense computation."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from torch_geometric.data import Data

from graphpartner.fitting import candidate_runs
from graphpartner.fitting.candidate_runs import as_network, fit_linear, output
from graphpartner.fitting.candidates import Candidate, Traits, candidates_for
from graphpartner.fitting.clock import Clock
from graphpartner.fitting.layouts import CandidateGraphs
from graphpartner.graph.adjacency import normalized_adjacency, simple_edges
from graphpartner.training.prepared import Labelled


def graph(n: int = 120, d: int = 6, classes: int = 3, seed: int = 0) -> Data:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, n)
    x = torch.from_numpy((rng.normal(size=(n, d)) + 1.5 * np.eye(classes, d)[y]).astype(np.float32))
    edge_index = simple_edges(torch.from_numpy(rng.integers(0, n, (2, 3 * n))), n)
    return Data(x=x, edge_index=edge_index, y=torch.from_numpy(y), num_nodes=n)


def named(name: str) -> Candidate:
    return next(each for each in candidates_for(Traits(True, False, False, False)) if each.name == name)


@given(st.integers(1, 5), st.integers(1, 4), st.integers(0, 10**6))
def test_a_network_that_is_linear(d: int, classes: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    W, X = torch.randn(d, classes, generator=generator), torch.randn(7, d, generator=generator)
    first, second = as_network(W)
    torch.testing.assert_close(torch.relu(X @ first) @ second, X @ W)


def test_the_same_predictions_as_scikit_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidate_runs, "DECAYS", (1e-3,))
    monkeypatch.setattr(candidate_runs, "STEPS", 300)
    data = graph()
    nodes = Labelled(torch.arange(120), data.y, None)
    candidate = named("linear")
    problem = CandidateGraphs(data, 3, torch.device("cpu")).problem(candidate)
    weights = fit_linear(problem, 1.0, nodes, nodes, Clock(60))
    ours = output(problem, *weights, 1.0).logits.softmax(-1)
    # theirs: Σ loss + ‖W‖² / 2C, and the intercept is not regularised
    model = LogisticRegression(C=1 / (2 * 120 * 1e-3), tol=1e-8, max_iter=10_000).fit(data.x.numpy(), data.y.numpy())
    np.testing.assert_allclose(ours.numpy(), model.predict_proba(data.x.numpy()), atol=5e-3)


def test_on_the_graph_it_is_sgc() -> None:
    data = graph()
    nodes = Labelled(torch.arange(60), data.y[:60], None)
    others = Labelled(torch.arange(60, 120), data.y[60:], None)
    candidate = named("linear-graph")
    problem = CandidateGraphs(data, 3, torch.device("cpu")).problem(candidate)
    weights = fit_linear(problem, candidate.settings.alpha, nodes, others, Clock(60))
    W = weights[0][:, :3]
    P = normalized_adjacency(data.edge_index, 120).to_dense()
    expected = P @ P @ torch.cat([data.x, torch.ones(120, 1)], 1) @ W
    out = output(problem, *weights, candidate.settings.alpha)
    torch.testing.assert_close(out.logits, expected, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(out.mlp_logits, torch.cat([data.x, torch.ones(120, 1)], 1) @ W, rtol=1e-4, atol=1e-4)


def test_the_best_so_far_is_kept_when_time_is_over() -> None:
    data = graph()
    nodes = Labelled(torch.arange(60), data.y[:60], None)
    problem = CandidateGraphs(data, 3, torch.device("cpu")).problem(named("linear"))
    weights = fit_linear(problem, 1.0, nodes, nodes, Clock(0))
    right = output(problem, *weights, 1.0).logits[:60].argmax(1) == data.y[:60]
    assert right.float().mean() > 0.6
