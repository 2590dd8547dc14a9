"""Who is trained on, validated on and tested on: so many nodes of every class, drawn by a seed."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from graphpartner.graph.record import GraphRecord
from graphpartner.system.errors import InputError


class Split(NamedTuple):
    """Three boolean masks over the nodes, [n] for one split or [R, n] for R of them."""

    train_mask: Tensor
    val_mask: Tensor
    test_mask: Tensor


def per_class_split(y: Tensor, train: int = 20, val: int = 30, seed: int = 0) -> Split:
    """A random split: ``train`` and ``val`` nodes of every class, and all other labelled nodes for testing.

    The draw of a class depends on the seed, the class and its own nodes only.

    Args:
        y: [n], the class of every node; a node with −1 is in no mask.
        train: training nodes of every class.
        val: validation nodes of every class.
        seed: a number ≥ 0; the same seed gives the same split on every machine.

    Raises:
        InputError: a class has fewer than train + val + 1 nodes, or an argument is out of range.
    """
    for name, value, least in (("train", train, 1), ("val", val, 1), ("seed", seed, 0)):
        if value < least:
            raise InputError(f"{name} is {value}, but must be at least {least}.")
    labels = _labels(y)
    masks = np.zeros((3, labels.size), dtype=bool)
    for c in range(labels.max(initial=-1) + 1):
        members = np.flatnonzero(labels == c)
        if members.size < train + val + 1:
            raise InputError(
                f"Class {c} has {members.size} nodes, but {train} for training, {val} for validation and at least one "
                f"for testing need {train + val + 1}; ask for fewer."
            )
        shuffled = np.random.Generator(np.random.PCG64([seed, c])).permutation(members)
        for mask, chosen in zip(masks, np.split(shuffled, [train, train + val]), strict=True):
            mask[chosen] = True
    return Split(*torch.from_numpy(masks).to(torch.as_tensor(y).device))


def per_class_splits(y: Tensor, seeds: Iterable[int] = range(10), train: int = 20, val: int = 30) -> Split:
    """One :func:`per_class_split` a seed, stacked to masks of shape [R, n]: row r is the split of replica r."""
    splits = [per_class_split(y, train, val, seed) for seed in seeds]
    if not splits:
        raise InputError("seeds is empty, but every split needs a seed.")
    return Split(*(torch.stack(masks) for masks in zip(*splits, strict=True)))


def with_split(data: GraphRecord, seeds: int | Iterable[int]) -> GraphRecord:
    """The graph with its public split, else with random ones: masks [n] for one seed, [R, n] for several."""
    if data.get("train_mask") is None:
        split = per_class_split(data.y, seed=seeds) if isinstance(seeds, int) else per_class_splits(data.y, seeds)
        data.train_mask, data.val_mask, data.test_mask = split
    return data


def _labels(y: Tensor) -> np.ndarray:
    """The labels as a NumPy array: one integer ≥ −1 a node."""
    labels = torch.as_tensor(y).detach().cpu().numpy()
    if labels.ndim != 1 or labels.dtype.kind not in "iu":
        raise InputError(f"y has shape {labels.shape} and type {labels.dtype}, but must be one integer a node.")
    if (labels < -1).any():
        node = int(np.flatnonzero(labels < -1)[0])
        raise InputError(f"y is {labels[node]} at node {node}, but a label is a class from 0 on, or −1 for none.")
    if not (labels >= 0).any():
        raise InputError("y has no label at all, so there is nothing to split.")
    return labels
