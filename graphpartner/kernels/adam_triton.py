"""The compiled GPU loop of :mod:`graphpartner.kernels.adam`, in Triton. Imported only where there is a GPU."""

import torch
import triton
import triton.language as tl
from torch import Tensor


@triton.jit(do_not_specialize=["size", "total"])
def _adam(
    W,
    G,
    mean,
    square,
    rate,
    decay,
    corrections,
    size,
    total,
    BETA1: tl.constexpr,
    BETA2: tl.constexpr,
    EPSILON: tl.constexpr,
    BLOCK: tl.constexpr,
):
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = place < total
    replica = place // size
    weight = tl.load(W + place, mask=inside, other=0)
    gradient = tl.load(G + place, mask=inside, other=0) + tl.load(decay + replica, mask=inside, other=0) * weight
    m = BETA1 * tl.load(mean + place, mask=inside, other=0) + (1 - BETA1) * gradient
    v = BETA2 * tl.load(square + place, mask=inside, other=0) + (1 - BETA2) * gradient * gradient
    tl.store(mean + place, m, mask=inside)
    tl.store(square + place, v, mask=inside)
    correction1, correction2 = tl.load(corrections), tl.load(corrections + 1)
    step = tl.load(rate + replica, mask=inside, other=0) * (m / correction1)
    tl.store(W + place, weight - step / (tl.sqrt(v / correction2) + EPSILON), mask=inside)


def adam(
    W: Tensor,
    G: Tensor,
    mean: Tensor,
    square: Tensor,
    rate: Tensor,
    decay: Tensor,
    steps: Tensor,
    betas: tuple[float, float],
    epsilon: float,
) -> None:
    """One step of Adam in place, all tensors [R, rows, columns], ``rate`` and ``decay`` [R], ``steps`` [1]."""
    corrections = torch.cat([1 - beta**steps for beta in betas]).float()
    block, size = 1024, W[0].numel()
    grid = (triton.cdiv(W.numel(), block),)
    _adam[grid](W, G.contiguous(), mean, square, rate, decay, corrections, size, W.numel(), *betas, epsilon, block)
