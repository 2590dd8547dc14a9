"""A small graph with every special case, and small models on it."""

from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from graphpartner.graph.record import GraphRecord
from graphpartner.lab.baselines.all_baselines import SELF_SUPERVISED, SUPERVISED, train_baseline
from graphpartner.lab.baselines.baseline import Baseline, InitialWeights, Weights
from graphpartner.lab.baselines.dgi import DGISettings
from graphpartner.lab.baselines.grace import GRACESettings
from graphpartner.lab.baselines.mvgrl import MVGRLSettings
from graphpartner.lab.baselines.self_supervised import PretextSettings, PretextTask
from graphpartner.lab.baselines.supervised import BaselineRuns
from graphpartner.training.prepared import DeviceGraph

CPU = torch.device("cpu")
SMALL_SUPERVISED: dict[str, dict[str, Any]] = {
    "mlp": {"hidden_channels": 8},
    "gcn": {"hidden_channels": 8, "layers": 3},
    "gat": {"hidden_channels": 8, "heads": 2, "output_heads": 2, "dropout": 0.3},
    "jknet": {"hidden_channels": 8},
    "jknet-dropedge": {"hidden_channels": 8},
    "appnp": {"hidden_channels": 8, "num_steps": 4},
    "gcnii": {"hidden_channels": 8, "layers": 4},
    "sgc": {},
    "dagnn": {"hidden_channels": 8, "num_steps": 3},
    "grand": {"hidden_channels": 8, "num_steps": 2, "batch_norm": True, "views": 2},
}
SMALL_SELF_SUPERVISED: dict[str, PretextSettings] = {
    "dgi": DGISettings(hidden_channels=16, lr=0.01, epochs=60, patience=5),
    "mvgrl": MVGRLSettings(hidden_channels=16, window=15, windows=2, lr=0.01, epochs=60, patience=4),
    "grace": GRACESettings(hidden_channels=16, projection_channels=8, lr=0.01, epochs=12, activation="prelu"),
}


def odd_graph(n: int = 9, d: int = 5, classes: int = 3, seed: int = 0) -> Data:
    """Directed edges, an edge twice, a self-loop; the last node has no edge."""
    torch.manual_seed(seed)
    edge_index = torch.randint(0, n - 1, (2, 3 * n))
    edge_index = torch.cat([edge_index, edge_index[:, :2], torch.tensor([[1], [1]])], 1)
    masks = torch.zeros(2, n, dtype=torch.bool)
    masks[0, : n // 2], masks[1, n // 2 :] = True, True
    return Data(
        x=torch.rand(n, d) * (torch.rand(n, d) < 0.6),
        edge_index=edge_index,
        y=torch.arange(n) % classes,
        train_mask=masks[0],
        val_mask=masks[1],
        num_classes=classes,
    )


def plain_edges(data: Data) -> Tensor:
    """Return the edges in the form PyTorch Geometric's layers need: each once, no self-loop."""
    edge_index = data.edge_index[:, data.edge_index[0] != data.edge_index[1]]
    return torch.unique(edge_index, dim=1)


def built(name: str, data: Data, seeds: list[int], **changes: Any) -> tuple[Baseline, Weights]:
    """Return a model and its initial weights."""
    settings = SUPERVISED[name].Settings().replace(**({"features": "raw"} | changes))
    model = SUPERVISED[name](DeviceGraph(data, CPU), settings)
    return model, {key: weight.value for key, weight in model.weights(InitialWeights(seeds, CPU)).items()}


def name_of(settings: PretextSettings) -> str:
    """Return the name of the method that has settings of this class."""
    return next(name for name, method in SELF_SUPERVISED.items() if method.Settings is type(settings))


def pretext_task(settings: PretextSettings, data: GraphRecord, device: torch.device | str = CPU) -> PretextTask:
    """Return the loss of a self-supervised baseline on a graph."""
    return SELF_SUPERVISED[name_of(settings)](DeviceGraph(data, torch.device(device)), settings)


def train_with(settings: PretextSettings, data: GraphRecord, seeds: list[int], **options: Any) -> BaselineRuns:
    """Train a self-supervised baseline with exactly these settings."""
    return train_baseline(name_of(settings), data, seeds, "cpu", settings.asdict(), **options)


def moved(weights: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Return weights as after some training: no bias is zero any more."""
    torch.manual_seed(0)
    return tuple(weight + 0.1 * torch.randn_like(weight) for weight in weights)


def weighted(data: Data, seed: int = 0) -> Data:
    """Return the same graph with edge weights; those of an edge and its reverse agree."""
    size = torch.rand(data.num_nodes, generator=torch.Generator().manual_seed(seed)) + 0.5
    data.edge_weight = size[data.edge_index].prod(0) ** 3
    return data


def dense_entries(data: Data) -> Tensor:
    """Return A + I as a dense matrix; rows receive."""
    A, (source, target) = torch.zeros(data.num_nodes, data.num_nodes), data.edge_index
    if (weight := data.get("edge_weight")) is None:
        A[target, source] = 1
    else:
        A.index_put_((target, source), weight, accumulate=True)
    return A.fill_diagonal_(1)


def dense_adjacency(data: Data) -> Tensor:
    """Return D̃^-½ (A + I) D̃^-½ as a dense matrix; rows receive."""
    return normalized(dense_entries(data))


def normalized(A: Tensor, kind: str = "symmetric") -> Tensor:
    """Return D^-½ A D^-½, or D^-1 A where the kind is row."""
    if kind == "row":
        return A / A.sum(1)[:, None]
    root = A.sum(1).rsqrt()
    return root[:, None] * A * root
