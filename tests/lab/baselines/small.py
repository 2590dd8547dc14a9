"""A small graph with everything that goes wrong easily, and models on it."""

from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from graphpartner.lab.baselines.baseline import Baseline, Weights
from graphpartner.lab.baselines.catalogue import SUPERVISED
from graphpartner.lab.baselines.layouts import BaselineGraph
from graphpartner.lab.baselines.run_dropout import InitialWeights

CPU = torch.device("cpu")


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
    """The edges as PyTorch Geometric's layers must get them: each once, no self-loop."""
    edge_index = data.edge_index[:, data.edge_index[0] != data.edge_index[1]]
    return torch.unique(edge_index, dim=1)


def built(name: str, data: Data, seeds: list[int], **changes: Any) -> tuple[Baseline, Weights]:
    """A model and its initial weights."""
    settings = SUPERVISED[name].Settings().replace(**({"features": "raw"} | changes))
    model = SUPERVISED[name](BaselineGraph(data, settings.features, CPU), settings)
    return model, {key: weight.value for key, weight in model.weights(InitialWeights(seeds, CPU)).items()}


def weighted(data: Data, seed: int = 0) -> Data:
    """The same graph with edge weights; those of an edge and its reverse agree."""
    size = torch.rand(data.num_nodes, generator=torch.Generator().manual_seed(seed)) + 0.5
    data.edge_weight = size[data.edge_index].prod(0) ** 3
    return data


def dense_entries(data: Data) -> Tensor:
    """A + I as a dense matrix; rows receive."""
    A, (source, target) = torch.zeros(data.num_nodes, data.num_nodes), data.edge_index
    if (weight := data.get("edge_weight")) is None:
        A[target, source] = 1
    else:
        A.index_put_((target, source), weight, accumulate=True)
    return A.fill_diagonal_(1)


def dense_adjacency(data: Data) -> Tensor:
    """D̃^-½ (A + I) D̃^-½ as a dense matrix; rows receive."""
    return normalized(dense_entries(data))


def normalized(A: Tensor, kind: str = "symmetric") -> Tensor:
    """D^-½ A D^-½, or D^-1 A where the kind is row."""
    if kind == "row":
        return A / A.sum(1)[:, None]
    root = A.sum(1).rsqrt()
    return root[:, None] * A * root
