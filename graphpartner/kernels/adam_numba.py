"""The compiled CPU loop of :mod:`graphpartner.kernels.adam`. Imported only where numba is installed."""

from typing import Any

import numba
import numpy as np
from torch import Tensor

ONE = np.float32(1)


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
    corrections = (1 - beta ** float(steps) for beta in betas)
    constants = (np.float32(constant) for constant in (*corrections, *betas, epsilon))
    state = (W, G.contiguous(), mean, square, rate, decay)
    _adam(*(part.detach().numpy() for part in state), *constants)


@numba.njit(parallel=True, nogil=True, cache=True)
def _adam(
    W: Any, G: Any, m: Any, v: Any, rate: Any, decay: Any, fix1: Any, fix2: Any, beta1: Any, beta2: Any, tiny: Any
) -> None:
    replicas, rows, width = W.shape
    for i in numba.prange(rows):
        for r in range(replicas):
            rate_r, decay_r = rate[r], decay[r]
            for c in range(width):
                g = G[r, i, c] + decay_r * W[r, i, c]
                m[r, i, c] = beta1 * m[r, i, c] + (ONE - beta1) * g
                v[r, i, c] = beta2 * v[r, i, c] + (ONE - beta2) * g * g
                step = rate_r * (m[r, i, c] / fix1)
                W[r, i, c] -= step / (np.sqrt(v[r, i, c] / fix2) + tiny)
