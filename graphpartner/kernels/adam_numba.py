"""Adam on a CPU, in numba."""

from typing import Any

import numba
import numpy as np
from torch import Tensor

from graphpartner.kernels.adam import BETAS, EPSILON, Adam

ONE = np.float32(1)


def step(adam: Adam, gradient: Tensor) -> None:
    """Update the weights in place by their gradient."""
    corrections = (1 - beta ** float(adam.steps) for beta in BETAS)
    constants = (np.float32(constant) for constant in (*corrections, *BETAS, EPSILON))
    state = (adam.weight, gradient.contiguous(), adam.mean, adam.square, adam.rate, adam.decay)
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
