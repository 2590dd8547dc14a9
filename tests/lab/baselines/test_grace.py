import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import GCNConv

from graphpartner.graph.adjacency import row_normalized
from graphpartner.kernels import draws
from graphpartner.kernels.dropout import Dropout, Rate
from graphpartner.lab.baselines.grace import DroppedEdges, GRACESettings
from tests.kernels.test_nt_xent import slow
from tests.lab.baselines.graphs import dense_adjacency, moved, pretext_task, weighted
from tests.training.graphs import toy

SETTINGS = GRACESettings(hidden_channels=32, projection_channels=20)


def stays(edge_index: Tensor, key: Tensor, rate: float, n: int) -> Tensor:
    """Return which edges one replica keeps."""
    source, target = edge_index
    return Dropout(key[None], Rate(torch.tensor([rate]))).mask((target * n + source).to(torch.int32))[0] > 0


def left(edge_index: Tensor, key: Tensor, rate: float, n: int) -> Tensor:
    """Return the edges that one replica keeps."""
    return edge_index[:, stays(edge_index, key, rate, n)]


def encoder(weights: tuple[Tensor, ...], r: int, activation: str) -> nn.Module:
    class Encoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList([GCNConv(24, 64), GCNConv(64, 32)])
            for layer, (weight, bias) in zip(self.layers, (weights[:2], weights[2:4]), strict=True):
                layer.lin.weight.data, layer.bias.data = weight[r].T, bias[r, 0]
            self.slope = weights[-1][r, 0] if activation == "prelu" else torch.zeros(1)

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            for layer in self.layers:
                x = F.prelu(layer(x, edge_index), self.slope)
            return x

    return Encoder()


@pytest.mark.parametrize("rate", [0.0, 0.4])
def test_dropped_edges_are_those_of_a_smaller_graph(rate: float, kernels: str) -> None:
    data = toy()
    n = data.num_nodes
    task = pretext_task(SETTINGS, data)
    key = draws.keys([5, 6], "edges", 1)[0]
    H = torch.randn(2, n, 40, requires_grad=True)
    factor = torch.randn(2, n, 40)
    product = DroppedEdges(task.graph.A, key, rate) @ H
    gradient = torch.autograd.grad((product * factor).sum(), H)[0]
    for r in range(2):
        edges = left(data.edge_index, key[r], rate, n) if rate else data.edge_index
        assert abs(edges.shape[1] / data.edge_index.shape[1] - (1 - rate)) < 0.15
        layer = GCNConv(40, 40, bias=False)
        layer.lin.weight.data = torch.eye(40)
        alone = H[r].detach().requires_grad_()
        expected = layer(alone, edges)
        torch.testing.assert_close(product[r], expected, rtol=1e-4, atol=1e-5)
        by_alone = torch.autograd.grad((expected * factor[r]).sum(), alone)[0]
        torch.testing.assert_close(gradient[r], by_alone, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("rate", [0.0, 0.4])
def test_edge_weights_are_in_the_views_and_in_the_embedding(rate: float, kernels: str) -> None:
    data = weighted(toy())
    task = pretext_task(SETTINGS, data)
    torch.testing.assert_close(task.graph.P.csr.to_dense(), dense_adjacency(data))
    assert (dense_adjacency(data) - dense_adjacency(toy())).abs().max() > 0.1
    n, key = data.num_nodes, draws.keys([5], "edges", 1)[0]
    H = torch.randn(1, n, 40)
    if rate:
        there = stays(data.edge_index, key[0], rate, n)
        data.edge_index, data.edge_weight = data.edge_index[:, there], data.edge_weight[there]
    product = DroppedEdges(task.graph.A, key, rate) @ H
    torch.testing.assert_close(product[0], dense_adjacency(data) @ H[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("activation", ["relu", "prelu"])
def test_loss_and_embedding_equal_layers_of_pytorch_geometric(activation: str) -> None:
    data, settings = toy(), SETTINGS.replace(activation=activation)
    task = pretext_task(settings, data)
    weights = moved(task.initial([3, 4]))
    drawn = task.draw({stream: draws.keys([3, 4], stream, 2) for stream in ("edges", "input")})
    loss, embedded, x = task.loss(weights, drawn), task.embed(weights), row_normalized(data.x)
    for r in range(2):
        encode = encoder(weights, r, activation)
        torch.testing.assert_close(embedded[r], F.normalize(encode(x, data.edge_index)).detach(), rtol=1e-4, atol=1e-5)
        projected = []
        for key, kept, rate in zip(drawn[:2], drawn[2:], (settings.drop_edges1, settings.drop_edges2), strict=True):
            z = encode(x * kept[r].T, left(data.edge_index, key[r], rate, data.num_nodes))
            z = F.elu(z @ weights[4][r] + weights[5][r]) @ weights[6][r] + weights[7][r]
            projected.append(z.detach())
        torch.testing.assert_close(loss[r], slow(*projected, settings.temperature), rtol=1e-4, atol=1e-5)


def test_views_differ_and_drop_their_shares() -> None:
    data = toy(n=12, d=4000)
    task = pretext_task(SETTINGS.replace(drop_columns1=0.3, drop_columns2=0.0), data)
    first, second, kept, all_kept = task.draw({s: draws.keys([1], s, 2) for s in ("edges", "input")})
    assert not torch.equal(first, second)
    assert kept.float().mean().item() == pytest.approx(0.7, abs=0.03)
    assert all_kept.all()


def test_initial_weights_are_those_of_torch_layers() -> None:
    weights = pretext_task(SETTINGS.replace(projection_channels=200), toy()).initial([0, 1])
    reference = nn.Linear(32, 200)
    assert weights[4].abs().max() <= 32**-0.5
    assert abs(weights[4].std() / reference.weight.std() - 1) < 0.1
    assert abs(weights[5].std() / reference.bias.std() - 1) < 0.25
    assert weights[1].abs().max() == weights[3].abs().max() == 0
    assert len({float(weight[0].flatten()[0]) for weight in (weights[0], weights[2], *weights[4:])}) == 6
