"""Training against a slow reference; replicas, teachers, groups, seeds, and wrong input."""

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch.testing import assert_close

import graphpartner as gp
from graphpartner.graph.record import GraphRecord
from graphpartner.graph.splits import per_class_splits
from graphpartner.kernels import draws
from graphpartner.system.device import pick_device
from graphpartner.system.errors import InputError
from graphpartner.system.parallel import run_halving
from graphpartner.training.batch import Batch
from graphpartner.training.runs import Runs
from graphpartner.training.settings import Settings
from graphpartner.training.trainer import group_seeds
from tests.training.graphs import toy
from tests.training.reference import HISTORY, SlowRun, slow_train

BASE = Settings(hidden_channels=16, num_steps=3, epochs=12, threshold=0.3, lr=0.02, margin=8.0, lambda_rt=0.5)
VARIANTS: dict[str, dict[str, Any]] = {
    "inner": {},
    "wide enough for the compiled loops": {"hidden_channels": 40},
    "cosine, neighbors": {"score": "cosine", "positives": "neighbors", "margin": 0.9},
    "softmax": {"score": "softmax", "num_negatives": 3},
    "inner, neighbors": {"positives": "neighbors"},
    "separate dropout": {"separate_dropout": True, "dropout": 0.3},
    "no contrast": {"lambda_cs": 0.0},
    "no contrast, separate dropout": {"lambda_cs": 0.0, "separate_dropout": True},
    "no rectification": {"lambda_rt": 0.0},
    "no dropout": {"dropout": 0.0, "input_dropout": 0.0},
    "input dropout alone": {"dropout": 0.0},
    "hidden dropout alone": {"input_dropout": 0.0},
    "rows": {"features": "row", "lr": 0.1},
    "topology alone": {"beta": 1.0},
    "attributes alone": {"beta": 0.0},
    "deep": {"num_steps": 48},
    "no steps": {"num_steps": 0},
    "partner alone": {"alpha": 1.0},
    "graph alone": {"alpha": 0.0},
    "cool": {"temperature": 0.5},
    "k = 1": {"k": 1, "threshold": 0.1},
    "views": {"views": 3, "lambda_views": 30.0, "sharpening": 0.4, "drop_node": 0.3, "separate_dropout": True},
    "one view, nodes dropped": {"drop_node": 0.5, "dropout": 0.0},
}


def assert_same_runs(one: Runs, other: Runs, which: slice = slice(None), rtol: float = 1e-3) -> None:
    """Equal up to the order of floating-point sums."""
    assert one.best_epoch.tolist() == other.best_epoch[which].tolist()
    assert one.epochs.tolist() == other.epochs[which].tolist()
    assert_close(one.val_loss, other.val_loss[which], rtol=rtol, atol=1e-5)
    for curves, others in zip(one.history, other.history[which], strict=True):
        for name in HISTORY:
            np.testing.assert_allclose(curves[name], others[name], rtol=rtol, atol=1e-5, err_msg=name)
    for name in ("weight1", "weight2"):
        assert_close(getattr(one, name), getattr(other, name)[which], rtol=rtol, atol=1e-3)
    assert_close(one.logits, other.logits[which], rtol=rtol, atol=2e-3)


# Against the slow loop


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_loss_of_every_epoch_equals_the_slow_loop(variant: str, kernels: str) -> None:
    data, settings = toy(), BASE.replace(**VARIANTS[variant])
    runs = gp.train(data, settings, seeds=[5], device="cpu")
    slow = slow_train(data, settings, 5)
    for name in HISTORY:
        fast = runs.history[0][name]
        np.testing.assert_allclose(fast, slow.history[name], rtol=2e-4, atol=2e-5, err_msg=name)
    assert runs.best_epoch.item() == slow.best_epoch
    assert runs.val_loss.item() == pytest.approx(slow.val_loss, rel=1e-4)
    assert (runs.logits[0] - slow.logits).abs().max() < 1e-3 * slow.logits.abs().max()


def mean_probabilities(teachers: list[SlowRun]) -> torch.Tensor:
    return torch.stack([teacher.logits.softmax(1) for teacher in teachers]).mean(0)


def assert_distilled(data: GraphRecord, student: Settings, target: torch.Tensor) -> SlowRun:
    """The run of seed 5 equals the slow loop with this target, with another run beside it; returns the slow run."""
    slow = slow_train(data, student, 5, target)
    reports: list[float] = []
    runs = gp.train(data, student, seeds=[2, 5], device="cpu", progress=lambda done, of: reports.append(done / of))
    for name in HISTORY:
        np.testing.assert_allclose(runs.history[1][name], slow.history[name], rtol=5e-4, atol=5e-5, err_msg=name)
    assert reports[-1] == 1
    assert reports == sorted(reports)
    return slow


def test_a_run_is_distilled_from_the_mean_of_its_own_teachers() -> None:
    data, settings = toy(), BASE.replace(epochs=20, views=2, lambda_views=1.0)
    target = mean_probabilities([slow_train(data, settings, seed) for seed in draws.child_seeds(5, 3)])
    slow = assert_distilled(data, settings.replace(teachers=3, lambda_distill=0.8), target)
    assert slow.history["distillation"][0] > slow.history["distillation"][-1] > 0


def test_teachers_are_distilled_from_the_generation_before() -> None:
    data, settings = toy(), BASE.replace(epochs=15, teachers=2, generations=2, lambda_distill=0.8)
    seeds = draws.child_seeds(5, 4)
    before = mean_probabilities([slow_train(data, settings, seed) for seed in seeds[:2]])
    slow = assert_distilled(
        data, settings, mean_probabilities([slow_train(data, settings, seed, before) for seed in seeds[2:]])
    )
    once = gp.train(data, settings.replace(generations=1), seeds=[5], device="cpu")
    assert (once.logits[0] - slow.logits).abs().max() > 1e-2 * slow.logits.abs().max()


@pytest.mark.parametrize("generations", [1, 2])
def test_teachers_have_the_split_of_their_run(generations: int) -> None:
    data = toy()
    settings = BASE.replace(epochs=15, teachers=2, generations=generations, lambda_distill=1.0)
    data.train_mask = torch.stack([data.train_mask, data.val_mask])
    data.val_mask = data.train_mask.flip(0)
    data.test_mask = ~(data.train_mask | data.val_mask)
    both = gp.train(data, settings, seeds=[0, 1], device="cpu")
    for run in range(2):
        alone = copy.copy(data)
        alone.train_mask, alone.val_mask, alone.test_mask = (
            data[name][run] for name in ("train_mask", "val_mask", "test_mask")
        )
        assert_same_runs(gp.train(alone, settings, seeds=[run], device="cpu"), both, slice(run, run + 1))


def test_early_stopping_equals_the_slow_loop() -> None:
    data, settings = toy(), BASE.replace(epochs=200, patience=6, lr=0.05)
    runs, slow = gp.train(data, settings, seeds=[1], device="cpu"), slow_train(data, settings, 1)
    assert runs.epochs.item() == len(slow.history["loss"]) < 200
    assert runs.epochs.item() == slow.best_epoch + 6 + 1
    assert runs.best_epoch.item() == slow.best_epoch
    # the best weights, not the last ones
    assert (runs.logits[0] - slow.logits).abs().max() < 1e-2 * slow.logits.abs().max()
    lowest = runs.history[0]["val_loss"]
    assert lowest.argmin() == slow.best_epoch
    assert runs.val_loss.item() == pytest.approx(float(lowest.min()))


# Nothing is silently off


def first_epoch(**changes: Any) -> dict[str, float]:
    runs = gp.train(toy(), BASE.replace(epochs=2, dropout=0.0, input_dropout=0.0, **changes), seeds=[0], device="cpu")
    return {name: float(curve[0]) for name, curve in runs.history[0].items()} | {"later": runs.history[0]["loss"][1]}


def test_partner_changes_the_outputs() -> None:
    with_partner, without = first_epoch(alpha=0.5), first_epoch(alpha=0.0)
    assert abs(with_partner["cross_entropy"] - without["cross_entropy"]) > 1e-3
    assert abs(with_partner["val_loss"] - without["val_loss"]) > 1e-3


def test_rectification_is_in_the_loss_and_in_the_gradient() -> None:
    on, off = first_epoch(lambda_rt=50.0), first_epoch(lambda_rt=0.0)
    assert on["rectification"] == pytest.approx(off["rectification"])
    assert on["rectification"] > 1e-4
    assert on["loss"] - off["loss"] == pytest.approx(50 * on["rectification"], rel=1e-3)
    assert abs(on["val_loss"] - off["val_loss"]) > 1e-4  # after one step


def test_contrast_is_in_the_loss_and_in_the_gradient() -> None:
    on, off = first_epoch(lambda_cs=3.0), first_epoch(lambda_cs=0.0)
    assert on["consistency"] > 0.1
    assert on["loss"] - off["loss"] == pytest.approx(3 * on["consistency"], rel=1e-3)
    assert abs(on["val_loss"] - off["val_loss"]) > 1e-4


def test_enhancement_changes_the_outputs() -> None:
    on, off = first_epoch(beta=0.5), first_epoch(beta=1.0)
    assert abs(on["cross_entropy"] - off["cross_entropy"]) > 1e-4
    assert abs(on["rectification"] - off["rectification"]) > 1e-5
    other_threshold = first_epoch(beta=0.5, threshold=0.9)
    assert abs(on["cross_entropy"] - other_threshold["cross_entropy"]) > 1e-5


def test_dropout_is_drawn_anew_in_every_epoch() -> None:
    # with a learning rate of 0 only the draws differ from epoch to epoch
    still = BASE.replace(lr=0.0, epochs=6)
    for changes in ({"input_dropout": 0.0}, {"dropout": 0.0}):
        curve = gp.train(toy(), still.replace(**changes), seeds=[0], device="cpu").history[0]["cross_entropy"]
        assert len(set(curve.tolist())) == 6
    quiet = gp.train(toy(), still.replace(dropout=0.0, input_dropout=0.0), seeds=[0], device="cpu").history[0]
    assert np.ptp(quiet["cross_entropy"]) == 0
    assert len(set(quiet["consistency"].tolist())) > 3  # Ω is drawn anew, too


# Replicas against single runs

MIXED = [
    BASE.replace(alpha=0.1, lr=0.02, dropout=0.5, lambda_rt=0.3, margin=1.0, decay1=0.01),
    BASE.replace(alpha=0.6, lr=0.005, dropout=0.0, input_dropout=0.2, temperature=1.0),
    BASE.replace(alpha=0.3, lr=0.05, input_dropout=0.0, lambda_cs=0.2, decay2=0.1),
    BASE.replace(alpha=0.9, lr=0.01, dropout=0.8, lambda_rt=0.0, margin=5.0),
    BASE.replace(alpha=0.0, lr=0.03, dropout=0.2, lambda_cs=2.0),
]
SEEDS = [7, 3, 2**40, -1, 11]


def with_splits(data: GraphRecord, replicas: int) -> GraphRecord:
    """Another split for every replica, of unequal sizes."""
    rng = np.random.default_rng(9)
    masks = torch.zeros(2, replicas, data.num_nodes, dtype=torch.bool)
    for r in range(replicas):
        order = rng.permutation(data.num_nodes - 1)
        masks[0, r, order[: 8 + r]] = True
        masks[1, r, order[20 : 32 - r]] = True
    data = copy.deepcopy(data)
    data.train_mask, data.val_mask = masks
    del data.test_mask
    return data


@pytest.mark.parametrize(
    ("form", "splits"),
    [("inner", False), ("inner", True), ("cosine, neighbors", True), ("softmax", True), ("separate dropout", True)],
)
def test_replicas_equal_single_runs(form: str, splits: bool, kernels: str) -> None:
    data = with_splits(toy(), 5) if splits else toy()
    shared = {
        name: VARIANTS[form][name] for name in VARIANTS[form] if name in ("score", "positives", "separate_dropout")
    }
    settings = [each.replace(**shared) for each in MIXED]
    together = gp.train(data, settings, SEEDS, device="cpu", batch_size=5)
    for r, seed in enumerate(SEEDS):
        own = copy.deepcopy(data)
        if splits:
            own.train_mask, own.val_mask = data.train_mask[r], data.val_mask[r]
        assert_same_runs(gp.train(own, settings[r], [seed], device="cpu"), together, slice(r, r + 1))


@pytest.mark.parametrize("batch_size", [1, 2, 3, None])
def test_batch_size_does_not_matter(batch_size: int | None) -> None:
    data = with_splits(toy(), 5)
    together = gp.train(data, MIXED, SEEDS, device="cpu", batch_size=5)
    assert_same_runs(gp.train(data, MIXED, SEEDS, device="cpu", batch_size=batch_size), together)


def test_replicas_of_different_depth_equal_single_runs() -> None:
    settings = [each.replace(num_steps=steps) for each, steps in zip(MIXED, (1, 4, 0, 4, 9), strict=True)]
    together = gp.train(toy(), settings, SEEDS, device="cpu", batch_size=5)
    for r, seed in enumerate(SEEDS):
        assert_same_runs(gp.train(toy(), settings[r], [seed], device="cpu"), together, slice(r, r + 1))


def test_replicas_equal_single_runs_across_compaction(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []
    keep = Batch.keep

    def watched(batch: Batch, replicas: torch.Tensor) -> None:
        sizes.append(len(replicas))
        return keep(batch, replicas)

    monkeypatch.setattr(Batch, "keep", watched)
    rates = [0.1, 0.002, 0.02, 0.08, 0.001, 0.05]
    settings = [
        BASE.replace(epochs=150, patience=8, lr=rate, dropout=0.3, input_dropout=0.3, num_steps=2 + r % 3)
        for r, rate in enumerate(rates)
    ]
    data, seeds = with_splits(toy(), 6), [4, 5, 6, 7, 8, 9]
    together = gp.train(data, settings, seeds, device="cpu", batch_size=6)
    assert sizes  # some stopped, the others went on without them
    assert sizes == sorted(sizes, reverse=True)
    assert len(set(together.epochs.tolist())) > 3
    alone = gp.train(data, settings, seeds, device="cpu", batch_size=1)
    assert_same_runs(alone, together, rtol=2e-2)


def test_frozen_replicas_do_not_disturb_the_others() -> None:
    # a run whose losses are not numbers stops after its patience; its neighbours are as they are alone
    bad = BASE.replace(lr=100.0, decay1=1000.0, margin=1e6, lambda_cs=1e6, epochs=30, patience=5)
    good = BASE.replace(epochs=30, patience=5)
    together = gp.train(toy(), [bad, good, good], [0, 1, 2], device="cpu", batch_size=3)
    alone = gp.train(toy(), good, [1, 2], device="cpu", batch_size=1)
    assert_same_runs(alone, together, slice(1, 3))


# Groups

PLAIN = Settings(hidden_channels=8, epochs=12, lr=0.05, num_steps=3)


def test_logits_of_a_run_with_groups_are_the_mean_over_the_groups() -> None:
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


def test_groups_are_joined_to_one_network_of_their_joint_width(tmp_path: Path) -> None:
    data = gp.Enhance(k=PLAIN.k, threshold=PLAIN.threshold, beta=PLAIN.beta)(toy())
    runs = gp.train(toy(), PLAIN.replace(groups=3), [4], "cpu")
    model = runs.best()
    assert model.hidden_channels == 24
    assert_close(model(data.x, data.adj_t).logits, runs.logits[0], rtol=1e-4, atol=1e-4)
    runs.save(tmp_path)
    assert load_file(tmp_path / "weights.safetensors")["weight1"].shape == (1, data.x.shape[1], 24)


def test_the_validation_loss_of_the_joined_network_is_at_most_the_reported_one() -> None:
    data = toy()
    runs = gp.train(data, PLAIN.replace(groups=4), range(3), "cpu")
    for logits, reported in zip(runs.logits, runs.val_loss, strict=True):
        own = torch.nn.functional.cross_entropy(logits[data.val_mask], data.y[data.val_mask])
        assert own <= reported + 1e-6


def test_groups_share_the_split_and_the_teachers_of_their_run() -> None:
    data = toy()
    masks = per_class_splits(data.y, range(2), train=3, val=4)
    data.train_mask, data.val_mask, data.test_mask = masks
    settings = PLAIN.replace(teachers=2, generations=2, lambda_distill=2.0, groups=3)
    together = gp.train(data, settings, [5, 6], "cpu")
    one = copy.deepcopy(data)
    one.train_mask, one.val_mask, one.test_mask = (mask[1] for mask in masks)
    alone = gp.train(one, settings, [6], "cpu")
    assert_close(together.logits[1], alone.logits[0], rtol=0, atol=1e-4)
    one_group = gp.train(one, settings.replace(groups=1), [6], "cpu").logits[0]
    without_teachers = gp.train(one, PLAIN.replace(groups=3), [6], "cpu").logits[0]
    assert (alone.logits[0] - one_group).abs().max() > 1e-3
    assert (alone.logits[0] - without_teachers).abs().max() > 1e-3


@pytest.mark.parametrize("batch_size", [1, 4, 6])
def test_batches_may_split_the_groups_of_a_run(batch_size: int) -> None:
    settings = PLAIN.replace(groups=3)
    expected = gp.train(toy(), settings, [1, 2], "cpu", batch_size=2).logits
    assert_close(gp.train(toy(), settings, [1, 2], "cpu", batch_size=batch_size).logits, expected, rtol=0, atol=1e-4)


def test_no_group_has_the_seed_of_a_teacher() -> None:
    settings = Settings(teachers=4, generations=3, groups=16)
    seeds = group_seeds(7, settings)
    assert seeds[0] == 7
    assert len({*seeds, *draws.child_seeds(7, 12)}) == 16 + 12
    assert group_seeds(7, Settings()) == [7]


# Seeds


def same_bits(one: Runs, other: Runs) -> bool:
    return torch.equal(one.weight1, other.weight1) and torch.equal(one.weight2, other.weight2)


def test_same_seeds_give_the_same_bits() -> None:
    one, other = (gp.train(toy(), BASE, seeds=[3, 4, 5], device="cpu") for _ in range(2))
    assert same_bits(one, other)
    assert torch.equal(one.logits, other.logits)
    for curves, others in zip(one.history, other.history, strict=True):
        for name in HISTORY:
            np.testing.assert_array_equal(curves[name], others[name])


def test_a_run_does_not_depend_on_the_others_or_on_global_generators() -> None:
    torch.manual_seed(0)
    three = gp.train(toy(), BASE, seeds=[3, 4, 5], device="cpu", batch_size=1)
    torch.manual_seed(1)
    np.random.seed(1)
    turned = gp.train(toy(), BASE, seeds=[5, 9, 3], device="cpu", batch_size=1)
    assert torch.equal(three.weight1[0], turned.weight1[2])
    assert torch.equal(three.weight1[2], turned.weight1[0])
    assert not torch.equal(three.weight1[0], three.weight1[1])


def test_numpy_integers_are_seeds() -> None:
    assert same_bits(
        gp.train(toy(), BASE, seeds=np.arange(2), device="cpu"), gp.train(toy(), BASE, seeds=range(2), device="cpu")
    )


# It learns


@pytest.mark.slow
def test_learns_citeseer() -> None:
    # the largest class has 21 % of the test nodes
    data = gp.load_dataset("citeseer")
    settings = Settings(
        num_steps=10, beta=0.7, features="row", hidden_channels=32, lr=0.02, score="cosine", margin=0.9, epochs=60
    )
    runs = gp.train(data, settings, seeds=range(3), device="cpu")
    accuracy = runs.accuracy(data.test_mask)
    share = data.y[data.test_mask].bincount().max() / data.test_mask.sum()
    assert share < 0.3
    assert (accuracy > 0.62).all(), accuracy


def test_learns_the_toy_and_lowers_its_losses() -> None:
    data = toy()
    runs = gp.train(data, BASE.replace(epochs=60), seeds=range(4), device="cpu")
    assert (runs.accuracy(data.test_mask) > 0.7).all()
    for curves in runs.history:
        assert curves["loss"][-5:].mean() < 0.7 * curves["loss"][:5].mean()
        assert curves["val_loss"].min() < 0.8 * curves["val_loss"][0]


def test_without_a_learning_rate_nothing_is_learned() -> None:
    runs = gp.train(toy(), BASE.replace(lr=0.0), seeds=[0], device="cpu")
    assert np.ptp(runs.history[0]["val_loss"]) == 0
    assert runs.best_epoch.item() == 0


# What is given


def test_a_preset_is_its_settings() -> None:
    data = toy()
    preset = gp.preset("cora/tuned")
    short = gp.Preset(preset.graph, preset.family, BASE, preset.provenance, preset.saw_test, preset.published)
    assert same_bits(gp.train(data, short, [0], device="cpu"), gp.train(data, BASE, [0], device="cpu"))


def test_data_is_left_alone_and_may_be_sparse() -> None:
    data = toy()
    before = copy.deepcopy(data)
    runs = gp.train(data, BASE, [0], device="cpu")
    assert set(data.fields()) == set(before.fields())
    for name in ("x", "edge_index", "y", "train_mask", "val_mask", "test_mask"):
        assert torch.equal(data[name], before[name])
    data.x = data.x.to_sparse_csr()
    assert_same_runs(gp.train(data, BASE, [0], device="cpu"), runs)


def test_a_pyg_graph_is_taken_as_it_is() -> None:
    data = toy()
    assert_same_runs(gp.train(data.to_data(), BASE, [0], device="cpu"), gp.train(data, BASE, [0], device="cpu"))


def test_relabelling_nodes_permutes_the_predictions() -> None:
    # without draws that belong to places, that is without dropout and contrast
    data, settings = toy(), BASE.replace(dropout=0.0, input_dropout=0.0, lambda_cs=0.0)
    order = torch.from_numpy(np.random.default_rng(0).permutation(data.num_nodes))
    moved = copy.deepcopy(data)
    moved.edge_index = torch.argsort(order)[data.edge_index]
    for name in ("x", "y", "train_mask", "val_mask", "test_mask"):
        moved[name] = data[name][order]
    one, other = (gp.train(each, settings, [0], device="cpu") for each in (data, moved))
    assert_close(other.logits, one.logits[:, order], rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("two_dimensional", [False, True])
def test_no_label_outside_the_masks_matters(two_dimensional: bool) -> None:
    data = with_splits(toy(), 2) if two_dimensional else toy()
    runs = gp.train(data, BASE, [0, 1], device="cpu")
    unseen = ~(data.train_mask | data.val_mask)
    unseen = unseen.all(0) if two_dimensional else unseen
    assert unseen.sum() > 5
    for garbage in (-1, 0, 2):
        other = copy.deepcopy(data)
        other.y = torch.where(unseen, garbage, data.y)
        assert same_bits(gp.train(other, BASE, [0, 1], device="cpu"), runs)
    # and without num_classes, which the largest label must not stand for
    for garbage in (-1, 17):
        other = copy.deepcopy(data)
        del other.num_classes
        other.y = torch.where(unseen, garbage, data.y)
        assert same_bits(gp.train(other, BASE, [0, 1], device="cpu"), runs)


def test_progress_rises_to_its_total() -> None:
    for settings, batch_size in ((BASE, 1), (BASE, 4), (BASE.replace(epochs=100, patience=2, lr=0.1), 2)):
        reports: list[tuple[int, int]] = []
        gp.train(toy(), settings, range(4), "cpu", batch_size, lambda *report, to=reports: to.append(report))
        done = [each for each, _ in reports]
        assert {total for _, total in reports} == {4 * settings.epochs}
        assert done == sorted(done)
        assert done[-1] == 4 * settings.epochs
        assert len(set(done)) > 3


def test_the_number_of_threads_is_left_alone() -> None:
    threads = torch.get_num_threads()
    try:
        for count in (1, 2):
            torch.set_num_threads(count)
            gp.train(toy(), BASE, range(3), device="cpu")
            assert torch.get_num_threads() == count
    finally:
        torch.set_num_threads(threads)


def test_labels_of_any_integer_type() -> None:
    data = toy()
    small = copy.deepcopy(data)
    small.y = data.y.to(torch.int8)
    wide, narrow = (gp.train(each, BASE, [0], device="cpu") for each in (data, small))
    assert torch.equal(wide.val_loss, narrow.val_loss)
    assert torch.equal(wide.accuracy(data.val_mask), narrow.accuracy(data.val_mask))


def test_wrong_seeds_settings_and_devices_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    data = toy()
    with pytest.raises(InputError, match=r"seeds = \[\]: must hold at least one seed"):
        gp.train(data, BASE, [])
    with pytest.raises(InputError, match=r"seeds = 5: must be a sequence, such as range\(5\) or \[5\]"):
        gp.train(data, BASE, 5)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"seeds = \[1.5\]"):
        gp.train(data, BASE, [1.5])  # type: ignore[list-item]
    with pytest.raises(InputError, match="batch_size = 0"):
        gp.train(data, BASE, [0], batch_size=0)
    with pytest.raises(InputError, match="2 settings for 3 seeds"):
        gp.train(data, [BASE, BASE], range(3))
    with pytest.raises(InputError, match="must not differ"):
        gp.train(data, [BASE, BASE.replace(hidden_channels=4)], range(2))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(InputError, match="device = cuda"):
        gp.train(data, BASE, [0], device="cuda")
    assert pick_device("auto").type == "cpu"


def test_batches_are_halved_when_memory_runs_out() -> None:
    tried = []

    def fits_three(part: slice) -> slice:
        tried.append(part.stop - part.start)
        if part.stop - part.start > 3:
            raise torch.cuda.OutOfMemoryError("too large")
        return part

    parts = run_halving(fits_three, 10, 10)
    assert [list(range(10))[part] for part in parts] == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9]]
    assert tried == [10, 5, 3, 3, 3, 1]

    def fits_none(part: slice) -> slice:
        raise torch.cuda.OutOfMemoryError("too large")

    with pytest.raises(torch.cuda.OutOfMemoryError):
        run_halving(fits_none, 4, 4)


def test_wrong_splits_are_named() -> None:
    with pytest.raises(InputError, match=r"train_mask holds 2 splits for 3 seeds"):
        gp.train(with_splits(toy(), 2), BASE, range(3))


@pytest.mark.parametrize("name", ["x", "edge_index", "y", "train_mask", "val_mask"])
def test_what_is_missing_is_named(name: str) -> None:
    data = toy()
    del data[name]
    with pytest.raises(InputError, match=f"data.{name} is missing"):
        gp.train(data, BASE, [0])


def test_values_that_cannot_be_are_named() -> None:
    data = toy()
    data.x[7, 2] = float("nan")
    with pytest.raises(InputError, match="x = nan at node 7, feature 2"):
        gp.train(data, BASE, [0])
    data = toy()
    node = int(data.train_mask.nonzero()[0])
    data.y[node] = 3
    with pytest.raises(InputError, match=f"y = 3 at node {node}: must be"):
        gp.train(data, BASE, [0])
    data.y[node] = -1
    with pytest.raises(InputError, match=f"train_mask holds node {node}"):
        gp.train(data, BASE, [0])
    data = toy()
    data.val_mask[:] = False
    with pytest.raises(InputError, match="val_mask is empty"):
        gp.train(data, BASE, [0])


def test_an_interrupted_training_ends_at_once() -> None:
    """Progress raises, as Ctrl-C would: the run beside it does not go on to its last epoch."""
    reports: list[int] = []

    def interrupt(done: int, total: int) -> None:
        reports.append(done)
        raise KeyboardInterrupt

    settings = Settings(epochs=20_000, patience=20_000, hidden_channels=4)
    with pytest.raises(KeyboardInterrupt):
        gp.train(toy(), settings, range(2), "cpu", progress=interrupt)
    assert len(reports) <= 4
