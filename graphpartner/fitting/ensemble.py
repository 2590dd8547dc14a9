"""A temperature and a shift of every class that make probabilities honest, and several answers mixed into one."""

import numpy as np
import torch
from torch import Tensor

from graphpartner.model.calibration import temperature_scaling, with_temperature
from graphpartner.system.parallel import single_core

ENOUGH_FOR_GREEDY, EQUAL_WEIGHT_TOP = 300, 4
MAX_PICKS, MIN_GAIN = 12, 5e-4
SUBSAMPLE = 2000  # nodes that are enough to see how sure an answer is


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
