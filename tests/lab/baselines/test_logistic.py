import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from graphpartner.lab.baselines.self_supervised import logistic_regression
from graphpartner.training.prepared import Labelled, labelled

CPU = torch.device("cpu")


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


def test_embeddings_without_any_spread_do_no_harm() -> None:
    y = torch.arange(9) % 3
    mask = torch.ones(9, dtype=torch.bool)
    for decay in (0.0, 0.01):
        fitted = logistic_regression(torch.ones(1, 9, 4), nodes(mask, y, 1), nodes(mask, y, 1), 3, decay=decay)
        assert torch.allclose(fitted.logits.softmax(-1), torch.full((1, 9, 3), 1 / 3), atol=1e-4)
