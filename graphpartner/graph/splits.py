"""Splits into training, validation and test nodes: a number of nodes per class, drawn by a seed."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from graphpartner.graph.checks import check_labels
from graphpartner.graph.record import GraphRecord
from graphpartner.system.errors import InputError


class Split(NamedTuple):
    """Three boolean masks over the nodes, [n] for one split or [R, n] for R of them."""

    train_mask: Tensor
    val_mask: Tensor
    test_mask: Tensor


def per_class_split(y: Tensor, train: int = 20, val: int = 30, seed: int = 0) -> Split:
    """Draw a random split: ``train`` and ``val`` nodes per class, and all other labelled nodes for testing.

    The draw of a class depends on the seed, the class and its own nodes only.

    Args:
        y: [n], the class of every node; a node with −1 is in no mask.
        train: number of training nodes per class.
        val: number of validation nodes per class.
        seed: an integer ≥ 0; the same seed gives the same split on every machine.

    Raises:
        InputError: a class has fewer than train + val + 1 nodes, or an argument is out of range.
    """
    for name, value, least in (("train", train, 1), ("val", val, 1), ("seed", seed, 0)):
        if value < least:
            raise InputError(f"{name} = {value}: must be at least {least}")
    y = torch.as_tensor(y)
    check_labels(y, y.numel())
    labels = y.detach().cpu().numpy()
    if not (labels >= 0).any():
        raise InputError("y holds no label: must hold at least one, to be split")
    masks = np.zeros((3, labels.size), dtype=bool)
    for c in range(labels.max(initial=-1) + 1):
        members = np.flatnonzero(labels == c)
        if members.size < train + val + 1:
            raise InputError(
                f"y holds {members.size} nodes of class {c}: must hold at least {train + val + 1}, "
                f"{train} for training, {val} for validation and one for testing"
            )
        shuffled = np.random.Generator(np.random.PCG64([seed, c])).permutation(members)
        for mask, chosen in zip(masks, np.split(shuffled, [train, train + val]), strict=True):
            mask[chosen] = True
    return Split(*torch.from_numpy(masks).to(y.device))


def per_class_splits(y: Tensor, seeds: Iterable[int] = range(10), train: int = 20, val: int = 30) -> Split:
    """Draw one :func:`per_class_split` per seed, stacked to masks [R, n]: row r is the split of replica r."""
    splits = [per_class_split(y, train, val, seed) for seed in seeds]
    if not splits:
        raise InputError("seeds is empty: must hold at least one seed")
    return Split(*(torch.stack(masks) for masks in zip(*splits, strict=True)))


def with_split(data: GraphRecord, seeds: int | Iterable[int]) -> GraphRecord:
    """Give a graph without a public split random ones: masks [n] for one seed, [R, n] for several; return it."""
    if data.get("train_mask") is None:
        split = per_class_split(data.y, seed=seeds) if isinstance(seeds, int) else per_class_splits(data.y, seeds)
        data.train_mask, data.val_mask, data.test_mask = split
    return data
