"""H W for a W with few columns, on a CPU.

Matrix libraries are slow where one factor has only a handful of columns, such as the C classes: with W padded to 16
columns the product takes a quarter of the time, and so does its gradient by W when computed as (Gᵀ H)ᵀ.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

NARROW_BELOW = 16


def matmul_narrow(H: Tensor, weight: Tensor) -> Tensor:
    """Return H W for H [..., n, h] and W [..., h, C], with any number of replicas."""
    if H.device.type != "cpu" or weight.shape[-1] >= NARROW_BELOW:
        return H @ weight
    return _NarrowProduct.apply(H, weight)


class _NarrowProduct(torch.autograd.Function):
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
    """Remove a batch dimension of size 1, which would be slower than none."""
    return H[0] if H.dim() == 3 and H.shape[0] == 1 else H
