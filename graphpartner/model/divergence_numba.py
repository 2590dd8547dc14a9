"""The compiled CPU loop of :mod:`graphpartner.model.divergence`. Imported only where numba is installed."""

from typing import Any

import numba
import numpy as np
import torch
from torch import Tensor


def divergence(P: Tensor, Q: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """KL of every row, and its gradients by P and Q."""
    P, Q = P.contiguous(), Q.contiguous()
    total, by_p, by_q = P.new_empty(P.shape[:-1]), torch.empty_like(P), torch.empty_like(Q)
    rows = (part.detach().view(-1, P.shape[-1]).numpy() for part in (P, Q, by_p, by_q))
    _divergence(*rows, total.view(-1).numpy())
    return total, by_p, by_q


@numba.njit(nogil=True, cache=True, inline="always")
def _log_softmax(row: Any, out: Any) -> None:
    largest = row[0]
    for j in range(1, row.size):
        largest = max(largest, row[j])
    total = np.float32(0)
    for j in range(row.size):
        total += np.exp(row[j] - largest)
    shift = largest + np.log(total)
    for j in range(row.size):
        out[j] = row[j] - shift


@numba.njit(parallel=True, nogil=True, cache=True)
def _divergence(P: Any, Q: Any, by_p: Any, by_q: Any, total: Any) -> None:
    for i in numba.prange(P.shape[0]):
        _log_softmax(P[i], by_p[i])
        _log_softmax(Q[i], by_q[i])
        kl = np.float32(0)
        for j in range(P.shape[1]):
            kl += np.exp(by_p[i, j]) * (by_p[i, j] - by_q[i, j])
        total[i] = kl
        for j in range(P.shape[1]):
            p, q = np.exp(by_p[i, j]), np.exp(by_q[i, j])
            by_p[i, j], by_q[i, j] = p * (by_p[i, j] - by_q[i, j] - kl), q - p
