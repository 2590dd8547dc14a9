"""What speed is compared with, written plainly: GPNN as a loop, other models from PyG's layers, a join by SciPy."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import APPNP, GCN2Conv, GCNConv

from graphpartner.enhance.blocks import join_blocks
from graphpartner.enhance.features import read_features
from graphpartner.enhance.join import attribute_graph
from graphpartner.enhance.mixture import enhanced_adjacency
from graphpartner.enhance.rule import Rule
from graphpartner.enhance.scipy_join import scipy_join
from graphpartner.graph.adjacency import adjacency, neighbor_mean, normalized_adjacency
from graphpartner.graph.record import GraphRecord
from graphpartner.model.metrics import accuracy
from graphpartner.training.prepared import count_classes
from graphpartner.training.settings import Settings


class PlainGPNN:
    """One run of GPNN the way one would write it first: dense features, CSR products, Adam, one run at a time.

    Settings, losses and stopping rule are those of the engine.
    """

    def __init__(self, data: GraphRecord, settings: Settings, seed: int, device: torch.device) -> None:
        torch.manual_seed(seed)
        s = self.settings = settings
        attribute = attribute_graph(data.x, data.edge_index, s.k, s.threshold) if s.beta < 1 else None
        self.A = enhanced_adjacency(attribute, data.edge_index, data.num_nodes, s.beta).to(device)
        self.mean = neighbor_mean(data.edge_index, data.num_nodes).to(device)
        x = data.x / data.x.sum(1, keepdim=True).clamp(min=1e-12) if s.features == "row" else data.x
        self.x, self.y = x.to(device), data.y.to(device)
        self.train, self.val, self.test = (
            (mask if mask.dim() == 1 else mask[0]).to(device)
            for mask in (data.train_mask, data.val_mask, data.test_mask)
        )
        self.first = nn.Linear(data.x.shape[1], s.hidden_channels, bias=False).to(device)
        self.second = nn.Linear(s.hidden_channels, count_classes(data), bias=False).to(device)
        nn.init.xavier_uniform_(self.first.weight)
        nn.init.xavier_uniform_(self.second.weight)
        groups = [(self.first, s.decay1), (self.second, s.decay2)]
        self.optimizer = torch.optim.Adam(
            [{"params": layer.parameters(), "weight_decay": decay} for layer, decay in groups], lr=s.lr
        )

    def forward(self, training: bool) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """Return logits, both branches' logits, H^(1) and H^(l+1)."""
        s = self.settings
        hidden = torch.relu(self.first(F.dropout(self.x, s.input_dropout, training)))
        initial = F.dropout(hidden, s.dropout, training)
        partner = F.dropout(hidden, s.dropout, training) if s.separate_dropout else initial
        smoothed = initial
        for _ in range(s.num_steps):
            smoothed = self.A @ smoothed
        mlp, gcn = self.second(partner), self.second(smoothed)
        return s.alpha * mlp + (1 - s.alpha) * gcn, mlp, gcn, initial, smoothed

    def epoch(self) -> float:
        """Train for one step and return the validation loss."""
        s = self.settings
        self.optimizer.zero_grad()
        logits, mlp, gcn, initial, smoothed = self.forward(True)
        loss = F.cross_entropy(logits[self.train], self.y[self.train])
        T = s.temperature
        divergence = F.kl_div((gcn / T).log_softmax(-1), (mlp / T).log_softmax(-1), log_target=True, reduction="sum")
        loss = loss + s.lambda_rt * T * T * divergence / mlp.numel()
        if s.lambda_cs:
            loss = loss + s.lambda_cs * (s.margin - self.score(initial, smoothed)).clamp(min=0)
        loss.backward()
        self.optimizer.step()
        with torch.no_grad():
            logits = self.forward(False)[0]
            return float(F.cross_entropy(logits[self.val], self.y[self.val]))

    def score(self, initial: Tensor, smoothed: Tensor) -> Tensor:
        """Return the score of Eq. 18, with inner products or cosines."""
        s = self.settings
        if s.score == "cosine":
            initial, smoothed = F.normalize(initial, dim=-1), F.normalize(smoothed, dim=-1)
        negative = smoothed[torch.randint(len(smoothed), (s.num_negatives,), device=smoothed.device)]
        agreement = smoothed if s.positives == "self" else self.mean @ smoothed
        return (initial * agreement).sum(-1).mean() - (initial.mean(0) * negative.mean(0)).sum()

    def fit(self, epochs: int) -> float:
        """Train with early stopping, keep the best weights, and return the test accuracy."""
        best, best_epoch, kept = float("inf"), -1, None
        for epoch in range(epochs):
            loss = self.epoch()
            if loss < best:
                best, best_epoch = loss, epoch
                kept = [layer.weight.detach().clone() for layer in (self.first, self.second)]
            if epoch - best_epoch >= self.settings.patience:
                break
        with torch.no_grad():
            for layer, weight in zip((self.first, self.second), kept or [], strict=False):
                layer.weight.copy_(weight)
            return float(accuracy(self.forward(False)[0], self.y, self.test))


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
        """Return logits."""
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
        """Return logits."""
        hidden = torch.relu(self.first(F.dropout(x, 0.5, self.training), P))
        return self.second(F.dropout(hidden, 0.5, self.training), P)


class AppnpNet(nn.Module):
    """An MLP, 64 wide, and ten steps of personalised propagation."""

    def __init__(self, features: int, classes: int) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(features, 64), nn.Linear(64, classes)
        self.propagate = APPNP(10, 0.1, dropout=0.0, normalize=False)

    def forward(self, x: Tensor, P: Tensor) -> Tensor:
        """Return logits."""
        hidden = torch.relu(self.first(F.dropout(x, 0.5, self.training)))
        return self.propagate(self.second(F.dropout(hidden, 0.5, self.training)), P)


def peer_epoch(name: str, data: GraphRecord, device: torch.device) -> Callable[[], None]:
    """Return a function that runs one epoch, training and validation, of ``gcn``, ``appnp`` or ``gcnii``."""
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


def blockwise_join(data: GraphRecord, k: int = 3, threshold: float = 0.4) -> tuple[np.ndarray, ...]:
    """Return row starts, columns and values of the join by blockwise SciPy, in float64, ties kept."""
    features = read_features(data.x)
    A = adjacency(data.edge_index, features.num_nodes)
    return join_blocks(scipy_join(Rule(features, threshold), A, k, 1024), features.num_nodes)
