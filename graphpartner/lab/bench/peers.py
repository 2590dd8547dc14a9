"""Other models at their papers' sizes, from PyTorch Geometric's layers: what an epoch of them costs."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import APPNP, GCN2Conv, GCNConv

from graphpartner.graph.adjacency import normalized_adjacency
from graphpartner.graph.record import GraphRecord
from graphpartner.training.prepared import count_classes

# GCNII's best sizes on the three citation graphs, as its paper gives them
GCNII_SIZES: dict[str, dict[str, Any]] = {
    "cora": {"layers": 64, "width": 64, "dropout": 0.6, "theta": 0.5},
    "citeseer": {"layers": 32, "width": 256, "dropout": 0.7, "theta": 0.6},
    "pubmed": {"layers": 16, "width": 256, "dropout": 0.5, "theta": 0.4},
}


class PlainGCNII(nn.Module):
    """A linear layer, L graph convolutions with initial residual and identity mapping, a linear layer."""

    def __init__(self, features: int, classes: int, layers: int, width: int, dropout: float, theta: float) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(features, width), nn.Linear(width, classes)
        self.layers = nn.ModuleList(
            GCN2Conv(width, alpha=0.1, theta=theta, layer=layer + 1, normalize=False) for layer in range(layers)
        )
        self.dropout = dropout

    def forward(self, x: Tensor, P: Tensor) -> Tensor:
        """Logits."""
        start = hidden = torch.relu(self.first(F.dropout(x, self.dropout, self.training)))
        for layer in self.layers:
            hidden = torch.relu(layer(F.dropout(hidden, self.dropout, self.training), start, P))
        return self.last(F.dropout(hidden, self.dropout, self.training))


class PlainGCN(nn.Module):
    """Two graph convolutions, 16 wide, dropout 0.5."""

    def __init__(self, features: int, classes: int) -> None:
        super().__init__()
        self.first = GCNConv(features, 16, normalize=False)
        self.second = GCNConv(16, classes, normalize=False)

    def forward(self, x: Tensor, P: Tensor) -> Tensor:
        """Logits."""
        hidden = torch.relu(self.first(F.dropout(x, 0.5, self.training), P))
        return self.second(F.dropout(hidden, 0.5, self.training), P)


class AppnpNet(nn.Module):
    """An MLP, 64 wide, and ten steps of personalised propagation."""

    def __init__(self, features: int, classes: int) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(features, 64), nn.Linear(64, classes)
        self.propagate = APPNP(10, 0.1, dropout=0.0, normalize=False)

    def forward(self, x: Tensor, P: Tensor) -> Tensor:
        """Logits."""
        hidden = torch.relu(self.first(F.dropout(x, 0.5, self.training)))
        return self.propagate(self.second(F.dropout(hidden, 0.5, self.training)), P)


def peer_epoch(name: str, data: GraphRecord, device: torch.device) -> Callable[[], None]:
    """One epoch, training and validation, of ``gcn``, ``appnp`` or ``gcnii`` on a graph."""
    sizes = data.x.shape[1], count_classes(data)
    models: dict[str, Callable[[], nn.Module]] = {
        "gcn": lambda: PlainGCN(*sizes),
        "appnp": lambda: AppnpNet(*sizes),
        "gcnii": lambda: PlainGCNII(*sizes, **GCNII_SIZES[data.name]),
    }
    model = models[name]().to(device)
    P = normalized_adjacency(data.edge_index, data.num_nodes).to(device)
    x, y, train, val = (tensor.to(device) for tensor in (data.x, data.y, data.train_mask, data.val_mask))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)

    def epoch() -> None:
        model.train()
        optimizer.zero_grad()
        F.cross_entropy(model(x, P)[train], y[train]).backward()
        optimizer.step()
        model.eval()
        with torch.no_grad():
            float(F.cross_entropy(model(x, P)[val], y[val]))

    return epoch
