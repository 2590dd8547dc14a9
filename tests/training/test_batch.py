import dataclasses

import numpy as np
import pytest
import torch

from graphpartner.kernels import draws
from graphpartner.kernels.dropout import Dropout, Rate
from graphpartner.kernels.row_products import rows_of
from graphpartner.model.propagation import Propagation
from graphpartner.training.batch import Batch, loss_and_accuracy
from graphpartner.training.prepared import Labelled, labelled, prepare_graph
from graphpartner.training.settings import Settings
from tests.reference import assert_near, dense_consistency, dense_cross_entropy, dense_forward, dense_rectification
from tests.training.graphs import toy
from tests.training.reference import enhanced

CPU = torch.device("cpu")
BASE = Settings(hidden_channels=16, num_steps=3, epochs=20, threshold=0.3, margin=3.0)
SETTINGS = [
    BASE.replace(alpha=0.2, dropout=0.4, input_dropout=0.6, lambda_rt=0.7),
    BASE.replace(alpha=0.8, dropout=0.0, input_dropout=0.1, temperature=1.0, margin=9.0),
    BASE.replace(alpha=0.5, dropout=0.7, input_dropout=0.0, lambda_cs=0.3),
]
SEEDS = [4, 1, 9]


def batch(settings: list[Settings] = SETTINGS, seeds: list[int] = SEEDS) -> Batch:
    data = toy()
    nodes = [labelled(data[name], data.y, len(seeds), name, CPU) for name in ("train_mask", "val_mask")]
    return Batch(prepare_graph(data, settings[0], CPU), settings, seeds, *nodes)


def test_initial_weights_depend_on_the_seed_alone() -> None:
    weights = batch().weights
    assert [tuple(weight.shape) for weight in weights] == [(3, 24, 16), (3, 16, 3)]
    for r, seed in enumerate(SEEDS):
        for weight, alone, name in zip(
            weights, batch(SETTINGS[r : r + 1], [seed]).weights, ("weight1", "weight2"), strict=True
        ):
            assert torch.equal(weight[r], alone[0])
            assert torch.equal(weight[r], draws.glorot(draws.keys([seed], name, 1)[0], *weight[r].shape)[0])


@pytest.mark.parametrize("score", ["inner", "cosine"])
def test_objective_equals_dense_with_its_own_draws(score: str) -> None:
    data = toy()
    settings = [each.replace(score=score) for each in SETTINGS]
    together = batch(settings)
    parts = together.objective(together.training_output(together.weights))
    A, index = enhanced(data, BASE).numpy(), data.train_mask.nonzero().squeeze(1).numpy()
    for r, (seed, own) in enumerate(zip(SEEDS, settings, strict=True)):
        W1, W2 = (weight[r].double().numpy() for weight in together.weights)

        def mask(stream: str, rate: float, shape: tuple[int, ...], seed: int = seed) -> np.ndarray:
            drop = Dropout(draws.keys([seed], stream, 1)[0], Rate(torch.tensor([rate])))
            return drop.mask(draws.counters(int(np.prod(shape))))[0].reshape(shape).double().numpy()

        X = data.x.double().numpy()
        initial = np.maximum(X * mask("input", own.input_dropout, X.shape) @ W1, 0) * mask(
            "hidden", own.dropout, (40, 16)
        )
        slow = dense_forward(initial, np.eye(16), W2, A, own.num_steps, own.alpha)
        omega = draws.choices(draws.keys([seed], "negatives", 1)[0], own.num_negatives, 40)[0].numpy()
        ce = dense_cross_entropy(slow.logits, index, data.y.numpy()[index])
        rt = dense_rectification(slow.mlp_logits, slow.gcn_logits, own.temperature)
        cs = dense_consistency(slow.initial, slow.smoothed, own.margin, omega, score)
        expected = [ce + own.lambda_rt * rt + own.lambda_cs * cs, ce, rt, cs]
        assert [part[r].item() for part in parts] == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("plan", ["steps", "dense"])
def test_validate_equals_dense_and_is_without_dropout(plan: str) -> None:
    data = toy()
    problem = prepare_graph(data, BASE, CPU)
    problem = dataclasses.replace(problem, propagate=Propagation(problem.propagate.matrix, BASE.num_steps, plan))
    nodes = [labelled(data[name], data.y, 3, name, CPU) for name in ("train_mask", "val_mask")]
    together = Batch(problem, SETTINGS, SEEDS, *nodes)
    logits, (val_loss, val_accuracy) = together.val_logits(), together.validate()
    A, X = enhanced(data, BASE).numpy(), data.x.double().numpy()
    index = data.val_mask.nonzero().squeeze(1).numpy()
    target = data.y.numpy()[index]
    for r, own in enumerate(SETTINGS):
        W1, W2 = (weight[r].double().numpy() for weight in together.weights)
        slow = dense_forward(X, W1, W2, A, own.num_steps, own.alpha).logits
        assert_near(logits[r], slow[index])
        assert val_loss[r].item() == pytest.approx(dense_cross_entropy(slow, index, target), rel=1e-5)
        assert val_accuracy[r].item() == pytest.approx((slow[index].argmax(1) == target).mean())
    assert not logits.requires_grad


def test_keep_cuts_everything_down() -> None:
    kept = torch.tensor([2, 0])
    whole, cut = batch(), batch()
    for each in (whole, cut):
        each.step()
        each.epoch += 1
    cut.keep(kept)
    for _ in range(3):
        full, part = whole.step(), cut.step()
        whole.epoch += 1
        cut.epoch += 1
        for one, other in zip(full, part, strict=True):
            torch.testing.assert_close(other, one[kept])
    for one, other in zip(whole.weights, cut.weights, strict=True):
        torch.testing.assert_close(other, one[kept])
    torch.testing.assert_close(cut.validate()[0], whole.validate()[0][kept])


def test_accuracy_by_hand() -> None:
    # guesses: replica 0 says 0 1 1 0, replica 1 says 1 1 0 0
    logits = torch.tensor([[[2.0, 1.0], [0, 1], [0, 1], [1, 0]], [[0, 1], [0, 1], [1, 0], [1, 0]]])

    def accuracy(nodes: Labelled) -> list[float]:
        return loss_and_accuracy(rows_of(logits, nodes.index), nodes)[1].tolist()

    one = Labelled(torch.tensor([0, 1, 3]), torch.tensor([0, 0, 0]), None)
    assert accuracy(one) == pytest.approx([2 / 3, 1 / 3])
    own = Labelled(torch.tensor([[0, 1], [2, 3]]), torch.tensor([[0, 0], [0, 0]]), None)
    assert accuracy(own) == [0.5, 1.0]
    weighted = Labelled(own.index, own.target, torch.tensor([[0.0, 1.0], [0.5, 0.5]]))
    assert accuracy(weighted) == [0.0, 1.0]
