import pytest
import torch
from torch import nn
from torch_geometric.nn import GCNConv

from graphpartner.graph.adjacency import row_normalized
from graphpartner.kernels import draws
from graphpartner.lab.baselines.dgi import DGI
from graphpartner.system.errors import InputError
from tests.training.graphs import toy

SETTINGS = DGI(hidden_channels=40)
CPU = torch.device("cpu")


def moved(weights: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
    """Weights as after some training: no bias is zero any more."""
    torch.manual_seed(0)
    return tuple(weight + 0.1 * torch.randn_like(weight) for weight in weights)


@pytest.mark.parametrize("form", ["row", "raw"])
def test_embedding_is_the_gcn_of_pytorch_geometric(form: str, kernels: str) -> None:
    data = toy()
    objective = SETTINGS.replace(features=form).objective(data, CPU)
    weights = moved(objective.initial([3, 4]))
    embedded = objective.embed(weights)
    x = row_normalized(data.x) if form == "row" else data.x
    for r in range(2):
        layer, activate = GCNConv(24, 40), nn.PReLU()
        layer.lin.weight.data, layer.bias.data = weights[0][r].T, weights[1][r, 0]
        activate.weight.data = weights[2][r, 0]
        torch.testing.assert_close(embedded[r], activate(layer(x, data.edge_index)), rtol=1e-4, atol=1e-5)


def test_loss_equals_its_definition_on_shuffled_features() -> None:
    data = toy()
    objective = SETTINGS.objective(data, CPU)
    weights = moved(objective.initial([3, 4]))
    keys = {"negatives": draws.keys([3, 4], "negatives", 1)}
    drawn = objective.draw(keys)
    loss = objective.loss(weights, drawn)
    for r in range(2):
        order = drawn[0][r]
        assert sorted(order.tolist()) == list(range(data.num_nodes))
        layer, activate, judge = GCNConv(24, 40), nn.PReLU(), nn.Bilinear(40, 40, 1)
        layer.lin.weight.data, layer.bias.data = weights[0][r].T, weights[1][r, 0]
        activate.weight.data = weights[2][r, 0]
        judge.weight.data, judge.bias.data = weights[3][r][None], weights[4][r, 0]
        x = row_normalized(data.x)
        true, false = (activate(layer(features, data.edge_index)) for features in (x, x[order]))
        about = true.mean(0).sigmoid().expand_as(true).contiguous()
        logits = torch.cat([judge(true, about), judge(false, about)]).squeeze(1)
        wanted = torch.cat([torch.ones(40), torch.zeros(40)])
        torch.testing.assert_close(loss[r], nn.BCEWithLogitsLoss()(logits, wanted).detach())
    assert not torch.equal(drawn[0][0], drawn[0][1])


def test_wrong_settings_are_named() -> None:
    with pytest.raises(InputError, match="hidden_channels = 0: must lie between"):
        DGI(hidden_channels=0)
    with pytest.raises(InputError, match="unknown setting 'width'"):
        DGI().replace(width=3)
