"""KL divergence of two softmax distributions, row by row, with its gradient in the same pass."""

from functools import cache
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor


def divergence(P: Tensor, Q: Tensor) -> Tensor:
    """Σ_j p_j (ln p_j − ln q_j) for every row of the logits P and Q [..., n, C]; p and q are their softmaxes: [..., n].

    The gradients are p_j (ln p_j − ln q_j − KL) and q_j − p_j: both cost nothing more once p and q are there.
    """
    return _Divergence.apply(P, Q)


class _Divergence(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, P: Tensor, Q: Tensor) -> Tensor:
        compiled = _kernels() if P.device.type == "cpu" and P.dtype == torch.float32 else None
        total, by_p, by_q = (compiled or _plain)(P, Q)
        ctx.save_for_backward(by_p, by_q)
        return total

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        by_p, by_q = ctx.saved_tensors
        return gradient[..., None] * by_p, gradient[..., None] * by_q


def _plain(P: Tensor, Q: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    log_p, log_q = P.log_softmax(-1), Q.log_softmax(-1)
    p, q, difference = log_p.exp(), log_q.exp(), log_p - log_q
    total = (p * difference).sum(-1)
    return total, p * (difference - total[..., None]), q - p


@cache
def _kernels() -> Any:
    if not find_spec("numba"):
        return None
    from graphpartner.model import divergence_numba

    return divergence_numba.divergence
