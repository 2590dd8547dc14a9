"""What a search may see: training and validation labels, split anew many times, and no other label.

The validation nodes of a split have two offices, and no node has both. One half stops the runs; the other half judges
them. A run is at its best on the nodes that stopped it, and the more so the more runs stand behind it: generation
after generation of teachers does better on the nodes that stop them all, long after it does no better on others
(``scripts/generations.py`` shows both).
"""

import copy

import torch
from torch import Tensor
from torch_geometric.data import Data

from graphpartner.graph.splits import Split, per_class_splits


def development(data: Data, splits: int, first: int = 0) -> Data:
    """The graph with so many development splits, masks [S, n], and every other label taken away.

    Where the graph has a public split, every other split is that one, and for the rest its training and validation
    nodes are pooled and drawn anew: as many training nodes of every class as before, and all others of the pool for
    validation. So a search is judged on the split that counts, but not on that alone. Where the graph has no public
    split, split s is the random split of seed s, of which the training and validation nodes are kept: no run sees a
    label of its own split's test nodes, but a node that one split validates on is a test node of others. Of the
    validation nodes, one half of every class is left in ``val_mask`` and the other is ``judge_mask``. Labels outside of
    all these masks are set to −1, so that nothing that is given this graph can look at them. ``by_class`` says whether
    the validation nodes were drawn class by class, as many of each.

    Args:
        data: a graph as loaded.
        splits: S.
        first: the number of the first split; other numbers are other splits.
    """
    seeds = range(first, first + splits)
    seen = copy.copy(data)
    seen.by_class = data.get("train_mask") is None
    split = per_class_splits(data.y, seeds) if seen.by_class else resplit(data, seeds)
    seen.train_mask = split.train_mask
    seen.judge_mask = halves(split.val_mask, data.y, seeds)
    seen.val_mask = split.val_mask & ~seen.judge_mask
    if "test_mask" in seen:
        del seen.test_mask
    known = (split.train_mask | split.val_mask).any(0)
    seen.y = torch.where(known, data.y, -1)
    seen.num_classes = int(data.y.max()) + 1 if data.get("num_classes") is None else data.num_classes
    return seen


def resplit(data: Data, seeds: range) -> Split:
    """The public split for even seeds; for odd ones its training and validation nodes drawn anew. No test node."""
    pool = data.train_mask | data.val_mask
    counts = torch.bincount(data.y[data.train_mask])
    rows = [data.train_mask if seed % 2 == 0 else some_of_each(pool, data.y, counts, seed) for seed in seeds]
    masks = torch.stack(rows)
    return Split(masks, pool & ~masks, torch.zeros_like(masks))


def halves(masks: Tensor, y: Tensor, seeds: range) -> Tensor:
    """Of every class half of the nodes under each mask [S, n], by seed; of an odd number the smaller half."""
    rows = zip(masks, seeds, strict=True)
    return torch.stack([some_of_each(mask, y, torch.bincount(y[mask]) // 2, seed) for mask, seed in rows])


def some_of_each(mask: Tensor, y: Tensor, counts: Tensor, seed: int) -> Tensor:
    """So many nodes of each class as counts [C] say, drawn from those under a mask [n]."""
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.zeros_like(mask)
    for c in y[mask].unique():
        members = (mask & (y == c)).nonzero().squeeze(-1)
        drawn[members[torch.randperm(members.numel(), generator=generator)[: int(counts[c])]]] = True
    return drawn
