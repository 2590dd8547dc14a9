"""H W for a W of few columns, on a CPU.

Matrix libraries are slow where one side has only a handful of columns, as the C classes are: with W filled up to 16
columns the same product takes a quarter of the time, and so does its gradient by W computed from the other side.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

FEW = 16


def times(H: Tensor, weight: Tensor) -> Tensor:
    """H W for H [..., n, h] and W [..., h, C], with any number of replicas."""
    if H.device.type != "cpu" or weight.shape[-1] >= FEW:
        return H @ weight
    if H.dim() == 3 and H.shape[0] == 1:  # a batch of one is slower than no batch
        return _Thin.apply(H[0], weight[0])[None]
    return _Thin.apply(H, weight)


class _Thin(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, H: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(H, weight)
        columns = weight.shape[-1]
        return (H @ F.pad(weight, (0, FEW - columns)))[..., :columns].contiguous()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        H, weight = ctx.saved_tensors
        by_weight = (gradient.transpose(-1, -2) @ H).transpose(-1, -2)
        return gradient @ weight.transpose(-1, -2), by_weight
