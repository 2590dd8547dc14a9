import torch

from graphpartner.graph.datasets import load_graph
from graphpartner.lab.search.judgement import development
from tests.training.graphs import toy


def test_a_public_split_is_half_of_the_development_splits():
    data = load_graph("citeseer")
    seen = development(data, 6)
    pool = data.train_mask | data.val_mask
    for split in range(6):
        assert torch.equal(seen.train_mask[split], data.train_mask) == (split % 2 == 0)
        masks = torch.stack([seen.train_mask[split], seen.val_mask[split], seen.judge_mask[split]])
        assert torch.equal(masks.sum(0), pool.long())  # each node has one office
        assert torch.bincount(data.y[seen.train_mask[split]]).tolist() == [20] * 6
    assert len({tuple(row.nonzero().flatten().tolist()) for row in seen.train_mask[1::2]}) == 3


def test_other_numbers_are_other_splits():
    data = load_graph("citeseer")
    first, second = development(data, 4), development(data, 4, first=4)
    assert not torch.equal(first.train_mask[1], second.train_mask[1])
    assert torch.equal(development(data, 8).train_mask[4:], second.train_mask)


def test_no_other_label_is_handed_over():
    data = load_graph("citeseer")
    seen = development(data, 4)
    known = (seen.train_mask | seen.val_mask | seen.judge_mask).any(0)
    assert (seen.y[~known] == -1).all()
    assert torch.equal(seen.y[known], data.y[known])
    assert "test_mask" not in seen
    assert (data.y >= 0).sum() == 3312  # the graph that was given is left alone
    assert data.test_mask.sum() == 1000


def test_a_graph_without_a_public_split_has_random_ones():
    data = toy(400)
    for name in ("train_mask", "val_mask", "test_mask"):
        delattr(data, name)
    seen = development(data, 3)
    assert seen.train_mask.sum(1).tolist() == [60] * 3
    assert seen.val_mask.sum(1).tolist() == seen.judge_mask.sum(1).tolist() == [45] * 3
    assert [torch.bincount(seen.y[mask]).tolist() for mask in seen.judge_mask] == [[15] * 3] * 3
    assert not torch.equal(seen.train_mask[0], seen.train_mask[1])
    assert (seen.y[~(seen.train_mask | seen.val_mask | seen.judge_mask).any(0)] == -1).all()


def test_half_of_every_class_judges_and_other_seeds_are_other_halves():
    data = load_graph("citeseer")
    seen = development(data, 4)
    for split in (0, 2):  # the public one
        both, half = (torch.bincount(data.y[mask], minlength=6) for mask in (data.val_mask, seen.judge_mask[split]))
        assert half.tolist() == (both // 2).tolist()
    assert not torch.equal(seen.judge_mask[0], seen.judge_mask[2])
    assert torch.equal(seen.judge_mask[2:], development(data, 2, first=2).judge_mask)
