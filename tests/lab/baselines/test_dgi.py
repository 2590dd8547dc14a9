import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch_geometric.nn import GCNConv

from graphpartner.graph.adjacency import row_normalized
from graphpartner.kernels import draws
from graphpartner.lab.baselines.dgi import (
    DGISettings,
    bilinear_weights,
    discrimination_loss,
    scores,
    summary,
    take_rows,
)
from graphpartner.system.errors import InputError
from tests.lab.baselines.graphs import moved, pretext_task
from tests.training.graphs import toy

SETTINGS = DGISettings(hidden_channels=40)


@pytest.mark.parametrize("form", ["row", "raw"])
def test_embedding_is_the_gcn_of_pytorch_geometric(form: str, kernels: str) -> None:
    data = toy()
    task = pretext_task(SETTINGS.replace(features=form), data)
    weights = moved(task.initial([3, 4]))
    embedded = task.embed(weights)
    x = row_normalized(data.x) if form == "row" else data.x
    for r in range(2):
        layer, activate = GCNConv(24, 40), nn.PReLU()
        layer.lin.weight.data, layer.bias.data = weights[0][r].T, weights[1][r, 0]
        activate.weight.data = weights[2][r, 0]
        torch.testing.assert_close(embedded[r], activate(layer(x, data.edge_index)), rtol=1e-4, atol=1e-5)


def test_loss_equals_its_definition_on_shuffled_features() -> None:
    data = toy()
    task = pretext_task(SETTINGS, data)
    weights = moved(task.initial([3, 4]))
    keys = {"negatives": draws.keys([3, 4], "negatives", 1)}
    drawn = task.draw(keys)
    loss = task.loss(weights, drawn)
    for r in range(2):
        order = drawn[0][r]
        assert sorted(order.tolist()) == list(range(data.num_nodes))
        layer, activate, discriminator = GCNConv(24, 40), nn.PReLU(), nn.Bilinear(40, 40, 1)
        layer.lin.weight.data, layer.bias.data = weights[0][r].T, weights[1][r, 0]
        activate.weight.data = weights[2][r, 0]
        discriminator.weight.data, discriminator.bias.data = weights[3][r][None], weights[4][r, 0]
        x = row_normalized(data.x)
        true, false = (activate(layer(features, data.edge_index)) for features in (x, x[order]))
        summaries = true.mean(0).sigmoid().expand_as(true).contiguous()
        logits = torch.cat([discriminator(true, summaries), discriminator(false, summaries)]).squeeze(1)
        labels = torch.cat([torch.ones(40), torch.zeros(40)])
        torch.testing.assert_close(loss[r], nn.BCEWithLogitsLoss()(logits, labels).detach())
    assert not torch.equal(drawn[0][0], drawn[0][1])


def test_wrong_settings_are_named() -> None:
    with pytest.raises(InputError, match="hidden_channels = 0: must lie between"):
        DGISettings(hidden_channels=0)
    with pytest.raises(InputError, match="unknown setting 'width'"):
        DGISettings().replace(width=3)


@settings(max_examples=25)
@given(st.integers(0, 10_000), st.integers(1, 4), st.integers(1, 6), st.integers(1, 5))
def test_loss_of_every_replica_equals_torch_modules(seed: int, replicas: int, n: int, width: int) -> None:
    torch.manual_seed(seed)
    true, false = torch.randn(2, replicas, n, width, dtype=torch.float64)
    bilinear = torch.randn(replicas, width, width, dtype=torch.float64)
    bias = torch.randn(replicas, 1, 1, dtype=torch.float64)
    s = summary(true)
    loss = discrimination_loss(scores(true, bilinear, bias, s), scores(false, bilinear, bias, s))
    for r in range(replicas):
        discriminator = nn.Bilinear(width, width, 1).double()
        discriminator.weight.data, discriminator.bias.data = bilinear[r][None], bias[r, 0]
        summaries = torch.sigmoid(true[r].mean(0)).expand(n, -1).contiguous()
        logits = torch.cat([discriminator(true[r], summaries), discriminator(false[r], summaries)]).squeeze(1)
        labels = torch.cat([torch.ones(n), torch.zeros(n)]).double()
        torch.testing.assert_close(loss[r], nn.BCEWithLogitsLoss()(logits, labels).detach())


def test_rows_of_every_replica_and_their_gradient() -> None:
    H = torch.randn(3, 5, 2, requires_grad=True)
    index = torch.tensor([[4, 0, 1, 2, 3], [0, 0, 1, 4, 4], [3, 2, 1, 0, 4]])
    rows = take_rows(H, index)
    factor = torch.randn(3, 5, 2)
    expected = torch.zeros(3, 5, 2)
    for r in range(3):
        assert torch.equal(rows[r], H[r, index[r]])
        for place, row in enumerate(index[r].tolist()):
            expected[r, row] += factor[r, place]
    torch.testing.assert_close(torch.autograd.grad((rows * factor).sum(), H)[0], expected)


def test_bilinear_form_starts_as_in_torch() -> None:
    drawn = bilinear_weights(draws.keys([0, 1], "weight2", 1)[0], 64)
    reference = nn.init.xavier_uniform_(torch.empty(1, 64, 64))
    assert drawn.shape == (2, 64, 64)
    assert abs(drawn.std() / reference.std() - 1) < 0.05
    assert drawn.abs().max() <= (6 / (64 * 64 + 64)) ** 0.5
    assert not torch.equal(drawn[0], drawn[1])
