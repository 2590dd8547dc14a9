"""Self-supervised baselines: an encoder is trained without labels, then a logistic regression on its embeddings.

DGI, MVGRL and GRACE bring their loss as a :class:`PretextTask`; everything else is here, for R replicas at a time.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from graphpartner.graph.record import GraphRecord
from graphpartner.kernels import draws
from graphpartner.kernels.adam import Adam
from graphpartner.kernels.row_products import rows_of
from graphpartner.lab.baselines.supervised import BaselineRuns
from graphpartner.model.losses import nll
from graphpartner.system.parallel import EpochCounter, plan_batch, run_in_batches
from graphpartner.system.progress import Progress, silent
from graphpartner.training.loop import EarlyStopping, run_epochs
from graphpartner.training.prepared import DeviceGraph, Labelled, labelled
from graphpartner.training.settings import Checked, between

SLOPE = 0.25  # initial slope of PReLU
STRENGTHS = tuple(10 ** (-5 + step / 2) for step in range(11))  # λ from 1e-5 to 1
STEPS = 500

EncoderWeights = tuple[Tensor, ...]


@dataclass(frozen=True)
class PretextSettings(Checked):
    """Hyperparameters of every self-supervised baseline."""

    features: Literal["raw", "row"] = "row"
    """``raw`` as they are, or ``row``: every row divided by its sum."""
    hidden_channels: int = between(512, 1, 65536)
    """Width of the embedding."""
    lr: float = between(0.001, 0, 100)
    """Learning rate of Adam."""
    weight_decay: float = between(0.0, 0, 1e3)
    """Weight decay of the encoder."""
    regression_decay: float = between(0.0, 0, 1e3)
    """Weight decay of the logistic regression on the embeddings as they are; 0: chosen on validation nodes."""
    epochs: int = between(1000, 1, 10_000_000)
    """Maximum number of epochs."""

    @property
    def patience(self) -> int | None:
        """Number of epochs without a lower loss after which a run stops; None: all epochs, and the last weights."""
        return None


class PretextTask(ABC):
    """A loss without labels on one graph. All weights are [R, rows, columns], all draws and losses [R, …]."""

    Settings: ClassVar[type[PretextSettings]] = PretextSettings
    settings: PretextSettings
    draws_per_epoch: ClassVar[dict[str, int]]
    """Stream of :mod:`graphpartner.kernels.draws` → number of its keys per epoch."""
    memory: int
    """Estimated bytes per replica."""

    def __init__(self, graph: DeviceGraph, settings: Any) -> None:
        self.graph, self.settings, self.device = graph, settings, graph.device
        self.X, self.width = graph.features(settings.features), settings.hidden_channels

    @abstractmethod
    def initial(self, seeds: list[int]) -> EncoderWeights:
        """Return the weights at the start."""

    @abstractmethod
    def draw(self, keys: dict[str, Tensor]) -> tuple[Tensor, ...]:
        """Return the draws of one epoch by its keys, [number, R, 2] per stream.

        They are made outside of what a GPU has captured, so sorting is allowed.
        """

    @abstractmethod
    def loss(self, weights: EncoderWeights, drawn: tuple[Tensor, ...]) -> Tensor:
        """Return what is minimised, [R]."""

    @abstractmethod
    def embed(self, weights: EncoderWeights) -> Tensor:
        """Return the embedding of every node, [R, n, h]."""


def prelu(H: Tensor, slope: Tensor) -> Tensor:
    """max(H, 0) + a · min(H, 0), with one learned a per replica: H [R, …], a of R numbers."""
    return F.prelu(H[None], slope.flatten())[0]


@dataclass
class Pretrained:
    """R encoders: their weights, the loss these gave (the lowest, or the last), and the number of epochs of each."""

    weights: EncoderWeights
    loss: Tensor
    epochs: Tensor


def pretrain(task: PretextTask, seeds: list[int], advance: Callable[[int], None]) -> Pretrained:
    """Minimise a loss by Adam until every replica has stopped.

    ``advance`` is called with the number of epochs done since its last call, summed over the replicas.
    """
    state = _Pretraining(task, seeds)
    device, replicas, epochs = task.device, len(seeds), task.settings.epochs
    done = Pretrained(
        tuple(torch.empty_like(weight) for weight in state.weights),
        torch.full((replicas,), torch.nan, device=device),
        torch.full((replicas,), epochs, device=device),
    )
    here = torch.arange(replicas, device=device)  # the replicas still in the batch

    def compact(learning: Tensor) -> None:
        nonlocal here
        state.store(done, here)
        state.keep(learning)
        here = here[learning]

    run_epochs(state.step, state.stopping, epochs, compact, advance, before=state.draw)
    state.store(done, here)
    return done


class _Pretraining:
    """R replicas in training: weights with their Adam, keys of every epoch, and early stopping."""

    def __init__(self, task: PretextTask, seeds: list[int]) -> None:
        self.task, self.epochs, self.patience = task, task.settings.epochs, task.settings.patience
        device, initial = task.device, task.initial(seeds)
        rate, decay = (
            torch.full((len(seeds),), value, device=device) for value in (task.settings.lr, task.settings.weight_decay)
        )
        self.optimizers = [Adam(weight, rate, decay) for weight in initial]
        self.keys = {
            stream: draws.keys(seeds, stream, number * self.epochs)
            .reshape(self.epochs, number, len(seeds), 2)
            .to(device)
            for stream, number in task.draws_per_epoch.items()
        }
        watched = initial if self.patience else tuple(weight[:, :0] for weight in initial)  # no copies that none needs
        self.stopping = EarlyStopping(watched, self.patience or self.epochs + 1)
        self.epoch = torch.zeros(1, dtype=torch.int64, device=device)
        self.loss = torch.full((len(seeds),), torch.nan, device=device)
        self.drawn: tuple[Tensor, ...] = ()

    @property
    def weights(self) -> EncoderWeights:
        return tuple(optimizer.weight for optimizer in self.optimizers)

    def draw(self, epoch: int) -> None:
        """Write this epoch's draws to where the captured step reads them."""
        drawn = self.task.draw({stream: keys[epoch] for stream, keys in self.keys.items()})
        if not self.drawn:
            self.drawn = tuple(torch.empty_like(new) for new in drawn)
        for place, new in zip(self.drawn, drawn, strict=True):
            place.copy_(new)

    def step(self) -> None:
        """One epoch: loss, gradients, Adam. The best weights are those that gave the lowest loss."""
        weights = tuple(weight.detach().requires_grad_() for weight in self.weights)
        loss = self.task.loss(weights, self.drawn)
        gradients = torch.autograd.grad(loss.sum(), weights)
        self.loss.copy_(loss.detach())
        if self.patience:
            self.stopping.update(self.epoch, self.loss, self.weights)
        for optimizer, gradient in zip(self.optimizers, gradients, strict=True):
            optimizer.step(gradient)
        self.epoch += 1

    def store(self, done: Pretrained, replicas: Tensor) -> None:
        """Write the results of the batch, which holds these replicas, into ``done``."""
        stopping = self.stopping
        for result, weight in zip(done.weights, stopping.best if self.patience else self.weights, strict=True):
            result[replicas] = weight
        done.loss[replicas] = stopping.loss if self.patience else self.loss
        if self.patience:
            done.epochs[replicas] = (stopping.epoch + self.patience + 1).clamp(max=self.epochs)

    def keep(self, replicas: Tensor) -> None:
        """Go on with these replicas alone."""
        self.keys = {stream: keys[:, :, replicas] for stream, keys in self.keys.items()}
        for optimizer in self.optimizers:
            optimizer.keep(replicas)
        self.stopping.keep(replicas)
        self.loss, self.drawn = self.loss[replicas], ()


class Fitted(NamedTuple):
    """The chosen regression of every replica."""

    logits: Tensor
    """[R, n, C]"""
    val_loss: Tensor
    """[R]"""
    strength: Tensor
    """λ, [R]"""


def logistic_regression(
    embeddings: Tensor,
    train: Labelled,
    val: Labelled,
    num_classes: int,
    strengths: tuple[float, ...] = STRENGTHS,
    steps: int = STEPS,
    decay: float = 0.0,
) -> Fitted:
    """Fit a logistic regression per replica on the nodes of ``train``, with λ chosen on those of ``val``.

    For every replica and every strength λ at once, over its m training nodes, it minimises

        1/m Σ_i CE(softmax(e_i B + c), y_i) + λ/2 ‖B‖².

    In scikit-learn's terms, C = 1 / (λ m). The strength with the highest validation accuracy is taken, and of equals
    the one with the lowest validation loss. No other label is read. After ``STEPS`` steps probabilities are those of
    the minimum within 1e-3 from λ = 1e-3 on; the weakest strengths are stopped early.

    The embeddings are centred and divided by their root mean square norm over all nodes first: with a free intercept
    that changes nothing but the scale of λ, which then means the same for every method.

    Args:
        embeddings: [R, n, h].
        train: nodes to fit, [m] or [R, m].
        val: nodes for the choice of λ, likewise.
        num_classes: C.
        strengths: the λ to choose from.
        steps: number of steps of the accelerated gradient descent.
        decay: λ for the embeddings as they are, where a method's authors name one; 0: λ is chosen.
    """
    E = embeddings - embeddings.mean(1, keepdim=True)
    norm = E.square().sum(-1).mean(-1).sqrt().clamp(min=1e-15)  # its square is a float too
    E = E / norm[:, None, None]
    replicas, width = E.shape[0], E.shape[2]
    # B grows by the factor that embeddings shrink by
    lambdas = (decay / norm.square())[:, None] if decay else E.new_tensor(strengths).expand(replicas, -1)  # [R, K]
    B, c = minimise(rows_of(E, train.index), train.target, train.weight, lambdas, num_classes, steps)
    val_logits = _by_strength(rows_of(E, val.index) @ B.reshape(replicas, width, -1), num_classes) + c
    target = val.target.expand(val_logits.shape[0], val_logits.shape[1])
    weight = torch.full_like(target, 1 / target.shape[-1], dtype=E.dtype) if val.weight is None else val.weight
    right = ((val_logits.argmax(-1) == target[..., None]) * weight[..., None]).sum(1)  # [R, K]
    loss = nll(val_logits.transpose(1, 2).log_softmax(-1), target[:, None], weight[:, None])
    most = right.max(-1, keepdim=True).values
    best = loss.masked_fill(right < most - 1e-6, torch.inf).argmin(-1)
    replica = torch.arange(replicas, device=E.device)
    logits = E @ B[replica, :, best] + c[replica, :, best]
    return Fitted(logits, loss[replica, best], lambdas[replica, best])


def minimise(
    E: Tensor, target: Tensor, weight: Tensor | None, decay: Tensor, num_classes: int, steps: int
) -> tuple[Tensor, Tensor]:
    """Return B [R, h, K, C] and c [R, 1, K, C] for E [R, m, h] and strengths [R, K].

    Nesterov's accelerated gradient descent with step 1/L, L = ½ σ_max([√w E, √w])² + λ, whose momentum restarts,
    problem by problem, whenever it points uphill (O'Donoghue and Candès, 2015).
    """
    replicas, m, width = E.shape
    E = torch.cat([E, torch.ones_like(E[..., :1])], -1)  # the intercept is the weight of a constant
    w = torch.full((replicas, m), 1 / m, dtype=E.dtype, device=E.device) if weight is None else weight
    one_hot = F.one_hot(target, num_classes).to(E.dtype).expand(replicas, m, -1)
    strength = decay[:, None, :, None]  # [R, 1, K, 1]
    decays = strength.repeat(1, width + 1, 1, 1)
    decays[:, -1] = 0
    largest = torch.linalg.matrix_norm(w.sqrt()[..., None] * E, 2).square()
    step = 1 / (largest[:, None, None, None] / 2 + strength)
    theta = E.new_zeros(replicas, width + 1, decay.shape[1], num_classes)
    ahead, momentum = theta, torch.ones_like(step)
    for _ in range(steps):
        guess = _by_strength(E @ ahead.reshape(replicas, width + 1, -1), num_classes).softmax(-1)
        error = (guess - one_hot[:, :, None]) * w[..., None, None]
        gradient = (E.mT @ error.reshape(replicas, m, -1)).reshape(theta.shape) + decays * ahead
        new = ahead - step * gradient
        uphill = (gradient * (new - theta)).sum((1, 3), keepdim=True) > 0
        momentum = momentum.masked_fill(uphill, 1)
        following = (1 + (1 + 4 * momentum.square()).sqrt()) / 2
        ahead = new + (momentum - 1) / following * (new - theta)
        theta, momentum = new, following
    return theta[:, :-1], theta[:, -1:]


def _by_strength(logits: Tensor, num_classes: int) -> Tensor:
    """[R, m, K·C] → [R, m, K, C]."""
    return logits.reshape(*logits.shape[:2], -1, num_classes)


def train_self_supervised(
    name: str,
    method: type[PretextTask],
    settings: PretextSettings,
    data: GraphRecord,
    seeds: list[int],
    device: torch.device,
    progress: Progress = silent,
    batch_size: int | None = None,
) -> BaselineRuns:
    """Train one encoder per seed on features and edges alone, then a logistic regression on the labels."""
    began = time.perf_counter()
    graph = DeviceGraph(data, device)
    task = method(graph, settings)
    train = labelled(data.train_mask, data.y, len(seeds), "train_mask", device)
    val = labelled(data.val_mask, data.y, len(seeds), "val_mask", device)
    batch_size = batch_size or plan_batch(len(seeds), lambda: task.memory, device)
    counter = EpochCounter(progress, len(seeds) * settings.epochs)

    def train_part(part: slice) -> tuple[Tensor, Tensor, Tensor]:
        replicas = torch.arange(part.start, part.stop, device=device)
        encoders = pretrain(task, seeds[part], counter.add)
        with torch.no_grad():
            E = task.embed(encoders.weights)
            nodes = train.of(replicas), val.of(replicas)
            fitted = logistic_regression(E, *nodes, graph.num_classes, decay=settings.regression_decay)
        return fitted.logits.cpu(), fitted.val_loss.cpu(), encoders.epochs.cpu()

    parts = run_in_batches(train_part, len(seeds), batch_size, device, counter)
    logits, val_loss, epochs = (torch.cat(results) for results in zip(*parts, strict=True))
    encoder = sum(weight.numel() for weight in task.initial(seeds[:1]))
    return BaselineRuns(
        name=name,
        seeds=seeds,
        logits=logits,
        y=data.y,
        val_loss=val_loss,
        epochs=epochs,
        parameters=encoder + (settings.hidden_channels + 1) * graph.num_classes,
        seconds=time.perf_counter() - began,
    )
