"""Adam for R replicas at once: each has its own learning rate and weight decay."""

import numpy as np
import torch
from torch import Tensor

from graphpartner.train.cpu_kernels import cpu_kernels

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8


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
        self.steps = 0

    def step(self, gradient: Tensor) -> None:
        """One update by this gradient, [R, rows, columns]."""
        self.steps += 1
        correction1, correction2 = 1 - BETA1**self.steps, 1 - BETA2**self.steps
        kernels = cpu_kernels() if self.weight.device.type == "cpu" else None
        if kernels is not None:
            tensors = (self.weight, gradient.contiguous(), self.mean, self.square, self.rate, self.decay)
            arrays = [tensor.detach().numpy() for tensor in tensors]
            kernels.adam(*arrays, np.float32(correction1), np.float32(correction2))
            return
        rate, decay = self.rate[:, None, None], self.decay[:, None, None]
        gradient = gradient + decay * self.weight
        self.mean.lerp_(gradient, 1 - BETA1)
        self.square.mul_(BETA2).addcmul_(gradient, gradient, value=1 - BETA2)
        denominator = (self.square / correction2).sqrt_().add_(EPSILON)
        self.weight.sub_(rate * (self.mean / correction1) / denominator)

    def keep(self, replicas: Tensor) -> None:
        """Go on with these replicas alone."""
        for name in ("weight", "rate", "decay", "mean", "square"):
            setattr(self, name, getattr(self, name)[replicas])
