"""What DGI and MVGRL share: PReLU, the summary of a graph, and the bilinear discriminator between nodes and summaries.

Everything carries leading dimensions (replicas, and the subgraphs of a step), so that R runs are one computation.

Learn an encoder without labels, R replicas at a time: DGI, MVGRL and GRACE bring their loss, the loop is here.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from graphpartner.kernels import draws
from graphpartner.kernels.adam import Adam
from graphpartner.kernels.draws import counters, uniform
from graphpartner.training.loop import EarlyStopping, run_epochs

SLOPE = 0.25  # where PReLU starts


def prelu(H: Tensor, slope: Tensor) -> Tensor:
    """max(H, 0) + a · min(H, 0), with one learned a for each replica: H [R, …], a of R numbers."""
    return F.prelu(H[None], slope.flatten())[0]


def summary(H: Tensor) -> Tensor:
    """The summary s = σ(1/n Σ_i h_i): [..., n, h] → [..., h]."""
    return H.mean(-2).sigmoid()


def scores(H: Tensor, bilinear: Tensor, bias: Tensor, summary: Tensor) -> Tensor:
    """h_iᵀ M s + b for every node: H [..., n, h], M [..., h, h], b [..., 1, 1], s [..., h] → [..., n]."""
    return (H @ (bilinear @ summary[..., None]) + bias).squeeze(-1)


def discrimination_loss(true: Tensor, false: Tensor) -> Tensor:
    """Binary cross-entropy, −½ (mean ln σ(true) + mean ln σ(−false)), over the last dimension."""
    return (F.softplus(-true).mean(-1) + F.softplus(false).mean(-1)) / 2


def bilinear_weights(key: Tensor, width: int) -> Tensor:
    """M, [R, h, h], Glorot-uniform as a bilinear form with one output is: fans of h² and h, so M starts small."""
    bound = (6 / (width * width + width)) ** 0.5
    flat = uniform(key, counters(width * width, device=key.device))
    return (flat * 2 - 1).mul_(bound).reshape(*key.shape[:-1], width, width)


def take_rows(H: Tensor, index: Tensor) -> Tensor:
    """Rows of every replica's H: [R, n, h] and [R, m] → [R, m, h], in memory [m, R, h] as products leave it."""
    replicas, n, width = H.shape
    place = index.T * replicas + torch.arange(replicas, device=index.device)
    rows = H.transpose(0, 1).reshape(n * replicas, width).index_select(0, place.reshape(-1))
    return rows.reshape(-1, replicas, width).transpose(0, 1)


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


class PretextTask(Protocol):
    """A loss without labels on one graph. All weights are [R, rows, columns], all draws and losses [R, …]."""

    draws_per_epoch: dict[str, int]
    """Stream of :mod:`graphpartner.kernels.draws` → how many keys of it an epoch takes."""
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


def pretrain(
    objective: PretextTask, schedule: Schedule, seeds: list[int], advance: Callable[[int], None]
) -> Pretrained:
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

    run_epochs(learner.learn, learner.stopping, schedule.epochs, leave_behind, advance, before=learner.draw)
    learner.store(done, here)
    return done


class _Learner:
    """The state of R replicas: weights with their Adam, keys of every epoch, and who has stopped."""

    def __init__(self, objective: PretextTask, schedule: Schedule, seeds: list[int]) -> None:
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
