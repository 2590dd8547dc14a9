from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data

from graphpartner.graph.datasets import load_dataset
from graphpartner.graph.splits import per_class_split, per_class_splits, with_split
from graphpartner.system.errors import InputError


@given(
    sizes=st.lists(st.integers(6, 30), min_size=1, max_size=5),
    unlabelled=st.integers(0, 10),
    train=st.integers(1, 3),
    val=st.integers(1, 2),
    seed=st.integers(0, 2**40),
)
@settings(max_examples=60)
def test_every_class_gets_its_share(sizes: list[int], unlabelled: int, train: int, val: int, seed: int) -> None:
    y = torch.tensor([c for c, size in enumerate(sizes) for _ in range(size)] + [-1] * unlabelled)
    split = per_class_split(y, train, val, seed)
    together = split.train_mask.int() + split.val_mask.int() + split.test_mask.int()
    assert torch.equal(together, (y >= 0).int())  # every labelled node once, no other
    for c, size in enumerate(sizes):
        counts = [int((mask & (y == c)).sum()) for mask in split]
        assert counts == [train, val, size - train - val]


def test_masks_and_their_names() -> None:
    y = torch.arange(4).repeat(60)
    split = per_class_split(y)
    train_mask, val_mask, test_mask = split
    assert train_mask is split.train_mask
    assert val_mask is split.val_mask
    assert test_mask is split.test_mask
    assert [int(mask.sum()) for mask in split] == [80, 120, 40]
    assert all(mask.dtype == torch.bool for mask in split)


def test_the_seed_decides() -> None:
    y = torch.arange(4).repeat(60)
    assert torch.equal(per_class_split(y, seed=3).train_mask, per_class_split(y, seed=3).train_mask)
    assert not torch.equal(per_class_split(y, seed=3).train_mask, per_class_split(y, seed=4).train_mask)


def test_the_draw_stays_the_same() -> None:
    """These numbers may never change: published results rest on them."""
    split = per_class_split(torch.zeros(12, dtype=torch.long), train=3, val=2, seed=7)
    assert split.train_mask.nonzero().flatten().tolist() == [4, 6, 10]
    assert split.val_mask.nonzero().flatten().tolist() == [0, 1]


def test_a_class_is_drawn_on_its_own() -> None:
    y = torch.arange(3).repeat(60)
    before = per_class_split(y, seed=5)
    y_after = y.clone()
    y_after[(y == 1).nonzero()[0]] = -1  # one node less in class 1
    after = per_class_split(y_after, seed=5)
    others = y != 1
    assert torch.equal(before.train_mask[others], after.train_mask[others])
    # Classes of the same nodes are not drawn alike: node 3i + c is the i-th of class c.
    assert not torch.equal(before.train_mask[y == 0], before.train_mask[y == 2])


def test_every_node_is_drawn_as_often() -> None:
    counts = sum(per_class_split(torch.zeros(20, dtype=torch.long), 5, 5, s).train_mask.int() for s in range(400))
    assert np.abs(np.asarray(counts) - 100).max() < 40  # 4.6 standard deviations


def test_several_seeds() -> None:
    y = torch.arange(2).repeat(60)
    splits = per_class_splits(y, seeds=[4, 9], train=5, val=6)
    assert splits.train_mask.shape == (2, 120)
    for row, seed in enumerate([4, 9]):
        for stacked, single in zip(splits, per_class_split(y, 5, 6, seed), strict=True):
            assert torch.equal(stacked[row], single)
    assert per_class_splits(y).val_mask.shape == (10, 120)


def test_citeseer() -> None:
    y = load_dataset("citeseer").y
    split = per_class_split(y)
    assert [int(mask.sum()) for mask in split] == [120, 180, 3327 - 15 - 300]


@pytest.mark.parametrize(
    ("y", "arguments", "words"),
    [
        ([0] * 51 + [1] * 50, {}, "y holds 50 nodes of class 1: must hold at least 51"),
        ([0] * 60 + [2] * 60, {}, "y holds 0 nodes of class 1"),
        ([0] * 60, {"train": 0}, "train = 0: must be at least 1"),
        ([0] * 60, {"val": -2}, "val = -2: must be at least 1"),
        ([0] * 60, {"seed": -1}, "seed = -1: must be at least 0"),
        ([0] * 60 + [-2], {}, "y = -2 at node 60: must be a class from 0 on, or −1"),
        ([0.0] * 60, {}, r"y = float32 \[60\]: must be integers"),
        ([[0]] * 60, {}, r"y = int64 \[60, 1\]: must be \[60\], one label per node"),
        ([-1] * 60, {}, "y holds no label"),
    ],
)
def test_wrong_input(y: list[Any], arguments: dict[str, int], words: str) -> None:
    with pytest.raises(InputError, match=words):
        per_class_split(torch.tensor(y), **arguments)


def test_no_seeds() -> None:
    with pytest.raises(InputError, match="seeds is empty"):
        per_class_splits(torch.zeros(60, dtype=torch.long), seeds=[])


def test_a_graph_keeps_its_public_split_or_gets_random_ones() -> None:
    y = torch.arange(2).repeat(60)
    own = Data(y=y, train_mask=y == 0, val_mask=y == 1, test_mask=y == 1)
    assert with_split(own, 3).train_mask is own.train_mask
    one, two = with_split(Data(y=y), 1), with_split(Data(y=y), [0, 1])
    assert one.train_mask.shape == (120,)
    assert two.test_mask.shape == (2, 120)
    for name in ("train_mask", "val_mask", "test_mask"):
        assert torch.equal(two[name][1], one[name])
