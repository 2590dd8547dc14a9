"""Adam on a GPU, in Triton."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from graphpartner.kernels.adam import BETAS, EPSILON, Adam


@triton.jit(do_not_specialize=["size", "total"])
def _adam(
    W, G, mean, square, rate, decay, corrections, size, total, BETA1: tl.constexpr, BETA2: tl.constexpr,
    TINY: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
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
    tl.store(W + place, weight - step / (tl.sqrt(v / correction2) + TINY), mask=inside)


def step(adam: Adam, gradient: Tensor) -> None:
    """Update the weights in place by their gradient."""
    corrections = torch.cat([1 - beta**adam.steps for beta in BETAS]).float()
    block, size, total = 1024, adam.weight[0].numel(), adam.weight.numel()
    state = (adam.weight, gradient.contiguous(), adam.mean, adam.square, adam.rate, adam.decay)
    _adam[(triton.cdiv(total, block),)](*state, corrections, size, total, *BETAS, EPSILON, block)
