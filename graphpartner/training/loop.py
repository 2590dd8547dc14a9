"""The same work again and again: on a GPU it is captured once and replayed, so that launching it costs nothing.

Early stopping for R replicas: the best weights of each are kept, and who has stopped is frozen.

Epoch after epoch, for replicas that stop at different times.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

WARM_UP = 3  # runs before the capture, in which kernels are compiled and memory is found


class CapturedStep:
    """``work``, a function without arguments that reads and writes tensors that stay where they are.

    On a CPU a call is a call. On a GPU the first calls run as they are, on a stream of their own; the next one is
    captured as a CUDA graph and from then on every call replays it. What changes from call to call (the epoch, say)
    must live on the device. After a change of shape a new program is needed.
    """

    def __init__(self, work: Callable[[], None], device: torch.device) -> None:
        self.work = work
        self.calls = 0
        self.stream = torch.cuda.Stream(device) if device.type == "cuda" else None

    def __call__(self) -> None:
        """Do the work once."""
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


class EarlyStopping:
    """Remembers, for every replica, the weights of the epoch with the lowest validation loss.

    A replica stops when ``patience`` epochs have gone by without a lower loss. From then on nothing that happens to
    its weights changes what is remembered. A loss that is not a number never counts as lower.
    """

    def __init__(self, weights: tuple[Tensor, ...], patience: int) -> None:
        replicas, device = weights[0].shape[0], weights[0].device
        self.patience = patience
        self.best = tuple(weight.clone() for weight in weights)
        self.loss = torch.full((replicas,), torch.inf, device=device)
        self.epoch = torch.full((replicas,), -1, device=device)
        self.active = torch.ones(replicas, dtype=torch.bool, device=device)

    def update(self, epoch: Tensor, loss: Tensor, weights: tuple[Tensor, ...]) -> None:
        """Take note of one epoch's validation losses [R] and the weights that gave them; all in place."""
        better = self.active & (loss < self.loss)
        torch.where(better, loss, self.loss, out=self.loss)
        torch.where(better, epoch, self.epoch, out=self.epoch)
        self.active &= epoch - self.epoch < self.patience
        if loss.device.type == "cpu" and not better.any():  # elsewhere asking would cost more than copying
            return
        for best, weight in zip(self.best, weights, strict=True):
            torch.where(better[:, None, None], weight, best, out=best)

    def keep(self, replicas: Tensor) -> None:
        """Go on with these replicas alone."""
        self.best = tuple(best[replicas] for best in self.best)
        self.loss, self.epoch, self.active = self.loss[replicas], self.epoch[replicas], self.active[replicas]


CHECK_EVERY = 10  # epochs between two looks at who has stopped, where looking makes the device wait
COMPACT_BELOW = 0.5  # frozen replicas are cut away when less than this share is still training


def run_epochs(
    work: Callable[[], None],
    stopping: EarlyStopping,
    epochs: int,
    go_on_with: Callable[[Tensor], None],
    advance: Callable[[int], None],
    before: Callable[[int], None] = lambda epoch: None,
    until: Callable[[], bool] = lambda: False,
) -> None:
    """Epoch after epoch until every replica has stopped; when many have, the others go on without them.

    Args:
        work: one epoch, which also updates ``stopping``.
        stopping: says who is still learning.
        epochs: at most so many.
        go_on_with: told which of the replicas in the batch are still learning; leaves the others behind.
        advance: hears of epochs done, summed over the replicas.
        before: called before every epoch with its number, outside of what a GPU has captured.
        until: asked now and then; end when it is true.
    """
    device, replicas = stopping.loss.device, stopping.loss.numel()
    program, told = CapturedStep(work, device), 0
    for epoch in range(epochs):
        before(epoch)
        program()
        if device.type != "cpu" and epoch % CHECK_EVERY:
            continue
        advance(replicas * (epoch - told))
        told = epoch
        learning = stopping.active.nonzero().squeeze(-1)
        if not learning.numel() or until():
            break
        if learning.numel() < COMPACT_BELOW * stopping.loss.numel():
            go_on_with(learning)
            program = CapturedStep(work, device)
    advance(replicas * (epochs - told))


@dataclass
class Trained:
    """The outcome of R runs: everything is [R, …] but the history, [epochs, R, …]."""

    weights: tuple[Tensor, ...]
    val_loss: Tensor
    best_epoch: Tensor
    history: Tensor

    def store(self, replicas: Tensor, stopping: EarlyStopping) -> None:
        """Take over what was remembered of these replicas."""
        for kept, best in zip(self.weights, stopping.best, strict=True):
            kept[replicas] = best
        self.val_loss[replicas] = stopping.loss
        self.best_epoch[replicas] = stopping.epoch

    @staticmethod
    def join(parts: "list[Trained]") -> "Trained":
        """Several batches as one."""
        weights = zip(*(part.weights for part in parts), strict=True)
        return Trained(
            tuple(torch.cat(weight) for weight in weights),
            torch.cat([part.val_loss for part in parts]),
            torch.cat([part.best_epoch for part in parts]),
            torch.cat([part.history for part in parts], dim=1),
        )


class Limits(Protocol):
    """How long to train."""

    @property
    def epochs(self) -> int:
        """At most so many epochs."""

    @property
    def patience(self) -> int:
        """Stop after so many epochs without a lower validation loss."""


class Learner(Protocol):
    """R replicas trained together: a :class:`graphpartner.training.batch.Batch`, or those of another model."""

    epoch: Tensor
    """[1], on the device: how many epochs are over"""

    @property
    def shared(self) -> Limits:
        """Settings that all replicas have in common."""

    @property
    def curves(self) -> tuple[str, ...]:
        """What is written down after every epoch: the losses of :meth:`step`, validation loss and accuracy."""

    @property
    def weights(self) -> tuple[Tensor, ...]:
        """What the best epoch is remembered by, each [R, rows, columns]."""

    def step(self) -> Sequence[Tensor]:
        """One epoch of learning; the losses, [R] each."""

    def validate(self) -> tuple[Tensor, Tensor]:
        """Validation loss and accuracy, [R] each."""

    def keep(self, replicas: Tensor) -> None:
        """Go on with these replicas alone."""


def train_replicas(
    batch: Learner, advance: Callable[[int], None], until: Callable[[], bool] = lambda: False
) -> Trained:
    """Train one batch until every replica has stopped, or ``until`` is true; the best weights of each are kept."""
    epochs, replicas = batch.shared.epochs, batch.weights[0].shape[0]
    stopping = EarlyStopping(batch.weights, batch.shared.patience)
    device = stopping.loss.device
    trained = Trained(
        tuple(torch.empty_like(weight) for weight in batch.weights),
        torch.empty_like(stopping.loss),
        torch.empty_like(stopping.epoch),
        torch.full((epochs, replicas, len(batch.curves)), torch.nan, device=device),
    )
    here = torch.arange(replicas, device=device)  # which of the replicas are still in the batch

    def one_epoch() -> None:
        losses = batch.step()
        val_loss, val_accuracy = batch.validate()
        stopping.update(batch.epoch, val_loss, batch.weights)
        trained.history[batch.epoch, here] = torch.stack([*losses, val_loss, val_accuracy], -1)
        batch.epoch += 1

    def leave_behind(training: Tensor) -> None:
        nonlocal here
        trained.store(here, stopping)
        batch.keep(training)
        stopping.keep(training)
        here = here[training]

    run_epochs(one_epoch, stopping, epochs, leave_behind, advance, until=until)
    trained.store(here, stopping)
    return trained
