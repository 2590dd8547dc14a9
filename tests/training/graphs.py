"""A small graph with planted classes."""

import numpy as np
import torch

from graphpartner.graph.record import GraphRecord


def toy(n: int = 40, d: int = 24, classes: int = 3, seed: int = 0) -> GraphRecord:
    """A graph with planted classes; node 0 has no neighbour, node 1 no feature, the last node no label."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % classes
    together = y[:, None] == y[None, :]
    edge = np.triu(rng.random((n, n)) < np.where(together, 0.2, 0.03), 1)
    edge[0] = False
    source, target = np.nonzero(edge)
    edge_index = np.stack([np.concatenate([source, target]), np.concatenate([target, source])])
    word = np.arange(d) % classes
    x = (rng.random((n, d)) < np.where(word[None, :] == y[:, None], 0.35, 0.05)).astype(np.float32)
    x[1] = 0
    order = rng.permutation(n - 1)
    order = order[np.argsort([np.sum(y[order[:i]] == y[order[i]]) for i in range(n - 1)], kind="stable")]
    masks = torch.zeros(3, n, dtype=torch.bool)
    for mask, part in zip(masks, np.split(order, [9, 21]), strict=True):
        mask[part] = True
    masks[2, -1] = True
    y[-1] = -1
    return GraphRecord(
        x=torch.from_numpy(x),
        edge_index=torch.from_numpy(edge_index),
        y=torch.from_numpy(y),
        train_mask=masks[0],
        val_mask=masks[1],
        test_mask=masks[2],
        num_classes=classes,
    )
