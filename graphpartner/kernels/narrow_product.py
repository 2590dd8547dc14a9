"""H W for a W of few columns, on a CPU.

Matrix libraries are slow where one side has only a handful of columns, as the C classes are: with W filled up to 16
columns the same product takes a quarter of the time, and so does its gradient by W computed from the other side.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

NARROW_BELOW = 16


def matmul_narrow(H: Tensor, weight: Tensor) -> Tensor:
    """H W for H [..., n, h] and W [..., h, C], with any number of replicas."""
    if H.device.type != "cpu" or weight.shape[-1] >= NARROW_BELOW:
        return H @ weight
    return _Thin.apply(H, weight)


class _Thin(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, H: Tensor, weight: Tensor) -> Tensor:
        ctx.shapes = H.shape, weight.shape
        H, weight = _without_batch_of_one(H), _without_batch_of_one(weight)
        ctx.save_for_backward(H, weight)
        columns = weight.shape[-1]
        product = H @ F.pad(weight, (0, NARROW_BELOW - columns))
        return product[..., :columns].contiguous().view(*ctx.shapes[0][:-1], columns)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        H, weight = ctx.saved_tensors
        gradient = _without_batch_of_one(gradient)
        by_weight = (gradient.transpose(-1, -2) @ H).transpose(-1, -2)
        return (gradient @ weight.transpose(-1, -2)).view(ctx.shapes[0]), by_weight.reshape(ctx.shapes[1])


def _without_batch_of_one(H: Tensor) -> Tensor:
    """A batch of one is slower than no batch."""
    return H[0] if H.dim() == 3 and H.shape[0] == 1 else H
