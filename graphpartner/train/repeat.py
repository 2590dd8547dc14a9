"""Epoch after epoch, for replicas that stop at different times."""

from collections.abc import Callable

from torch import Tensor

from graphpartner.train.program import Program
from graphpartner.train.stopping import EarlyStopping

CHECK_EVERY = 10  # epochs between two looks at who has stopped, where looking makes the device wait
COMPACT_BELOW = 0.5  # frozen replicas are cut away when less than this share is still training


def repeat(
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
    program, told = Program(work, device), 0
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
            program = Program(work, device)
    advance(replicas * (epochs - told))
