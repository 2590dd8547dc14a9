"""Learn an encoder without labels, R replicas at a time: DGI, MVGRL and GRACE bring their loss, the loop is here."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from graphpartner.train import draws
from graphpartner.train.adam import Adam
from graphpartner.train.repeat import repeat
from graphpartner.train.stopping import EarlyStopping

Weights = tuple[Tensor, ...]


class Schedule(Protocol):
    """How long and how fast an encoder learns."""

    @property
    def epochs(self) -> int:
        """At most so many."""

    @property
    def patience(self) -> int | None:
        """Stop after so many epochs without a lower loss and keep the best weights; None: all epochs, last weights."""

    @property
    def lr(self) -> float:
        """Learning rate of Adam."""

    @property
    def weight_decay(self) -> float:
        """The same for all weights."""


class Objective(Protocol):
    """A loss without labels on one graph. All weights are [R, rows, columns], all draws and losses [R, …]."""

    draws_per_epoch: dict[str, int]
    """Stream of :mod:`graphpartner.train.draws` → how many keys of it an epoch takes."""
    memory: int
    """Bytes that one replica needs, about."""

    def initial(self, seeds: list[int]) -> Weights:
        """The weights to start with."""

    def draw(self, keys: dict[str, Tensor]) -> tuple[Tensor, ...]:
        """What one epoch draws by its keys, [number, R, 2] a stream. Happens before the program: sorting is allowed."""

    def loss(self, weights: Weights, drawn: tuple[Tensor, ...]) -> Tensor:
        """[R]."""

    def embed(self, weights: Weights) -> Tensor:
        """The embedding of every node, [R, n, h]."""


@dataclass
class Pretrained:
    """R encoders: their weights, the loss these gave (the lowest, or the last), and how many epochs each took."""

    weights: Weights
    loss: Tensor
    epochs: Tensor


def pretrain(objective: Objective, schedule: Schedule, seeds: list[int], advance: Callable[[int], None]) -> Pretrained:
    """Minimise a loss by Adam until every replica has stopped; ``advance`` hears of epochs done, summed over them."""
    learner = _Learner(objective, schedule, seeds)
    device, replicas = learner.epoch.device, len(seeds)
    done = Pretrained(
        tuple(torch.empty_like(weight) for weight in learner.weights),
        torch.full((replicas,), torch.nan, device=device),
        torch.full((replicas,), schedule.epochs, device=device),
    )
    here = torch.arange(replicas, device=device)  # which of the replicas are still in the batch

    def leave_behind(learning: Tensor) -> None:
        nonlocal here
        learner.store(done, here)
        learner.keep(learning)
        here = here[learning]

    repeat(learner.learn, learner.stopping, schedule.epochs, leave_behind, advance, before=learner.draw)
    learner.store(done, here)
    return done


class _Learner:
    """The state of R replicas: weights with their Adam, keys of every epoch, and who has stopped."""

    def __init__(self, objective: Objective, schedule: Schedule, seeds: list[int]) -> None:
        self.objective, self.schedule = objective, schedule
        initial = objective.initial(seeds)
        device = initial[0].device
        rate, decay = (
            torch.full((len(seeds),), value, device=device) for value in (schedule.lr, schedule.weight_decay)
        )
        self.optimizers = [Adam(weight, rate, decay) for weight in initial]
        self.keys = {
            stream: draws.keys(seeds, stream, number * schedule.epochs)
            .reshape(schedule.epochs, number, len(seeds), 2)
            .to(device)
            for stream, number in objective.draws_per_epoch.items()
        }
        self.stops = schedule.patience is not None
        watched = initial if self.stops else tuple(weight[:, :0] for weight in initial)  # no copies where none is kept
        self.stopping = EarlyStopping(watched, schedule.patience or schedule.epochs + 1)
        self.epoch = torch.zeros(1, dtype=torch.int64, device=device)
        self.loss = torch.full((len(seeds),), torch.nan, device=device)
        self.drawn: tuple[Tensor, ...] = ()

    @property
    def weights(self) -> Weights:
        return tuple(optimizer.weight for optimizer in self.optimizers)

    def draw(self, epoch: int) -> None:
        """This epoch's draws, written to where the captured program reads them."""
        drawn = self.objective.draw({stream: keys[epoch] for stream, keys in self.keys.items()})
        if not self.drawn:
            self.drawn = tuple(torch.empty_like(each) for each in drawn)
        for place, each in zip(self.drawn, drawn, strict=True):
            place.copy_(each)

    def learn(self) -> None:
        """One epoch: loss, gradients, Adam. The weights remembered are those that gave the loss."""
        weights = tuple(weight.detach().requires_grad_() for weight in self.weights)
        loss = self.objective.loss(weights, self.drawn)
        gradients = torch.autograd.grad(loss.sum(), weights)
        self.loss.copy_(loss.detach())
        if self.stops:
            self.stopping.update(self.epoch, self.loss, self.weights)
        for optimizer, gradient in zip(self.optimizers, gradients, strict=True):
            optimizer.step(gradient)
        self.epoch += 1

    def store(self, done: Pretrained, replicas: Tensor) -> None:
        """Write down what is known of these replicas."""
        stopping, most = self.stopping, self.schedule.epochs
        for kept, weight in zip(done.weights, stopping.best if self.stops else self.weights, strict=True):
            kept[replicas] = weight
        done.loss[replicas] = stopping.loss if self.stops else self.loss
        if self.schedule.patience is not None:
            done.epochs[replicas] = (stopping.epoch + self.schedule.patience + 1).clamp(max=most)

    def keep(self, replicas: Tensor) -> None:
        """Go on with these replicas alone."""
        self.keys = {stream: keys[:, :, replicas] for stream, keys in self.keys.items()}
        for optimizer in self.optimizers:
            optimizer.keep(replicas)
        self.stopping.keep(replicas)
        self.loss, self.drawn = self.loss[replicas], ()
