"""R runs of one baseline, trained as one program: what :func:`graphpartner.train.trainer.run` trains."""

import torch
from torch import Tensor

from graphpartner.baselines.model import Model, Output, Weights
from graphpartner.baselines.noise import Initial, Noise, Quiet
from graphpartner.baselines.settings import BaselineSettings
from graphpartner.model.row_products import rows_of
from graphpartner.train.adam import Adam
from graphpartner.train.batch import loss_and_accuracy
from graphpartner.train.problem import Labelled


class BaselineBatch:
    """R runs that differ in seed and split.

    Args:
        model: the baseline on its graph.
        settings: of all runs.
        seeds: one for each run; a run's random draws depend on its own seed alone.
        train: labelled nodes to learn from.
        val: labelled nodes to stop by.
    """

    curves = ("loss", "val_loss", "val_accuracy")

    def __init__(
        self, model: Model, settings: BaselineSettings, seeds: list[int], train: Labelled, val: Labelled
    ) -> None:
        self.model, self.shared, self.train, self.val = model, settings, train, val
        device = model.graph.device
        self.noise = Noise(seeds, settings.epochs, device)
        self.epoch = self.noise.epoch
        self.optimizers: dict[str, Adam] = {}
        self.buffers: Weights = {}
        rate = torch.full((len(seeds),), settings.lr, device=device)
        for name, weight in model.weights(Initial(seeds, device)).items():
            if weight.learned:
                self.optimizers[name] = Adam(weight.value, rate, torch.full_like(rate, weight.decay))
            else:
                self.buffers[name] = weight.value

    @property
    def named(self) -> Weights:
        """All weights by name, [R, rows, columns] each."""
        return {name: optimizer.weight for name, optimizer in self.optimizers.items()} | self.buffers

    @property
    def weights(self) -> tuple[Tensor, ...]:
        """The same without their names."""
        return tuple(self.named.values())

    def step(self) -> tuple[Tensor]:
        """One epoch of learning: forward pass, loss, gradients, Adam."""
        learned = {name: optimizer.weight.detach().requires_grad_() for name, optimizer in self.optimizers.items()}
        loss = self.model.loss(learned | self.buffers, self.noise, self.train)
        gradients = torch.autograd.grad(loss.sum(), tuple(learned.values()))
        for optimizer, gradient in zip(self.optimizers.values(), gradients, strict=True):
            optimizer.step(gradient)
        return (loss.detach(),)

    @torch.no_grad()
    def output(self) -> Output:
        """The forward pass without noise."""
        return self.model.forward(self.named, Quiet())

    def validate(self) -> tuple[Tensor, Tensor]:
        """Validation loss and accuracy, [R] each."""
        return loss_and_accuracy(rows_of(self.output().logits, self.val.index), self.val)

    def keep(self, replicas: Tensor) -> None:
        """Go on with these runs alone."""
        self.noise.keep(replicas)
        self.train, self.val = self.train.of(replicas), self.val.of(replicas)
        for optimizer in self.optimizers.values():
            optimizer.keep(replicas)
        self.buffers = {name: value[replicas] for name, value in self.buffers.items()}
