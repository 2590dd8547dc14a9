"""Early stopping for R replicas: the best weights of each are kept, and who has stopped is frozen."""

import torch
from torch import Tensor


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
