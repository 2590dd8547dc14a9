import pytest
import torch

from graphpartner.training.loop import EarlyStopping

NAN, INF = float("nan"), float("inf")


class Watched:
    """Replicas whose weights are the number of the epoch, updated in place as an optimizer does."""

    def __init__(self, replicas: int, patience: int) -> None:
        self.weights = torch.full((replicas, 2, 3), -1.0), torch.full((replicas, 3, 1), -1.0)
        self.stopping = EarlyStopping(self.weights, patience)
        self.epoch = 0

    def see(self, *losses: float) -> list[bool]:
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
def test_stops_after_exactly_so_many_epochs(patience: int) -> None:
    watched = Watched(1, patience)
    watched.see(3.0)
    watched.see(2.0)  # epoch 1 is the best
    for waited in range(1, patience + 1):
        assert watched.see(2.5) == [waited < patience]
    assert watched.stopping.epoch.tolist() == [1]
    assert watched.stopping.loss.tolist() == [2.0]


def test_a_lower_loss_starts_the_count_again() -> None:
    watched = Watched(1, 2)
    for loss in (3.0, 4.0, 2.0, 4.0, 1.0, 4.0):
        assert watched.see(loss) == [True]
    assert watched.see(4.0) == [False]
    assert watched.best() == [4]


def test_an_equal_loss_is_not_lower() -> None:
    watched = Watched(1, 2)
    watched.see(1.0)
    assert watched.see(1.0) == [True]
    assert watched.see(1.0) == [False]
    assert watched.best() == [0]


def test_the_best_weights_are_a_copy() -> None:
    watched = Watched(2, 10)
    watched.see(1.0, 5.0)
    watched.see(2.0, 4.0)
    watched.see(3.0, 6.0)
    assert watched.best() == [0, 1]
    for weight in watched.weights:
        weight.fill_(99)
    assert watched.best() == [0, 1]
    assert watched.stopping.loss.tolist() == [1.0, 4.0]


def test_not_a_number_is_never_better() -> None:
    watched = Watched(2, 3)
    assert watched.see(NAN, 1.0) == [True, True]
    assert watched.see(NAN, NAN) == [True, True]
    assert watched.see(NAN, NAN) == [False, True]  # three epochs without a number
    assert watched.see(0.5, NAN) == [False, False]
    assert watched.best() == [-1, 0]  # the first replica has its initial weights
    assert watched.stopping.loss.tolist() == [INF, 1.0]
    assert watched.stopping.epoch.tolist() == [-1, 0]


def test_frozen_once_stopped() -> None:
    watched = Watched(2, 1)
    watched.see(1.0, 5.0)
    assert watched.see(2.0, 4.0) == [False, True]
    assert watched.see(0.0, 3.0) == [False, True]  # too late for the first
    assert watched.best() == [0, 2]
    assert watched.stopping.loss.tolist() == [1.0, 3.0]


def test_keep_goes_on_with_some() -> None:
    watched = Watched(3, 2)
    watched.see(1.0, 2.0, 3.0)
    watched.see(2.0, 1.0, 4.0)
    kept = torch.tensor([2, 1])
    watched.stopping.keep(kept)
    watched.weights = tuple(weight[kept] for weight in watched.weights)
    assert watched.best() == [0, 1]
    assert watched.see(9.0, 0.5) == [False, True]
    assert watched.best() == [0, 2]
