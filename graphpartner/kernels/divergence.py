"""The mean KL divergence between two softmax distributions, with its gradient computed in the same pass."""

from typing import Any

import torch
from torch import Tensor

from graphpartner.kernels.table import Kernels


def mean_divergence(P: Tensor, Q: Tensor, temperature: Tensor) -> Tensor:
    """Return 1/n Σ_ij p_ij (ln p_ij − ln q_ij) with p = softmax(P / T) and q = softmax(Q / T).

    The gradients by P_ij and Q_ij are p_ij (ln p_ij − ln q_ij − KL_i) / (n T) and (q_ij − p_ij) / (n T), and follow
    from p and q at no further cost.

    Args:
        P: logits [..., n, C].
        Q: logits of the same shape.
        temperature: T, of the leading shape [...], which is that of the result.
    """
    return _MeanDivergence.apply(P, Q, temperature)


class _MeanDivergence(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, P: Tensor, Q: Tensor, temperature: Tensor) -> Tensor:
        loops = Kernels.on(P.device).divergence if P.dtype == torch.float32 else None
        rows, by_p, by_q = (loops.divergence if loops else _divergence)(P, Q, temperature)
        ctx.save_for_backward(by_p, by_q, temperature)
        return rows.mean(-1)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None]:
        by_p, by_q, temperature = ctx.saved_tensors
        share = (gradient / (by_p.shape[-2] * temperature))[..., None, None]
        return share * by_p, share * by_q, None


def _divergence(P: Tensor, Q: Tensor, temperature: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the KL divergence of every row, and T times its gradients by P and Q."""
    log_p, log_q = ((logits / temperature[..., None, None]).log_softmax(-1) for logits in (P, Q))
    p, q, difference = log_p.exp(), log_q.exp(), log_p - log_q
    rows = (p * difference).sum(-1)
    return rows, p * (difference - rows[..., None]), q - p
