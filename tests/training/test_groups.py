"""A network trained in groups is the mean of its groups, and a network like any other."""

import copy

import pytest
import torch
from torch.testing import assert_close

import graphpartner as gp
from graphpartner.graph.splits import per_class_splits
from graphpartner.kernels import draws
from graphpartner.training.settings import Settings
from graphpartner.training.trainer import group_seeds
from tests.training.toy import toy

PLAIN = Settings(hidden_channels=8, epochs=12, lr=0.05, num_steps=3)


def test_its_logits_are_the_mean_of_the_logits_of_its_groups():
    data, settings = toy(), PLAIN.replace(groups=3)
    grouped = gp.train(data, settings, [4, 9], "cpu")
    for place, seed in enumerate((4, 9)):
        apart = gp.train(data, PLAIN, group_seeds(seed, settings), "cpu")
        assert_close(grouped.logits[place], apart.logits.mean(0), rtol=0, atol=1e-5)
        assert (apart.logits[0] - apart.logits[1]).abs().max() > 1e-2
        assert_close(grouped.val_loss[place], apart.val_loss.mean())
        assert grouped.best_epoch[place] == apart.best_epoch[0]
        assert_close(
            torch.from_numpy(grouped.history[place]["loss"]),
            torch.from_numpy(apart.history[0]["loss"]),
            rtol=1e-4,
            atol=1e-4,
        )


def test_it_is_one_network_of_their_joint_width(tmp_path):
    data = gp.Enhance(k=PLAIN.k, threshold=PLAIN.threshold, beta=PLAIN.beta)(toy())
    runs = gp.train(toy(), PLAIN.replace(groups=3), [4], "cpu")
    model = runs.best()
    assert model.hidden_channels == 24
    assert_close(model(data.x, data.adj_t).logits, runs.logits[0], rtol=1e-4, atol=1e-4)
    runs.save(tmp_path)
    from safetensors.torch import load_file

    assert load_file(tmp_path / "weights.safetensors")["weight1"].shape == (1, data.x.shape[1], 24)


def test_its_own_validation_loss_is_at_most_what_is_told():
    data = toy()
    runs = gp.train(data, PLAIN.replace(groups=4), range(3), "cpu")
    for logits, told in zip(runs.logits, runs.val_loss, strict=True):
        own = torch.nn.functional.cross_entropy(logits[data.val_mask], data.y[data.val_mask])
        assert own <= told + 1e-6


def test_groups_share_the_split_and_the_teachers_of_their_run():
    data = toy()
    masks = per_class_splits(data.y, range(2), train=3, val=4)
    data.train_mask, data.val_mask, data.test_mask = masks
    settings = PLAIN.replace(teachers=2, generations=2, lambda_distill=2.0, groups=3)
    together = gp.train(data, settings, [5, 6], "cpu")
    one = copy.deepcopy(data)
    one.train_mask, one.val_mask, one.test_mask = (mask[1] for mask in masks)
    alone = gp.train(one, settings, [6], "cpu")
    assert_close(together.logits[1], alone.logits[0], rtol=0, atol=1e-4)
    taught = gp.train(one, settings.replace(groups=1), [6], "cpu").logits[0]
    untaught = gp.train(one, PLAIN.replace(groups=3), [6], "cpu").logits[0]
    assert (alone.logits[0] - taught).abs().max() > 1e-3
    assert (alone.logits[0] - untaught).abs().max() > 1e-3


@pytest.mark.parametrize("batch_size", [1, 4, 6])
def test_batches_may_cut_a_run_in_two(batch_size):
    settings = PLAIN.replace(groups=3)
    expected = gp.train(toy(), settings, [1, 2], "cpu", batch_size=2).logits
    assert_close(gp.train(toy(), settings, [1, 2], "cpu", batch_size=batch_size).logits, expected, rtol=0, atol=1e-4)


def test_no_group_has_the_seed_of_a_teacher():
    settings = Settings(teachers=4, generations=3, groups=16)
    seeds = group_seeds(7, settings)
    assert seeds[0] == 7
    assert len({*seeds, *draws.child_seeds(7, 12)}) == 16 + 12
    assert group_seeds(7, Settings()) == [7]
