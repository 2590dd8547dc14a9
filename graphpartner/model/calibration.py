"""How frequent is each class really? Estimated from the unlabelled nodes, without a label.

Training sets hold as many nodes of one class as of the next; graphs do not. A model that has learned from such a set
believes all classes equally frequent. Saerens, Latinne and Decaestecker (2002) give the maximum-likelihood correction.
"""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from graphpartner.system.parallel import single_core

EM_ROUNDS = 50  # of expectation and maximisation


def class_prior(logits: Tensor) -> Tensor:
    """π of each run, [R, 1, C], from its logits [R, n, C] by expectation maximisation.

    Starting from equal shares: q_ic ∝ π_c softmax(logits_i)_c, then π_c = 1/n Σ_i q_ic.
    """
    likelihood = logits.softmax(-1)
    prior = likelihood.new_full((*logits.shape[:-2], 1, logits.shape[-1]), 1 / logits.shape[-1])
    for _ in range(EM_ROUNDS):
        weighted = likelihood * prior
        prior = (weighted / weighted.sum(-1, keepdim=True)).mean(-2, keepdim=True)
    return prior


def with_class_prior(logits: Tensor, temperature: Tensor) -> tuple[Tensor, Tensor]:
    """Logits / T + ln π, and ln π, [R, 1, C], estimated from logits / T; runs with T = 0 keep their logits, ln π is 0.

    Args:
        logits: [R, n, C].
        temperature: T, [R]. Below 1 a run is taken to be less sure than it should be.
    """
    T = temperature.to(logits)[:, None, None]
    if not T.any():
        return logits, logits.new_zeros(logits.shape[0], 1, logits.shape[2])
    sharpened = logits / T.masked_fill(T == 0, 1)
    log_prior = class_prior(sharpened).clamp(min=torch.finfo(logits.dtype).tiny).log().masked_fill(T == 0, 0)
    return sharpened + log_prior, log_prior


TINY = 1e-9
COLDEST, HOTTEST = 0.2, 5.0
T_PRIOR, SHIFT_L2 = 3.0, 10.0
NEWTON_STEPS = 8


def with_temperature(probabilities: Tensor, temperature: float, shift: Tensor | float = 0.0) -> Tensor:
    """p^(1/T) · e^b, with rows that sum to 1: softer for T > 1, sharper below; b [C] favours classes."""
    return ((probabilities.clamp(min=TINY)).log() / temperature + shift).softmax(-1)


def nll_of_probabilities(probabilities: Tensor, y: Tensor) -> float:
    """Mean −log p of the true class."""
    return float(-probabilities.clamp(min=TINY)[torch.arange(y.numel()), y].log().mean())


@single_core()
def temperature_scaling(probabilities: Tensor, y: Tensor, values: int = 61) -> float:
    """The T with the least surprise; few nodes pull it towards 1, as if ``T_PRIOR`` more had said so."""
    m = y.numel()
    return _cheapest(
        lambda T: m * nll_of_probabilities(with_temperature(probabilities, T), y) + T_PRIOR * float(np.log(T)) ** 2,
        np.geomspace(COLDEST, HOTTEST, values).tolist(),
    )


def _cheapest(cost: Callable[[float], float], grid: list[float]) -> float:
    """The value of an ascending grid that costs least, of costs that first fall, then rise: by halving.

    −log p does: it is convex in 1/T. That the pull towards T = 1 changes nothing about it is tested.
    """
    low, high = 0, len(grid) - 1
    while low < high:
        middle = (low + high) // 2
        if cost(grid[middle]) <= cost(grid[middle + 1]):
            high = middle
        else:
            low = middle + 1
    return grid[low]


def class_shift(probabilities: Tensor, y: Tensor) -> Tensor:
    r"""What every class must gain or lose, [C], for the answers [m, C] to name it as often as it is there.

    .. math::
        \min_b \; \sum_i - \log \mathrm{softmax}(\log p_i + b)_{y_i} + r \, \|b\|^2

    by Newton's method, with r = ``SHIFT_L2``, so that few nodes hardly shift anything.
    """
    logits = probabilities.double().clamp(min=TINY).log()
    count = logits.shape[1]
    wanted = torch.bincount(y, minlength=count).double()
    shift = torch.zeros(count, dtype=torch.float64)
    for _ in range(NEWTON_STEPS):
        p = (logits + shift).softmax(-1)
        gradient = p.sum(0) - wanted + 2 * SHIFT_L2 * shift
        hessian = torch.diag(p.sum(0) + 2 * SHIFT_L2) - p.T @ p
        shift = shift - torch.linalg.solve(hessian, gradient)
    return shift.float()
