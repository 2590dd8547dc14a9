"""Pretraining of encoders, logistic regression on their embeddings, and both together."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from graphpartner.graph.datasets import load_graph
from graphpartner.kernels import draws
from graphpartner.lab.baselines.dgi import DGISettings
from graphpartner.lab.baselines.grace import GRACESettings
from graphpartner.lab.baselines.mvgrl import MVGRLSettings
from graphpartner.lab.baselines.self_supervised import PretextSettings, logistic_regression, prelu, pretrain
from graphpartner.system.errors import InputError
from graphpartner.training.prepared import Labelled, labelled
from tests.lab.baselines.graphs import CPU, SMALL_SELF_SUPERVISED, pretext_task, train_with
from tests.training.graphs import toy


@pytest.mark.parametrize("method", SMALL_SELF_SUPERVISED)
def test_a_run_among_many_equals_the_run_alone(method: str) -> None:
    settings, data, seeds = SMALL_SELF_SUPERVISED[method], toy(), [7, 1, 4, 9, 2]
    task = pretext_task(settings, data)
    together = pretrain(task, seeds, lambda amount: None)
    for place, seed in enumerate(seeds):
        alone = pretrain(task, [seed], lambda amount: None)
        assert together.epochs[place] == alone.epochs[0]
        torch.testing.assert_close(together.loss[place], alone.loss[0], rtol=1e-4, atol=1e-5)
        for weight, other in zip(together.weights, alone.weights, strict=True):
            torch.testing.assert_close(weight[place], other[0], rtol=1e-3, atol=2e-3)
    if settings.patience:
        assert len(set(together.epochs.tolist())) > 1  # so that some were frozen and compacted away before others


def adam_by_torch(settings: PretextSettings, seed: int) -> tuple[list[float], list[tuple[torch.Tensor, ...]]]:
    """Return the losses and weights of every epoch, by torch's own Adam."""
    task = pretext_task(settings, toy())
    weights = [weight.requires_grad_() for weight in task.initial([seed])]
    adam = torch.optim.Adam(weights, settings.lr, weight_decay=settings.weight_decay)
    number = task.draws_per_epoch
    losses, kept = [], []
    for epoch in range(settings.epochs):
        keys = {s: draws.keys([seed], s, k * settings.epochs)[k * epoch : k * epoch + k] for s, k in number.items()}
        loss = task.loss(tuple(weights), task.draw(keys)).sum()
        losses.append(loss.item())
        kept.append(tuple(weight.detach().clone() for weight in weights))
        adam.zero_grad()
        loss.backward()
        adam.step()
    return losses, [*kept, tuple(weight.detach() for weight in weights)]


def test_dgi_keeps_the_weights_that_gave_the_lowest_loss() -> None:
    settings = SMALL_SELF_SUPERVISED["dgi"].replace(patience=2)
    trained = pretrain(pretext_task(settings, toy()), [7], lambda amount: None)
    losses, weights = adam_by_torch(settings, 7)
    best = 0
    for epoch, loss in enumerate(losses):
        if loss < losses[best]:
            best = epoch
        if epoch - best == settings.patience:
            break
    assert trained.epochs.item() == epoch + 1 < settings.epochs
    assert trained.loss.item() == pytest.approx(losses[best], rel=1e-4)
    for weight, other in zip(trained.weights, weights[best], strict=True):
        torch.testing.assert_close(weight, other, rtol=1e-3, atol=1e-3)


def test_grace_keeps_the_last_weights() -> None:
    settings = SMALL_SELF_SUPERVISED["grace"]
    trained = pretrain(pretext_task(settings, toy()), [7], lambda amount: None)
    losses, weights = adam_by_torch(settings, 7)
    assert trained.epochs.item() == 12
    assert trained.loss.item() == pytest.approx(losses[-1], rel=1e-4)
    assert losses[-1] < losses[0]
    for weight, other in zip(trained.weights, weights[-1], strict=True):
        torch.testing.assert_close(weight, other, rtol=1e-3, atol=1e-3)


def test_progress_ends_at_the_maximum() -> None:
    reported: list[int] = []
    settings = SMALL_SELF_SUPERVISED["dgi"]
    pretrain(pretext_task(settings, toy()), [1, 2, 3], reported.append)
    assert sum(reported) == 3 * settings.epochs


def test_prelu_has_one_slope_a_replica() -> None:
    H = torch.tensor([[[-2.0, 4.0]], [[-2.0, 4.0]]])
    slope = torch.tensor([0.25, 0.5]).reshape(2, 1, 1).requires_grad_()
    out = prelu(H, slope)
    assert out.tolist() == [[[-0.5, 4.0]], [[-1.0, 4.0]]]
    assert torch.autograd.grad(out.sum(), slope)[0].flatten().tolist() == [-2, -2]


def blobs(replicas: int, n: int = 90, width: int = 12, classes: int = 3) -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    y = torch.arange(n) % classes
    centres = torch.randn(replicas, classes, width)
    return 3 + 0.7 * torch.randn(replicas, n, width) + centres[:, y], y


def nodes(masks: torch.Tensor, y: torch.Tensor, replicas: int) -> Labelled:
    return labelled(masks, y, replicas, "mask", CPU)


@pytest.mark.parametrize("strength", [1e-3, 1e-1])
def test_probabilities_equal_those_of_scikit_learn(strength: float) -> None:
    E, y = blobs(2)
    train, val = torch.arange(90) < 40, torch.arange(90) >= 60
    fitted = logistic_regression(E, nodes(train, y, 2), nodes(val, y, 2), 3, (strength,))
    for r in range(2):
        x = (E[r] - E[r].mean(0)).numpy()
        x = x / np.sqrt((x**2).sum(1).mean())
        reference = LogisticRegression(C=1 / (strength * 40), tol=1e-8, max_iter=2000).fit(x[:40], y[:40])
        np.testing.assert_allclose(fitted.logits[r].softmax(-1).numpy(), reference.predict_proba(x), atol=2e-3)
        log_loss = -np.log(reference.predict_proba(x[60:])[np.arange(30), y[60:]]).mean()
        assert fitted.val_loss[r].item() == pytest.approx(log_loss, abs=2e-3)


def test_strength_is_chosen_on_validation_nodes_and_for_each_replica() -> None:
    E, y = blobs(3)
    strengths = (1e-4, 1e-2, 1.0)
    train, val = torch.arange(90) < 30, (torch.arange(90) >= 30) & (torch.arange(90) < 60)
    chosen = logistic_regression(E, nodes(train, y, 3), nodes(val, y, 3), 3, strengths)
    single = [logistic_regression(E, nodes(train, y, 3), nodes(val, y, 3), 3, (each,)) for each in strengths]
    for r in range(3):
        right = [int((each.logits[r, val].argmax(-1) == y[val]).sum()) for each in single]
        order = sorted(range(3), key=lambda k: (-right[k], float(single[k].val_loss[r])))
        assert chosen.strength[r].item() == pytest.approx(strengths[order[0]])
        torch.testing.assert_close(chosen.logits[r], single[order[0]].logits[r], rtol=1e-3, atol=1e-4)


def test_a_given_decay_is_that_of_embeddings_as_they_are() -> None:
    E, y = blobs(2)
    E[1] *= 5
    train, val = torch.arange(90) < 40, torch.arange(90) >= 60
    fitted = logistic_regression(E, nodes(train, y, 2), nodes(val, y, 2), 3, decay=0.02, steps=3000)
    for r in range(2):
        x = E[r].numpy()
        reference = LogisticRegression(C=1 / (0.02 * 40), tol=1e-8, max_iter=5000).fit(x[:40], y[:40])
        np.testing.assert_allclose(fitted.logits[r].softmax(-1).numpy(), reference.predict_proba(x), atol=5e-3)
    assert fitted.strength[0] > 20 * fitted.strength[1]


def test_splits_of_different_size_equal_each_alone() -> None:
    E, y = blobs(2)
    train, val = torch.zeros(2, 2, 90, dtype=torch.bool)
    train[0, :30] = train[1, 10:55] = val[0, 30:70] = val[1, 60:80] = True
    together = logistic_regression(E, nodes(train, y, 2), nodes(val, y, 2), 3)
    for r in range(2):
        alone = logistic_regression(E[r : r + 1], nodes(train[r], y, 1), nodes(val[r], y, 1), 3)
        torch.testing.assert_close(together.logits[r], alone.logits[0], rtol=1e-3, atol=1e-3)
        torch.testing.assert_close(together.val_loss[r], alone.val_loss[0], rtol=1e-3, atol=1e-4)
        assert together.strength[r] == alone.strength[0]


def test_constant_embeddings_give_the_class_shares() -> None:
    y = torch.arange(9) % 3
    mask = torch.ones(9, dtype=torch.bool)
    for decay in (0.0, 0.01):
        fitted = logistic_regression(torch.ones(1, 9, 4), nodes(mask, y, 1), nodes(mask, y, 1), 3, decay=decay)
        assert torch.allclose(fitted.logits.softmax(-1), torch.full((1, 9, 3), 1 / 3), atol=1e-4)


@pytest.mark.parametrize("method", SMALL_SELF_SUPERVISED)
def test_runs_do_not_depend_on_the_batch(method: str) -> None:
    data, settings = toy(), SMALL_SELF_SUPERVISED[method]
    alone = train_with(settings, data, [3, 5, 8])
    together = train_with(settings, data, [3, 5, 8], batch_size=3)
    assert alone.name == method
    assert alone.logits.shape == (3, 40, 3)
    assert alone.epochs.tolist() == together.epochs.tolist()
    torch.testing.assert_close(alone.probabilities(), together.probabilities(), rtol=1e-2, atol=1e-2)
    torch.testing.assert_close(alone.val_loss, together.val_loss, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("method", SMALL_SELF_SUPERVISED)
def test_no_label_outside_training_and_validation_is_read(method: str) -> None:
    data, settings = toy(), SMALL_SELF_SUPERVISED[method]
    runs = train_with(settings, data, [1])
    data.y = torch.where(data.train_mask | data.val_mask, data.y, (data.y + 1) % 3)
    changed = train_with(settings, data, [1])
    assert torch.equal(runs.logits, changed.logits)
    data.y = torch.where(data.train_mask, (data.y + 1) % 3, data.y)
    assert not torch.equal(runs.logits, train_with(settings, data, [1]).logits)


def test_every_seed_can_have_a_split_of_its_own() -> None:
    data, settings = toy(), SMALL_SELF_SUPERVISED["dgi"]
    one = train_with(settings, data, [1])
    other = toy()
    other.train_mask, other.val_mask = data.val_mask, data.train_mask
    swapped = train_with(settings, other, [2])
    data.train_mask = torch.stack([data.train_mask, data.val_mask])
    data.val_mask = torch.stack([data.val_mask, other.val_mask])
    both = train_with(settings, data, [1, 2], batch_size=2)
    torch.testing.assert_close(both.logits, torch.cat([one.logits, swapped.logits]), rtol=1e-2, atol=2e-2)


def test_parameters_are_counted() -> None:
    settings = DGISettings(hidden_channels=16, epochs=1)
    runs = train_with(settings, toy(), [0])
    # W, b, slope, M, its bias; then the regression
    assert runs.parameters == 24 * 16 + 16 + 1 + 16 * 16 + 1 + 17 * 3


def test_wrong_input_is_named() -> None:
    with pytest.raises(InputError, match="batch_size = 0"):
        train_with(DGISettings(), toy(), [0], batch_size=0)
    with pytest.raises(InputError, match=r"seeds = \[\]: must hold at least one seed"):
        train_with(DGISettings(), toy(), [])
    data = toy()
    data.train_mask = data.train_mask.repeat(2, 1)
    with pytest.raises(InputError, match="2 splits for 3 seeds"):
        train_with(DGISettings(), data, [0, 1, 2])


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        DGISettings(hidden_channels=64, epochs=20, lr=0.01),
        MVGRLSettings(hidden_channels=64, epochs=10, lr=0.01, windows=1, sparsify=True),
        GRACESettings(hidden_channels=64, projection_channels=64, epochs=6, lr=0.01, temperature=0.9),
    ],
    ids=["dgi", "mvgrl", "grace"],
)
def test_citeseer_is_learned(settings: PretextSettings) -> None:
    data = load_graph("citeseer")
    reported: list[tuple[int, int]] = []
    runs = train_with(settings, data, [0], progress=lambda *state: reported.append(state))
    assert runs.accuracy(data.test_mask).item() > 0.55  # at most 0.47 with initial weights
    assert reported[-1] == (settings.epochs, settings.epochs)
