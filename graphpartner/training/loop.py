"""The training loop: epochs of R replicas at a time, each until early stopping freezes it.

A frozen replica keeps its best weights; when few are still training, the batch is compacted to these. On a GPU an epoch
is captured once as a CUDA graph and replayed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

CHECK_EVERY = 10  # epochs between two checks for stopped replicas, where a check makes the device wait
COMPACT_BELOW = 0.5  # share of replicas still training below which a batch is compacted
WARM_UP = 3  # calls before the capture, in which kernels are compiled and memory is allocated


class Limits(Protocol):
    """How long to train."""

    @property
    def epochs(self) -> int:
        """Maximum number of epochs."""

    @property
    def patience(self) -> int:
        """Number of epochs without a lower validation loss after which a replica stops."""


class Learner(Protocol):
    """R replicas trained together: a :class:`graphpartner.training.batch.Batch`, or those of another model."""

    epoch: Tensor
    """Number of epochs done, [1], on the device."""

    @property
    def shared(self) -> Limits:
        """Settings that all replicas have in common."""

    @property
    def curves(self) -> tuple[str, ...]:
        """Names of what is recorded per epoch: the losses of :meth:`step`, validation loss and accuracy."""

    @property
    def weights(self) -> tuple[Tensor, ...]:
        """The weights to restore from the best epoch, [R, rows, columns] each."""

    def step(self) -> Sequence[Tensor]:
        """Train for one epoch and return the losses, [R] each."""

    def validate(self) -> tuple[Tensor, Tensor]:
        """Return validation loss and accuracy, [R] each."""

    def keep(self, replicas: Tensor) -> None:
        """Drop all other replicas."""


class EarlyStopping:
    """The weights of the epoch with the lowest validation loss, for each replica.

    A replica stops after ``patience`` epochs without a lower loss; later epochs do not change what is stored for it.
    A loss that is not a number is never lower.
    """

    def __init__(self, weights: tuple[Tensor, ...], patience: int) -> None:
        replicas, device = weights[0].shape[0], weights[0].device
        self.patience = patience
        self.best = tuple(weight.clone() for weight in weights)
        self.loss = torch.full((replicas,), torch.inf, device=device)
        self.epoch = torch.full((replicas,), -1, device=device)
        self.active = torch.ones(replicas, dtype=torch.bool, device=device)
        self.replicas = torch.arange(replicas, device=device)  # indices in the batch before any compaction

    def update(self, epoch: Tensor, loss: Tensor, weights: tuple[Tensor, ...]) -> None:
        """Record the validation losses [R] of one epoch and the weights that gave them, in place."""
        better = self.active & (loss < self.loss)
        torch.where(better, loss, self.loss, out=self.loss)
        torch.where(better, epoch, self.epoch, out=self.epoch)
        self.active &= epoch - self.epoch < self.patience
        if loss.device.type == "cpu" and not better.any():  # on a GPU the test would cost more than the copy
            return
        for best, weight in zip(self.best, weights, strict=True):
            torch.where(better[:, None, None], weight, best, out=best)

    def keep(self, replicas: Tensor) -> None:
        """Drop all other replicas."""
        self.best = tuple(best[replicas] for best in self.best)
        self.loss, self.epoch, self.active = self.loss[replicas], self.epoch[replicas], self.active[replicas]
        self.replicas = self.replicas[replicas]


@dataclass
class Trained:
    """The outcome of R runs: weights, validation loss and best epoch [R, …], and the history [epochs, R, …]."""

    weights: tuple[Tensor, ...]
    val_loss: Tensor
    best_epoch: Tensor
    history: Tensor

    def store(self, stopping: EarlyStopping) -> None:
        """Copy the best epoch of the replicas that are still in the batch."""
        for weight, best in zip(self.weights, stopping.best, strict=True):
            weight[stopping.replicas] = best
        self.val_loss[stopping.replicas] = stopping.loss
        self.best_epoch[stopping.replicas] = stopping.epoch

    @staticmethod
    def join(parts: "list[Trained]") -> "Trained":
        """Concatenate the runs of several batches."""
        weights = zip(*(part.weights for part in parts), strict=True)
        return Trained(
            tuple(torch.cat(weight) for weight in weights),
            torch.cat([part.val_loss for part in parts]),
            torch.cat([part.best_epoch for part in parts]),
            torch.cat([part.history for part in parts], dim=1),
        )


def train_replicas(
    batch: Learner, advance: Callable[[int], None], until: Callable[[], bool] = lambda: False
) -> Trained:
    """Train one batch until every replica has stopped or ``until`` is true, and return the best weights of each."""
    epochs = batch.shared.epochs
    stopping = EarlyStopping(batch.weights, batch.shared.patience)
    shape = (epochs, stopping.loss.numel(), len(batch.curves))
    trained = Trained(
        tuple(torch.empty_like(weight) for weight in batch.weights),
        torch.empty_like(stopping.loss),
        torch.empty_like(stopping.epoch),
        torch.full(shape, torch.nan, device=stopping.loss.device),
    )

    def one_epoch() -> None:
        losses = batch.step()
        val_loss, val_accuracy = batch.validate()
        stopping.update(batch.epoch, val_loss, batch.weights)
        trained.history[batch.epoch, stopping.replicas] = torch.stack([*losses, val_loss, val_accuracy], -1)
        batch.epoch += 1

    def compact(training: Tensor) -> None:
        trained.store(stopping)
        batch.keep(training)
        stopping.keep(training)

    run_epochs(one_epoch, stopping, epochs, compact, advance, until=until)
    trained.store(stopping)
    return trained


def run_epochs(
    one_epoch: Callable[[], None],
    stopping: EarlyStopping,
    epochs: int,
    compact: Callable[[Tensor], None],
    advance: Callable[[int], None],
    before: Callable[[int], None] = lambda epoch: None,
    until: Callable[[], bool] = lambda: False,
) -> None:
    """Run epochs until every replica has stopped, with batches compacted to those that are still training.

    Args:
        one_epoch: trains for one epoch and updates ``stopping``.
        stopping: which replicas are still training.
        epochs: maximum number of epochs.
        compact: reduces the batch to the replicas at these places.
        advance: called with the number of epochs done since the last call, summed over the replicas.
        before: called before each epoch with its number, outside of the captured CUDA graph.
        until: checked from time to time; training ends when it is true.
    """
    device, replicas = stopping.loss.device, stopping.loss.numel()
    step, reported = CapturedStep(one_epoch, device), 0
    for epoch in range(epochs):
        before(epoch)
        step()
        if device.type != "cpu" and epoch % CHECK_EVERY:
            continue
        advance(replicas * (epoch - reported))
        reported = epoch
        training = stopping.active.nonzero().squeeze(-1)
        if not training.numel() or until():
            break
        if training.numel() < COMPACT_BELOW * stopping.loss.numel():
            compact(training)
            step = CapturedStep(one_epoch, device)
    advance(replicas * (epochs - reported))


class CapturedStep:
    """A function without arguments, captured as a CUDA graph on a GPU and called as it is on a CPU.

    The first calls run uncaptured, on a stream of their own; the next one is captured, and every call from then on
    replays it. The function must read and write the same tensors in every call, so what changes (such as the epoch)
    must be a tensor on the device. After a change of shape a new step is needed.
    """

    def __init__(self, work: Callable[[], None], device: torch.device) -> None:
        self.work = work
        self.calls = 0
        self.stream = torch.cuda.Stream(device) if device.type == "cuda" else None

    def __call__(self) -> None:
        """Run the function once."""
        if self.stream is None:
            self.work()
            return
        if self.calls < WARM_UP:
            self.stream.wait_stream(torch.cuda.current_stream(self.stream.device))
            with torch.cuda.stream(self.stream):
                self.work()
            torch.cuda.current_stream(self.stream.device).wait_stream(self.stream)
        else:
            if self.calls == WARM_UP:
                self.graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(self.graph, stream=self.stream):
                    self.work()
            self.graph.replay()
        self.calls += 1
