import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch_geometric.nn import GCNConv

from graphpartner.graph.adjacency import is_symmetric, normalized_adjacency, row_normalized, to_scipy
from graphpartner.graph.record import GraphRecord
from graphpartner.kernels import draws
from graphpartner.kernels.spmm import SparseMatrix
from graphpartner.lab.baselines.mvgrl import EPSILONS, MVGRLSettings, personalized_pagerank, sparsified
from graphpartner.system.errors import InputError
from tests.lab.baselines.graphs import dense_adjacency, moved, odd_graph, pretext_task, weighted
from tests.training.graphs import toy

SETTINGS = MVGRLSettings(hidden_channels=32, window=15, windows=3)


def dense(view: SparseMatrix | Tensor) -> Tensor:
    return view if isinstance(view, Tensor) else view.csr.to_dense()


@pytest.mark.parametrize("sparsify", [False, True])
def test_loss_equals_a_loop_over_windows(sparsify: bool, kernels: str) -> None:
    data = toy()
    task = pretext_task(SETTINGS.replace(sparsify=sparsify), data)
    assert isinstance(task.views[1], SparseMatrix) == sparsify
    weights = moved(task.initial([3, 4]))
    drawn = task.draw({stream: draws.keys([3, 4], stream, 1) for stream in ("negatives", "input")})
    loss, x = task.loss(weights, drawn), row_normalized(data.x)
    assert drawn[0].shape == (2, 3)
    assert 0 <= drawn[0].min() <= drawn[0].max() <= 25
    for r in range(2):
        discriminator = nn.Bilinear(32, 32, 1)
        discriminator.weight.data, discriminator.bias.data = weights[6][r][None], weights[7][r, 0]
        logits, labels = [], []
        for start in drawn[0][r].tolist():
            part = slice(start, start + 15)
            embedded = []  # true and shuffled, by view
            for view, (weight, bias, slope) in zip(task.views, (weights[:3], weights[3:6]), strict=True):
                A = dense(view)[part, part]
                pair = x[part], x[part][drawn[1][r]]
                embedded.append([nn.functional.prelu(A @ f @ weight[r] + bias[r], slope[r, 0]) for f in pair])
            summaries = [true.mean(0).sigmoid().expand(15, -1).contiguous() for true, _ in embedded]
            for own, other in ((0, 1), (1, 0)):
                for right, H in zip((1.0, 0.0), embedded[own], strict=True):
                    logits.append(discriminator(H, summaries[other]).squeeze(1))
                    labels.append(torch.full((15,), right))
        expected = nn.BCEWithLogitsLoss()(torch.cat(logits), torch.cat(labels)).detach()
        torch.testing.assert_close(loss[r], expected, rtol=1e-5, atol=1e-6)


def test_sparse_and_dense_views_give_the_same_products_and_gradients(kernels: str) -> None:
    task = pretext_task(SETTINGS, toy())
    sparse = task.views[0]
    start = torch.tensor([[0, 7, 25], [3, 3, 11]])
    H = torch.randn(2, 3, 15, 33, requires_grad=True)
    factor = torch.randn(2, 3, 15, 33)
    products = [task.within(view, H, start) for view in (sparse, dense(sparse))]
    torch.testing.assert_close(*products, rtol=1e-4, atol=1e-5)
    gradients = [torch.autograd.grad((product * factor).sum(), H)[0] for product in products]
    torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-5)


def test_embedding_is_the_sum_of_two_gcns() -> None:
    data = toy()
    task = pretext_task(SETTINGS, data)
    weights = moved(task.initial([3, 4]))
    embedded, x = task.embed(weights), row_normalized(data.x)
    diffusion = dense(task.views[1]).to_sparse()
    for r in range(2):
        layers = GCNConv(24, 32), GCNConv(24, 32, normalize=False, add_self_loops=False)
        for layer, (weight, bias) in zip(layers, (weights[:2], weights[3:5]), strict=True):
            layer.lin.weight.data, layer.bias.data = weight[r].T, bias[r, 0]
        first = nn.functional.prelu(layers[0](x, data.edge_index), weights[2][r, 0])
        second = layers[1](x, diffusion.indices().flip(0), diffusion.values())
        second = nn.functional.prelu(second, weights[5][r, 0])
        torch.testing.assert_close(embedded[r], (first + second).detach(), rtol=1e-4, atol=1e-5)


def test_edge_weights_are_in_both_views() -> None:
    data, x = weighted(toy()), row_normalized(toy().x)
    task = pretext_task(SETTINGS, data)
    weights = moved(task.initial([3]))
    P = dense_adjacency(data)
    S = 0.2 * torch.linalg.inv(torch.eye(40) - 0.8 * P)
    first, second = (
        nn.functional.prelu(view @ x @ weight[0] + bias[0], slope[0, 0])
        for view, (weight, bias, slope) in ((P, weights[:3]), (S, weights[3:6]))
    )
    torch.testing.assert_close(task.embed(weights)[0], first + second, rtol=1e-4, atol=1e-5)
    plain = pretext_task(SETTINGS, toy())
    for mine, theirs in zip(task.views, plain.views, strict=True):
        assert (dense(mine) - dense(theirs)).abs().max() > 0.1


def test_an_alpha_too_small_for_float32_is_refused() -> None:
    with pytest.raises(InputError, match=r"alpha = 0.0001: must lie between 0.001 and 1"):
        SETTINGS.replace(alpha=1e-4)


def test_a_window_that_holds_the_graph_is_taken_once() -> None:
    task = pretext_task(SETTINGS.replace(window=2000, windows=4), toy())
    assert (task.size, task.count) == (40, 1)


def normalized_of(data: GraphRecord) -> Tensor:
    return normalized_adjacency(data.edge_index, data.num_nodes, data.get("edge_weight"))


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
    S = personalized_pagerank(normalized_of(data), alpha)
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
    S = personalized_pagerank(normalized_of(data), alpha)
    torch.testing.assert_close(S.double(), expected, rtol=1e-3, atol=1e-4)


def test_edge_weights_that_agree_both_ways_are_symmetric() -> None:
    for data, symmetric in ((toy(), True), (weighted(toy()), True), (odd_graph(), False)):
        assert is_symmetric(to_scipy(normalized_of(data))) == symmetric


@pytest.mark.parametrize("edge", [[[0], [1]], [[1], [0]]])
def test_pagerank_flows_along_an_edge_and_not_against_it(edge: list[list[int]]) -> None:
    (source,), (target,) = edge
    S = personalized_pagerank(normalized_adjacency(torch.tensor(edge), 2), 0.2)
    assert S[target, source] > 0.1
    assert S[source, target] == 0


def test_sparsified_keeps_about_as_many_entries_as_there_are_edges() -> None:
    data = toy()
    S = personalized_pagerank(normalized_of(data), 0.2)
    sparse = sparsified(S, data.edge_index.shape[1]).csr.to_dense()
    counts = {epsilon: int((epsilon <= S).sum()) for epsilon in EPSILONS}
    epsilon = min(counts, key=lambda each: abs(counts[each] - data.edge_index.shape[1]))
    for column in range(40):
        kept = [float(value) if value >= epsilon else 0.0 for value in S[:, column]]
        low, high = min(kept), max(kept)
        expected = torch.tensor([(value - low) / (high - low) for value in kept])
        torch.testing.assert_close(sparse[:, column], expected)


def test_too_large_a_graph_is_refused() -> None:
    with pytest.raises(InputError, match=r"num_nodes = 50000: must be at most 30000"):
        personalized_pagerank(normalized_adjacency(torch.empty(2, 0, dtype=torch.long), 50_000), 0.2)
