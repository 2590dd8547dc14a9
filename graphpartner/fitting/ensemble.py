"""A temperature and a shift of every class that make probabilities honest, and several answers mixed into one."""

import numpy as np
import torch
from torch import Tensor

from graphpartner.model.calibration import COLDEST, HOTTEST, TINY, _cheapest, temperature_scaling, with_temperature
from graphpartner.system.parallel import single_core

ENOUGH_FOR_GREEDY, EQUAL_WEIGHT_TOP = 300, 4
MAX_PICKS, MIN_GAIN = 12, 5e-4
SUBSAMPLE = 2000  # nodes that are enough to see how sure an answer is


@single_core()
def ensemble_temperature_ratio(answers: Tensor, single: float) -> float:
    r"""T of the mean of several answers to the same nodes, relative to T of one of them; needs no label.

    A mean of runs is softer than one run, and yet right more often: with T of one run it would be under-confident.
    Let :math:`T_1` be the temperature at which another run best predicts what run k says (made honest with
    ``single``), and :math:`T_n` the one at which the mean of all others does. Run k is the truth with noise, the same
    noise for both, so that both temperatures are off by one factor, and

    .. math::
        T_n / T_1

    is what it would be with the truth in the place of run k; the geometric mean over k is taken.

    Args:
        answers: probabilities [k, m, C] of runs that learned from different parts, on nodes that none learned from.
        single: T of one of them.
    """
    count = answers.shape[0]
    total, logs = answers.sum(0), []
    for k in range(count if count > 2 else 0):  # of two, the mean of all others is the other
        said = with_temperature(answers[k], single)
        alone, together = answers[(k + 1) % count], (total - answers[k]) / (count - 1)
        logs.append(np.log(_closest(together, said) / _closest(alone, said)))
    return float(np.exp(np.mean(logs))) if logs else 1.0


def _closest(probabilities: Tensor, said: Tensor) -> float:
    """The T with which the one comes closest to the other, by cross-entropy."""
    grid = np.geomspace(COLDEST / 5, HOTTEST * 10, 121)  # hotter than for the truth: what is to be predicted is noisy
    logits = probabilities.clamp(min=TINY).log()
    return _cheapest(lambda T: float(-(said * (logits / T).log_softmax(-1)).sum()), grid.tolist())


@single_core()
def merit(probabilities: Tensor, y: Tensor) -> float:
    """What choices go by: accuracy, and a quarter as heavy the mean probability of the true class, once calibrated.

    The second term settles the ties that few judging nodes leave. Without calibration it would be held against an
    answer that it is right but never sure, as label propagation is.
    """
    right = (probabilities.argmax(1) == y).float().mean()
    some = slice(None, None, -(-y.numel() // SUBSAMPLE) or 1)
    sure = with_temperature(probabilities[some], temperature_scaling(probabilities[some], y[some], values=13))
    return float(right + sure[torch.arange(sure.shape[0]), y[some]].mean() / 4)


def ensemble_weights(answers: list[Tensor], y: Tensor) -> list[float]:
    """The weight of every answer [m, C] in their mixture: picked greedily, with replacement, by :func:`merit`.

    Where there are few nodes to judge by, the best of many is mostly luck: the ``EQUAL_WEIGHT_TOP`` best,
    of those that are not clearly worse than the best, then have equal weight.
    """
    merits = [merit(each, y) for each in answers]
    order = sorted(range(len(answers)), key=lambda i: -merits[i])
    counts = [0] * len(answers)
    if y.numel() < ENOUGH_FOR_GREEDY:
        close = merits[order[0]] - 1.0 / max(1, y.numel()) ** 0.5
        for i in order[:EQUAL_WEIGHT_TOP]:
            counts[i] = int(merits[i] >= close)
        return [count / sum(counts) for count in counts]
    best, total = -1.0, torch.zeros_like(answers[0])
    while sum(counts) < MAX_PICKS:
        tried = [merit((total + each) / (sum(counts) + 1), y) for each in answers]
        i = int(np.argmax(tried))
        if tried[i] <= best + MIN_GAIN:
            break
        best, total = tried[i], total + answers[i]
        counts[i] += 1
    return [count / sum(counts) for count in counts]
