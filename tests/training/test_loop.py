"""Early stopping, compaction of a batch, and the step that a GPU replays."""

import pytest
import torch

from graphpartner.training.loop import CapturedStep, EarlyStopping

NAN, INF = float("nan"), float("inf")


class Replicas:
    """Replicas whose weights are the number of the epoch, updated in place as by an optimizer."""

    def __init__(self, count: int, patience: int) -> None:
        self.weights = torch.full((count, 2, 3), -1.0), torch.full((count, 3, 1), -1.0)
        self.stopping = EarlyStopping(self.weights, patience)
        self.epoch = 0

    def epoch_with(self, *losses: float) -> list[bool]:
        for weight in self.weights:
            weight.fill_(self.epoch)
        self.stopping.update(torch.tensor([self.epoch]), torch.tensor(losses), self.weights)
        self.epoch += 1
        return self.stopping.active.tolist()

    def best(self) -> list[float]:
        first, second = self.stopping.best
        assert [weight.unique().item() for weight in first] == [weight.unique().item() for weight in second]
        return [weight.unique().item() for weight in first]


@pytest.mark.parametrize("patience", [1, 2, 5])
def test_stops_after_exactly_patience_epochs(patience: int) -> None:
    replicas = Replicas(1, patience)
    replicas.epoch_with(3.0)
    replicas.epoch_with(2.0)  # epoch 1 is the best
    for waited in range(1, patience + 1):
        assert replicas.epoch_with(2.5) == [waited < patience]
    assert replicas.stopping.epoch.tolist() == [1]
    assert replicas.stopping.loss.tolist() == [2.0]


def test_a_lower_loss_starts_the_count_again() -> None:
    replicas = Replicas(1, 2)
    for loss in (3.0, 4.0, 2.0, 4.0, 1.0, 4.0):
        assert replicas.epoch_with(loss) == [True]
    assert replicas.epoch_with(4.0) == [False]
    assert replicas.best() == [4]


def test_an_equal_loss_is_not_lower() -> None:
    replicas = Replicas(1, 2)
    replicas.epoch_with(1.0)
    assert replicas.epoch_with(1.0) == [True]
    assert replicas.epoch_with(1.0) == [False]
    assert replicas.best() == [0]


def test_the_best_weights_are_a_copy() -> None:
    replicas = Replicas(2, 10)
    replicas.epoch_with(1.0, 5.0)
    replicas.epoch_with(2.0, 4.0)
    replicas.epoch_with(3.0, 6.0)
    assert replicas.best() == [0, 1]
    for weight in replicas.weights:
        weight.fill_(99)
    assert replicas.best() == [0, 1]
    assert replicas.stopping.loss.tolist() == [1.0, 4.0]


def test_not_a_number_is_never_better() -> None:
    replicas = Replicas(2, 3)
    assert replicas.epoch_with(NAN, 1.0) == [True, True]
    assert replicas.epoch_with(NAN, NAN) == [True, True]
    assert replicas.epoch_with(NAN, NAN) == [False, True]  # three epochs without a number
    assert replicas.epoch_with(0.5, NAN) == [False, False]
    assert replicas.best() == [-1, 0]  # the first replica has its initial weights
    assert replicas.stopping.loss.tolist() == [INF, 1.0]
    assert replicas.stopping.epoch.tolist() == [-1, 0]


def test_frozen_once_stopped() -> None:
    replicas = Replicas(2, 1)
    replicas.epoch_with(1.0, 5.0)
    assert replicas.epoch_with(2.0, 4.0) == [False, True]
    assert replicas.epoch_with(0.0, 3.0) == [False, True]  # too late for the first
    assert replicas.best() == [0, 2]
    assert replicas.stopping.loss.tolist() == [1.0, 3.0]


def test_keep_drops_the_other_replicas() -> None:
    replicas = Replicas(3, 2)
    replicas.epoch_with(1.0, 2.0, 3.0)
    replicas.epoch_with(2.0, 1.0, 4.0)
    kept = torch.tensor([2, 1])
    replicas.stopping.keep(kept)
    replicas.weights = tuple(weight[kept] for weight in replicas.weights)
    assert replicas.best() == [0, 1]
    assert replicas.stopping.replicas.tolist() == [2, 1]
    assert replicas.epoch_with(9.0, 0.5) == [False, True]
    assert replicas.best() == [0, 2]


def test_a_step_on_a_cpu_is_a_call() -> None:
    state = torch.zeros(1)

    def work() -> None:
        state.add_(1)

    step = CapturedStep(work, torch.device("cpu"))
    for calls in range(1, 8):
        step()
        assert state.item() == calls
