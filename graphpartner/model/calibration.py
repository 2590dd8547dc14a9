"""Calibration: class priors, temperatures and class shifts, for probabilities that can be trusted.

The class prior is estimated from unlabelled nodes alone. Training sets hold as many nodes of one class as of the next;
graphs do not. A model that has learned from such a set believes all classes equally frequent; Saerens, Latinne and
Decaestecker (2002) give the maximum-likelihood correction.

Temperatures (Guo et al., 2017) and shifts are fitted to labelled nodes that the model has not learned from; the
temperature of an ensemble relative to that of its members needs no label.
"""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from graphpartner.model.losses import nll
from graphpartner.system.parallel import single_core

EM_ROUNDS = 50
TINY = 1e-9  # least probability whose logarithm is taken
MIN_TEMPERATURE, MAX_TEMPERATURE = 0.2, 5.0
T_PRIOR = 3.0  # strength of the pull towards T = 1
SHIFT_L2 = 10.0
NEWTON_STEPS = 8


def class_prior(likelihood: Tensor, weight: Tensor | None = None, rounds: int = EM_ROUNDS) -> Tensor:
    """Return π, [..., 1, C], by expectation maximisation from P(x_i | c), [..., m, C], up to a factor per row.

    Starting from equal shares: q_ic ∝ π_c P(x_i | c), then π_c = Σ_i w_i q_ic.

    Args:
        likelihood: of one observation per row.
        weight: w, [..., m], summing to 1; 1/m if not given.
        rounds: number of EM steps.
    """
    prior = likelihood.new_full((*likelihood.shape[:-2], 1, likelihood.shape[-1]), 1 / likelihood.shape[-1])
    for _ in range(rounds):
        joint = likelihood * prior
        q = joint / joint.sum(-1, keepdim=True)
        prior = q.mean(-2, keepdim=True) if weight is None else (q * weight[..., None]).sum(-2, keepdim=True)
    return prior


def with_class_prior(logits: Tensor, temperature: Tensor) -> tuple[Tensor, Tensor]:
    """Return logits / T + ln π, and ln π, [R, 1, C], with π estimated from softmax(logits / T).

    Args:
        logits: [R, n, C].
        temperature: T, [R]. Below 1 the run is taken to be underconfident; runs with T = 0 keep their logits, and
            their ln π is 0.
    """
    T = temperature.to(logits)[:, None, None]
    if not T.any():
        return logits, logits.new_zeros(logits.shape[0], 1, logits.shape[2])
    sharpened = logits / T.masked_fill(T == 0, 1)
    prior = class_prior(sharpened.softmax(-1))  # classes were equally frequent in training: P(c | x) ∝ P(x | c)
    log_prior = prior.clamp(min=torch.finfo(logits.dtype).tiny).log().masked_fill(T == 0, 0)
    return sharpened + log_prior, log_prior


def best_temperature(cost: Callable[[float], float], low: float, high: float, values: int) -> float:
    """Return the temperature of a geometric grid with the lowest cost, which first falls, then rises: by bisection.

    The NLL is such a cost: it is convex in 1/T. That the pull towards T = 1 changes nothing about it is tested.
    """
    grid: list[float] = np.geomspace(low, high, values).tolist()
    first, last = 0, values - 1
    while first < last:
        middle = (first + last) // 2
        if cost(grid[middle]) <= cost(grid[middle + 1]):
            last = middle
        else:
            first = middle + 1
    return grid[first]


def with_temperature(probabilities: Tensor, temperature: float, shift: Tensor | float = 0.0) -> Tensor:
    """Return p^(1/T) · e^b, normalised: softer for T > 1, sharper below; b [C] favours classes."""
    return (probabilities.clamp(min=TINY).log() / temperature + shift).softmax(-1)


@single_core()
def temperature_scaling(probabilities: Tensor, y: Tensor, values: int = 61) -> float:
    """Return the temperature with the lowest NLL of [m, C], regularised towards 1 by ``T_PRIOR`` · (ln T)² / m.

    It is one of a grid of ``values`` temperatures.
    """

    def cost(T: float) -> float:
        mean = float(nll(with_temperature(probabilities, T).clamp(min=TINY).log(), y))
        return y.numel() * mean + T_PRIOR * float(np.log(T)) ** 2

    return best_temperature(cost, MIN_TEMPERATURE, MAX_TEMPERATURE, values)


@single_core()
def ensemble_temperature_ratio(probabilities: Tensor, temperature: float) -> float:
    r"""Return the temperature of the mean of several predictions relative to that of one; needs no label.

    A mean of runs is softer than one run, and yet right more often: with T of one run it would be underconfident.
    Let :math:`T_1` be the temperature at which another run best predicts run k (calibrated with ``temperature``), and
    :math:`T_n` the one at which the mean of all others does. Run k is the truth with noise, the same noise for both,
    so both temperatures are off by one factor, and

    .. math::
        T_n / T_1

    is what it would be with the truth in the place of run k; the geometric mean over k is taken.

    Args:
        probabilities: [K, m, C], of runs that learned from different folds, on nodes that none learned from.
        temperature: that of one run.
    """
    count = probabilities.shape[0]
    if count <= 2:  # of two, the mean of all others is the other
        return 1.0
    total, logs = probabilities.sum(0), []
    for k in range(count):
        target = with_temperature(probabilities[k], temperature)
        one, mean = probabilities[(k + 1) % count], (total - probabilities[k]) / (count - 1)
        logs.append(np.log(_closest(mean, target) / _closest(one, target)))
    return float(np.exp(np.mean(logs)))


def _closest(probabilities: Tensor, target: Tensor) -> float:
    """Return the temperature with the lowest cross-entropy to target probabilities."""
    logits = probabilities.clamp(min=TINY).log()

    def cost(T: float) -> float:
        return float(-(target * (logits / T).log_softmax(-1)).sum())

    return best_temperature(cost, MIN_TEMPERATURE / 5, MAX_TEMPERATURE * 10, 121)  # higher: the target is noisy


def class_shift(probabilities: Tensor, y: Tensor) -> Tensor:
    r"""Return the shift of each class's logit, [C], with which it is predicted as often as it occurs.

    .. math::
        \min_b \; \sum_i - \log \mathrm{softmax}(\log p_i + b)_{y_i} + r \, \|b\|^2

    by Newton's method, with r = ``SHIFT_L2``, so that few nodes hardly shift anything.
    """
    logits = probabilities.double().clamp(min=TINY).log()
    num_classes = logits.shape[1]
    count = torch.bincount(y, minlength=num_classes).double()
    shift = torch.zeros(num_classes, dtype=torch.float64)
    for _ in range(NEWTON_STEPS):
        p = (logits + shift).softmax(-1)
        gradient = p.sum(0) - count + 2 * SHIFT_L2 * shift
        hessian = torch.diag(p.sum(0) + 2 * SHIFT_L2) - p.T @ p
        shift = shift - torch.linalg.solve(hessian, gradient)
    return shift.float()
