"""Who learns, who judges, who is held out: stratified by class, drawn by a seed."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from graphpartner.system.errors import InputError

FOLDS = 5
TEST_AT_MOST = 5000
CROSS_VALIDATE_BELOW = 300
CROSS_VALIDATE_BELOW_PER_CLASS = 30


@dataclass(frozen=True)
class Fold:
    """One way to learn from the labelled nodes: some to learn from, some to stop and judge by; indices."""

    train: Tensor
    val: Tensor


def is_few(y: Tensor) -> bool:
    """Whether a held-out part would be too small to say much, or would be missed in training."""
    count = torch.bincount(y[y >= 0])
    return int(count.sum()) < max(CROSS_VALIDATE_BELOW, CROSS_VALIDATE_BELOW_PER_CLASS * count.numel())


def fold_parts(y: Tensor, nodes: Tensor, count: int, seed: int) -> list[Tensor]:
    """These nodes in ``count`` parts, every class spread evenly, the rest of each class going to the smallest parts."""
    chosen: list[list[int]] = [[] for _ in range(count)]
    for c in torch.unique(y[nodes]).tolist():
        members = nodes[y[nodes] == c].numpy()
        shuffled = np.random.Generator(np.random.PCG64([seed, c])).permutation(members)
        order = np.argsort([len(part) for part in chosen], kind="stable")
        for place, node in enumerate(shuffled):
            chosen[order[place % count]].append(int(node))
    return [torch.tensor(sorted(part), dtype=torch.int64) for part in chosen]


def folds(y: Tensor, nodes: Tensor, seed: int, count: int = FOLDS) -> list[Fold]:
    """Every part of these nodes once to judge by, the others to learn from; no fold without both."""
    count = min(count, nodes.numel())
    if count < 2:
        raise InputError(f"{nodes.numel()} labelled nodes to learn from: there must be at least 2")
    made = [part for part in fold_parts(y, nodes, count, seed) if part.numel()]
    return [Fold(torch.cat([other for other in made if other is not part]), part) for part in made]


def hold_out(y: Tensor, nodes: Tensor, seed: int) -> tuple[Tensor, Tensor]:
    """(kept, held out): a fifth of the nodes, at most ``TEST_AT_MOST``, every class alike."""
    pieces = max(5, -(-nodes.numel() // TEST_AT_MOST))
    held, *kept = fold_parts(y, nodes, pieces, seed)
    return torch.cat(kept).sort().values, held
