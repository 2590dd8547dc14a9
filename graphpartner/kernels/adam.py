"""Adam for R replicas at once, each with a learning rate and a weight decay of its own."""

import torch
from torch import Tensor

from graphpartner.kernels.table import Kernels

BETAS, EPSILON = (0.9, 0.999), 1e-8


class Adam:
    """Adam with L2 regularisation: the weight times its decay is added to the gradient.

    Args:
        weight: [R, rows, columns], updated in place.
        rate: learning rates, [R].
        decay: weight decays, [R].
    """

    def __init__(self, weight: Tensor, rate: Tensor, decay: Tensor) -> None:
        self.weight, self.rate, self.decay = weight, rate, decay
        self.mean, self.square = torch.zeros_like(weight), torch.zeros_like(weight)
        # on the device, so that a CUDA graph can capture it
        self.steps = torch.zeros(1, dtype=torch.float64, device=weight.device)

    def step(self, gradient: Tensor) -> None:
        """Update the weights by their gradient, [R, rows, columns]."""
        self.steps += 1
        if (loops := Kernels.on(self.weight.device).adam) is not None:
            loops.step(self, gradient)
            return
        corrections = [(1 - beta**self.steps).float() for beta in BETAS]
        rate, decay = self.rate[:, None, None], self.decay[:, None, None]
        gradient = gradient + decay * self.weight
        self.mean.lerp_(gradient, 1 - BETAS[0])
        self.square.mul_(BETAS[1]).addcmul_(gradient, gradient, value=1 - BETAS[1])
        denominator = (self.square / corrections[1]).sqrt_().add_(EPSILON)
        self.weight.sub_(rate * (self.mean / corrections[0]) / denominator)

    def keep(self, replicas: Tensor) -> None:
        """Drop all replicas but these."""
        for name in ("weight", "rate", "decay", "mean", "square"):
            setattr(self, name, getattr(self, name)[replicas])
