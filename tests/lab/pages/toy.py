"""Graphs small enough to count by hand."""

import torch
from torch import Tensor
from torch_geometric.data import Data


def star(labels: list[int]) -> Data:
    """Node 0 in the middle, all nodes alike in features; enhancement would join every pair of leaves."""
    n = len(labels)
    hub, leaf = torch.zeros(n - 1, dtype=torch.long), torch.arange(1, n)
    edges = torch.cat([torch.stack([hub, leaf]), torch.stack([leaf, hub])], 1)
    return Data(x=torch.ones(n, 2), edge_index=edges, y=torch.tensor(labels), num_classes=max(labels) + 1)


def everyone(data: Data) -> Tensor:
    return torch.ones(data.num_nodes, dtype=torch.bool)


def rings(n: int = 24) -> Data:
    """Two rings of n nodes, one a class, with noisy features that tell them apart, and a split."""
    generator = torch.Generator().manual_seed(0)
    node = torch.arange(2 * n)
    following = torch.where(node % n == n - 1, node - n + 1, node + 1)
    y = (node >= n).long()
    x = (torch.rand(2 * n, 8, generator=generator) < 0.3).float()
    x[node, y] = 1
    data = Data(x=x, y=y, edge_index=torch.cat([torch.stack([node, following]), torch.stack([following, node])], 1))
    data.train_mask, data.val_mask, data.test_mask = node % 6 == 0, node % 6 == 1, node % 6 > 1
    data.num_classes = 2
    return data
