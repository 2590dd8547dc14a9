"""The forward pass of every baseline: against PyTorch Geometric's layers, or a slow dense version where it has none."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.testing import assert_close
from torch_geometric import nn as pyg
from torch_geometric.data import Data

from graphpartner.lab.baselines.all_baselines import SUPERVISED
from graphpartner.lab.baselines.baseline import NoDropout
from tests.lab.baselines.graphs import built, dense_adjacency, odd_graph, plain_edges

NO_DROPOUT = NoDropout()


@pytest.fixture(params=[0, 1, 2])
def data(request: pytest.FixtureRequest) -> Data:
    return odd_graph(seed=request.param)


def test_mlp(data: Data) -> None:
    model, w = built("mlp", data, [3], hidden_channels=4)
    expected = (data.x @ w["weight1"][0]).relu() @ w["weight2"][0]
    assert_close(model.forward(w, NO_DROPOUT).logits[0], expected)


@pytest.mark.parametrize("layers", [1, 2, 5])
def test_gcn(data: Data, layers: int) -> None:
    model, w = built("gcn", data, [3], hidden_channels=4, layers=layers)
    H, states = data.x, []
    for layer, weight in enumerate(w.values(), 1):
        conv = pyg.GCNConv(*weight[0].shape, bias=False)
        conv.lin.weight.data = weight[0].T
        H = conv(H, plain_edges(data))
        states.append(H if layer == layers else (H := H.relu()))
    out = model.forward(w, NO_DROPOUT)
    assert_close(out.logits[0], H)
    assert len(out.layers) == layers
    for ours, theirs in zip(out.layers, states, strict=True):
        assert_close(ours[0], theirs)


@pytest.mark.parametrize(("layers", "output_heads"), [(1, 2), (2, 1), (2, 3), (4, 2)])
def test_gat(data: Data, layers: int, output_heads: int) -> None:
    model, w = built("gat", data, [3], hidden_channels=4, heads=3, output_heads=output_heads, layers=layers)
    H, states = data.x, []
    for layer in range(layers):
        width, heads, head = model.shape(layer)
        last = layer == layers - 1
        conv = pyg.GATConv(width, head, heads, concat=not last)
        conv.lin.weight.data = w[f"weight{layer + 1}"][0].T
        conv.att_src.data = w[f"source{layer + 1}"][0].reshape(1, heads, head)
        conv.att_dst.data = w[f"target{layer + 1}"][0].reshape(1, heads, head)
        w[f"bias{layer + 1}"].uniform_(-1, 1)
        conv.bias.data = w[f"bias{layer + 1}"][0, 0]
        H = conv(H, plain_edges(data))
        if not last:
            H = F.elu(H)
        states.append(H)
    out = model.forward(w, NO_DROPOUT)
    for ours, theirs in zip(out.layers, states, strict=True):
        assert_close(ours[0], theirs)
    assert_close(out.logits[0], H)


@pytest.mark.parametrize("jump", ["cat", "max"])
@pytest.mark.parametrize("normalization", ["symmetric", "row"])
@pytest.mark.parametrize("self_weight", [False, True])
@pytest.mark.parametrize("name", ["jknet", "jknet-dropedge"])
def test_jknet(data: Data, jump: str, normalization: str, self_weight: bool, name: str) -> None:
    changes = {"jump": jump, "normalization": normalization, "self_weight": self_weight}
    model, w = built(name, data, [3], hidden_channels=4, layers=4, **changes)
    loops = torch.arange(data.num_nodes).repeat(2, 1)

    def convolve(H: Tensor, layer: int) -> Tensor:
        if normalization == "symmetric":
            conv = pyg.GCNConv(*w[f"weight{layer}"][0].shape)
            conv.lin.weight.data = w[f"weight{layer}"][0].T
            conv.bias.data = w[f"bias{layer}"][0, 0]
            out = conv(H, plain_edges(data))
        else:  # the mean over the neighbours and the node itself
            mean = pyg.SimpleConv(aggr="mean")(H, torch.cat([plain_edges(data), loops], 1))
            out = mean @ w[f"weight{layer}"][0] + w[f"bias{layer}"][0]
        return out + H @ w[f"self{layer}"][0] if self_weight else out

    H, states = data.x, []
    for layer in (1, 2, 3):
        states.append(H := convolve(H, layer).relu())
    expected = convolve(pyg.JumpingKnowledge(jump)(states), 4)
    out = model.forward(w, NO_DROPOUT)
    assert_close(out.logits[0], expected)
    assert_close(out.layers[1][0], states[1])


def test_appnp(data: Data) -> None:
    model, w = built("appnp", data, [3], hidden_channels=4, num_steps=7, alpha=0.15)
    H = (data.x @ w["weight1"][0]).relu() @ w["weight2"][0]
    assert_close(model.forward(w, NO_DROPOUT).logits[0], pyg.APPNP(7, 0.15)(H, plain_edges(data)))


@pytest.mark.parametrize("layers", [1, 6])
def test_gcnii(data: Data, layers: int) -> None:
    model, w = built("gcnii", data, [3], hidden_channels=4, layers=layers, alpha=0.2, lam=0.7)
    H = initial = (data.x @ w["weight_in"][0] + w["bias_in"][0]).relu()
    for layer in range(1, layers + 1):
        conv = pyg.GCN2Conv(4, 0.2, 0.7, layer)
        conv.weight1.data = w[f"weight{layer}"][0]
        H = conv(H, initial, plain_edges(data)).relu()
    out = model.forward(w, NO_DROPOUT)
    assert_close(out.layers[-1][0], H)
    assert_close(out.logits[0], H @ w["weight_out"][0] + w["bias_out"][0])


def test_sgc(data: Data) -> None:
    model, w = built("sgc", data, [3], num_steps=3)
    conv = pyg.SGConv(5, 3, 3)
    conv.lin.weight.data, conv.lin.bias.data = w["weight"][0].T, w["bias"][0, 0]
    assert_close(model.forward(w, NO_DROPOUT).logits[0], conv(data.x, plain_edges(data)))


def test_dagnn(data: Data) -> None:
    model, w = built("dagnn", data, [3], hidden_channels=4, num_steps=5)
    Z = (data.x @ w["weight1"][0] + w["bias1"][0]).relu() @ w["weight2"][0] + w["bias2"][0]
    expected = torch.zeros_like(Z)
    for k in range(6):
        depth = torch.linalg.matrix_power(dense_adjacency(data), k) @ Z
        for i in range(data.num_nodes):
            retained = torch.sigmoid(depth[i] @ w["weight_score"][0, :, 0] + w["bias_score"][0, 0, 0])
            expected[i] += retained * depth[i]
    assert_close(model.forward(w, NO_DROPOUT).logits[0], expected)


@pytest.mark.parametrize("batch_norm", [False, True])
def test_grand(data: Data, batch_norm: bool) -> None:
    model, w = built("grand", data, [3], hidden_channels=4, num_steps=3, node_dropout=0.3, batch_norm=batch_norm)
    X = 0.7 * sum(torch.linalg.matrix_power(dense_adjacency(data), k) for k in range(4)) @ data.x / 4
    layers = []
    for number, width in ((1, 5), (2, 4)):
        norm = torch.nn.BatchNorm1d(width).eval() if batch_norm else torch.nn.Identity()
        if batch_norm:
            for mine, theirs in zip(("scale", "shift", "mean", "variance"), norm.state_dict().values(), strict=False):
                w[f"{mine}{number}"].uniform_(0.5, 2)
                theirs.copy_(w[f"{mine}{number}"][0, 0])
        layers.append(norm)
    hidden = (layers[0](X) @ w["weight1"][0] + w["bias1"][0]).relu()
    expected = layers[1](hidden) @ w["weight2"][0] + w["bias2"][0]
    assert_close(model.forward(w, NO_DROPOUT).logits[0], expected)


@pytest.mark.parametrize("name", SUPERVISED)
def test_replicas_do_not_mix(data: Data, name: str) -> None:
    model, w = built(name, data, [3, 4, 5])
    together = model.forward(w, NO_DROPOUT)
    for replica in range(3):
        alone = model.forward({key: value[replica : replica + 1] for key, value in w.items()}, NO_DROPOUT)
        assert_close(together.logits[replica], alone.logits[0])
        for ours, theirs in zip(together.layers, alone.layers, strict=True):
            assert_close(ours[replica], theirs[0])
