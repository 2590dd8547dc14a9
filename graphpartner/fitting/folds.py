"""Folds for cross-validation and nodes held out for testing: stratified by class, drawn by a seed."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from graphpartner.system.errors import InputError

FOLDS = 5
MAX_TEST = 5000
CROSS_VALIDATE_BELOW = 300
CROSS_VALIDATE_BELOW_PER_CLASS = 30


@dataclass(frozen=True)
class Fold:
    """Indices of training nodes, and of validation nodes for early stopping and for choosing."""

    train: Tensor
    val: Tensor


def is_few(y: Tensor) -> bool:
    """Return whether labels are too few to hold some out: they would estimate little, and be missed in training."""
    count = torch.bincount(y[y >= 0])
    return int(count.sum()) < max(CROSS_VALIDATE_BELOW, CROSS_VALIDATE_BELOW_PER_CLASS * count.numel())


def fold_parts(y: Tensor, nodes: Tensor, count: int, seed: int) -> list[Tensor]:
    """Split nodes into ``count`` parts, every class evenly; the rest of each class goes to the smallest parts."""
    parts: list[list[int]] = [[] for _ in range(count)]
    for c in torch.unique(y[nodes]).tolist():
        members = nodes[y[nodes] == c].numpy()
        shuffled = np.random.Generator(np.random.PCG64([seed, c])).permutation(members)
        order = np.argsort([len(part) for part in parts], kind="stable")
        for place, node in enumerate(shuffled):
            parts[order[place % count]].append(int(node))
    return [torch.tensor(sorted(part), dtype=torch.int64) for part in parts]


def folds(y: Tensor, nodes: Tensor, seed: int, count: int = FOLDS) -> list[Fold]:
    """Return folds in which every part of these nodes is the validation set once, and the others the training set."""
    count = min(count, nodes.numel())
    if count < 2:
        raise InputError(f"{nodes.numel()} labelled nodes to learn from: there must be at least 2")
    parts = [part for part in fold_parts(y, nodes, count, seed) if part.numel()]
    return [Fold(torch.cat([other for other in parts if other is not part]), part) for part in parts]


def hold_out(y: Tensor, nodes: Tensor, seed: int) -> tuple[Tensor, Tensor]:
    """Return the nodes kept and those held out: a fifth of every class, ``MAX_TEST`` nodes at most."""
    pieces = max(5, -(-nodes.numel() // MAX_TEST))
    held, *kept = fold_parts(y, nodes, pieces, seed)
    return torch.cat(kept).sort().values, held
