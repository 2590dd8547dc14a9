import pytest
import torch

from graphpartner.kernels import draws
from graphpartner.lab.baselines.dgi import DGI
from graphpartner.lab.baselines.grace import GRACE
from graphpartner.lab.baselines.mvgrl import MVGRL
from graphpartner.lab.baselines.pretrain import pretrain
from tests.training.graphs import toy

CPU = torch.device("cpu")
METHODS = {
    "dgi": DGI(hidden_channels=16, lr=0.01, epochs=60, patience=5),
    "mvgrl": MVGRL(hidden_channels=16, window=15, windows=2, lr=0.01, epochs=60, patience=4),
    "grace": GRACE(hidden_channels=16, projection_channels=8, lr=0.01, epochs=12, activation="prelu"),
}


@pytest.mark.parametrize("method", METHODS)
def test_a_run_among_many_equals_the_run_alone(method: str) -> None:
    settings, data, seeds = METHODS[method], toy(), [7, 1, 4, 9, 2]
    objective = settings.objective(data, CPU)
    together = pretrain(objective, settings, seeds, lambda amount: None)
    for place, seed in enumerate(seeds):
        alone = pretrain(objective, settings, [seed], lambda amount: None)
        assert together.epochs[place] == alone.epochs[0]
        torch.testing.assert_close(together.loss[place], alone.loss[0], rtol=1e-4, atol=1e-5)
        for weight, other in zip(together.weights, alone.weights, strict=True):
            torch.testing.assert_close(weight[place], other[0], rtol=1e-3, atol=2e-3)
    if settings.patience:
        assert len(set(together.epochs.tolist())) > 1  # so that some were frozen and cut away before others


def reference(settings: DGI | GRACE, seed: int) -> tuple[list[float], list[tuple[torch.Tensor, ...]]]:
    """The losses and weights of every epoch, by torch's own Adam."""
    objective = settings.objective(toy(), CPU)
    weights = [weight.requires_grad_() for weight in objective.initial([seed])]
    adam = torch.optim.Adam(weights, settings.lr, weight_decay=settings.weight_decay)
    number = objective.draws_per_epoch
    losses, kept = [], []
    for epoch in range(settings.epochs):
        keys = {s: draws.keys([seed], s, k * settings.epochs)[k * epoch : k * epoch + k] for s, k in number.items()}
        loss = objective.loss(tuple(weights), objective.draw(keys)).sum()
        losses.append(loss.item())
        kept.append(tuple(weight.detach().clone() for weight in weights))
        adam.zero_grad()
        loss.backward()
        adam.step()
    return losses, [*kept, tuple(weight.detach() for weight in weights)]


def test_dgi_keeps_the_weights_that_gave_the_lowest_loss() -> None:
    settings = METHODS["dgi"].replace(patience=2)
    trained = pretrain(settings.objective(toy(), CPU), settings, [7], lambda amount: None)
    losses, weights = reference(settings, 7)
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
    settings = METHODS["grace"]
    trained = pretrain(settings.objective(toy(), CPU), settings, [7], lambda amount: None)
    losses, weights = reference(settings, 7)
    assert trained.epochs.item() == 12
    assert trained.loss.item() == pytest.approx(losses[-1], rel=1e-4)
    assert losses[-1] < losses[0]
    for weight, other in zip(trained.weights, weights[-1], strict=True):
        torch.testing.assert_close(weight, other, rtol=1e-3, atol=1e-3)


def test_progress_ends_at_the_most_there_can_be() -> None:
    told: list[int] = []
    settings = METHODS["dgi"]
    pretrain(settings.objective(toy(), CPU), settings, [1, 2, 3], told.append)
    assert sum(told) == 3 * settings.epochs
