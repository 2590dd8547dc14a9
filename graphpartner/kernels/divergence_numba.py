"""The KL divergence between two softmax distributions on a CPU, in numba."""

from typing import Any

import numba
import numpy as np
import torch
from torch import Tensor

ZERO, ONE = np.float32(0), np.float32(1)


def divergence(P: Tensor, Q: Tensor, temperature: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the KL divergence of every row, and T times its gradients by P and Q."""
    P, Q = P.contiguous(), Q.contiguous()
    rows, by_p, by_q = P.new_empty(P.shape[:-1]), torch.empty_like(P), torch.empty_like(Q)
    arrays = (part.detach().view(-1, *P.shape[-2:]).numpy() for part in (P, Q, by_p, by_q))
    _divergence(*arrays, rows.view(-1, P.shape[-2]).numpy(), temperature.detach().reshape(-1).float().numpy())
    return rows, by_p, by_q


@numba.njit(nogil=True, cache=True, inline="always")
def _exponentials(row: Any, per: Any, out: Any) -> Any:
    """Write the softmax of row · per to ``out`` and return the logarithm of Σ exp(row · per)."""
    largest = row[0]
    for j in range(1, row.size):
        largest = max(largest, row[j])
    total = ZERO
    for j in range(row.size):
        out[j] = np.exp((row[j] - largest) * per)
        total += out[j]
    for j in range(row.size):
        out[j] /= total
    return largest * per + np.log(total)


@numba.njit(parallel=True, nogil=True, cache=True)
def _divergence(P: Any, Q: Any, by_p: Any, by_q: Any, rows: Any, temperature: Any) -> None:
    replicas, n, classes = P.shape
    for place in numba.prange(replicas * n):
        r, i = place // n, place % n
        per = ONE / temperature[r]
        p, q = by_p[r, i], by_q[r, i]  # hold the softmaxes first, then the gradients
        shift = _exponentials(Q[r, i], per, q) - _exponentials(P[r, i], per, p)
        kl = ZERO
        for j in range(classes):
            kl += p[j] * ((P[r, i, j] - Q[r, i, j]) * per + shift)
        rows[r, i] = kl
        for j in range(classes):
            difference = (P[r, i, j] - Q[r, i, j]) * per + shift
            p[j], q[j] = p[j] * (difference - kl), q[j] - p[j]
