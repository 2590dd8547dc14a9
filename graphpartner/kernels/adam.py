"""Adam for R replicas at once: each has its own learning rate and weight decay."""

from typing import Any

import torch
from torch import Tensor

from graphpartner.kernels.table import Kernels

BETAS, EPSILON = (0.9, 0.999), 1e-8


def _numba() -> Any:
    from graphpartner.kernels import adam_numba

    return adam_numba


def _triton() -> Any:
    from graphpartner.kernels import adam_triton

    return adam_triton


KERNELS = Kernels(cpu=_numba, cuda=_triton)


class Adam:
    """Adam with L2 regularisation inside it: the decayed weight is part of the gradient.

    Args:
        weight: [R, rows, columns], updated in place.
        rate: learning rates, [R].
        decay: weight decays, [R].
    """

    def __init__(self, weight: Tensor, rate: Tensor, decay: Tensor) -> None:
        self.weight, self.rate, self.decay = weight, rate, decay
        self.mean, self.square = torch.zeros_like(weight), torch.zeros_like(weight)
        self.steps = torch.zeros(1, dtype=torch.float64, device=weight.device)  # on the device, to be part of a program

    def step(self, gradient: Tensor) -> None:
        """One update by this gradient, [R, rows, columns]."""
        self.steps += 1
        if (loops := KERNELS.on(self.weight.device)) is not None:
            state = (self.weight, gradient, self.mean, self.square, self.rate, self.decay)
            loops.adam(*state, self.steps, BETAS, EPSILON)
            return
        corrections = [(1 - beta**self.steps).float() for beta in BETAS]
        rate, decay = self.rate[:, None, None], self.decay[:, None, None]
        gradient = gradient + decay * self.weight
        self.mean.lerp_(gradient, 1 - BETAS[0])
        self.square.mul_(BETAS[1]).addcmul_(gradient, gradient, value=1 - BETAS[1])
        denominator = (self.square / corrections[1]).sqrt_().add_(EPSILON)
        self.weight.sub_(rate * (self.mean / corrections[0]) / denominator)

    def keep(self, replicas: Tensor) -> None:
        """Go on with these replicas alone."""
        for name in ("weight", "rate", "decay", "mean", "square"):
            setattr(self, name, getattr(self, name)[replicas])
