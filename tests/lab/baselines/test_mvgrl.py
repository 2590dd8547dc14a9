import pytest
import torch
from torch import Tensor, nn
from torch_geometric.nn import GCNConv

from graphpartner.graph.adjacency import row_normalized
from graphpartner.kernels import draws
from graphpartner.kernels.spmm import SparseMatrix
from graphpartner.lab.baselines.mvgrl import MVGRL
from graphpartner.system.errors import InputError
from tests.lab.baselines.small import dense_adjacency, weighted
from tests.lab.baselines.test_dgi import moved
from tests.training.graphs import toy

CPU = torch.device("cpu")
SETTINGS = MVGRL(hidden_channels=32, window=15, windows=3)


def dense(view: SparseMatrix | Tensor) -> Tensor:
    return view if isinstance(view, Tensor) else view.csr.to_dense()


@pytest.mark.parametrize("sparsify", [False, True])
def test_loss_equals_a_loop_over_windows(sparsify: bool, kernels: str) -> None:
    data = toy()
    objective = SETTINGS.replace(sparsify=sparsify).objective(data, CPU)
    assert isinstance(objective.views[1], SparseMatrix) == sparsify
    weights = moved(objective.initial([3, 4]))
    drawn = objective.draw({stream: draws.keys([3, 4], stream, 1) for stream in ("negatives", "input")})
    loss, x = objective.loss(weights, drawn), row_normalized(data.x)
    assert drawn[0].shape == (2, 3)
    assert 0 <= drawn[0].min() <= drawn[0].max() <= 25
    for r in range(2):
        judge = nn.Bilinear(32, 32, 1)
        judge.weight.data, judge.bias.data = weights[6][r][None], weights[7][r, 0]
        logits, wanted = [], []
        for start in drawn[0][r].tolist():
            part = slice(start, start + 15)
            embedded = []  # true and shuffled, by view
            for view, (weight, bias, slope) in zip(objective.views, (weights[:3], weights[3:6]), strict=True):
                A = dense(view)[part, part]
                pair = x[part], x[part][drawn[1][r]]
                embedded.append([nn.functional.prelu(A @ f @ weight[r] + bias[r], slope[r, 0]) for f in pair])
            about = [true.mean(0).sigmoid().expand(15, -1).contiguous() for true, _ in embedded]
            for own, other in ((0, 1), (1, 0)):
                for right, H in zip((1.0, 0.0), embedded[own], strict=True):
                    logits.append(judge(H, about[other]).squeeze(1))
                    wanted.append(torch.full((15,), right))
        expected = nn.BCEWithLogitsLoss()(torch.cat(logits), torch.cat(wanted)).detach()
        torch.testing.assert_close(loss[r], expected, rtol=1e-5, atol=1e-6)


def test_sparse_and_dense_views_give_the_same_products_and_gradients(kernels: str) -> None:
    objective = SETTINGS.objective(toy(), CPU)
    sparse = objective.views[0]
    start = torch.tensor([[0, 7, 25], [3, 3, 11]])
    H = torch.randn(2, 3, 15, 33, requires_grad=True)
    factor = torch.randn(2, 3, 15, 33)
    products = [objective.within(view, H, start) for view in (sparse, dense(sparse))]
    torch.testing.assert_close(*products, rtol=1e-4, atol=1e-5)
    gradients = [torch.autograd.grad((product * factor).sum(), H)[0] for product in products]
    torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-5)


def test_embedding_is_the_sum_of_two_gcns() -> None:
    data = toy()
    objective = SETTINGS.objective(data, CPU)
    weights = moved(objective.initial([3, 4]))
    embedded, x = objective.embed(weights), row_normalized(data.x)
    diffusion = dense(objective.views[1]).to_sparse()
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
    objective = SETTINGS.objective(data, CPU)
    weights = moved(objective.initial([3]))
    P = dense_adjacency(data)
    S = 0.2 * torch.linalg.inv(torch.eye(40) - 0.8 * P)
    first, second = (
        nn.functional.prelu(view @ x @ weight[0] + bias[0], slope[0, 0])
        for view, (weight, bias, slope) in ((P, weights[:3]), (S, weights[3:6]))
    )
    torch.testing.assert_close(objective.embed(weights)[0], first + second, rtol=1e-4, atol=1e-5)
    plain = SETTINGS.objective(toy(), CPU)
    for mine, theirs in zip(objective.views, plain.views, strict=True):
        assert (dense(mine) - dense(theirs)).abs().max() > 0.1


def test_an_alpha_too_small_for_float32_is_refused() -> None:
    with pytest.raises(InputError, match=r"alpha = 0.0001: must lie between 0.001 and 1"):
        SETTINGS.replace(alpha=1e-4)


def test_a_window_that_holds_the_graph_is_taken_once() -> None:
    objective = SETTINGS.replace(window=2000, windows=4).objective(toy(), CPU)
    assert (objective.size, objective.count) == (40, 1)
