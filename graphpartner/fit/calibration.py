"""One temperature that makes probabilities honest, and several answers mixed into one."""

import numpy as np
import torch
from torch import Tensor

TINY = 1e-9
COLDEST, HOTTEST = 0.2, 5.0
FEW = 300
PICKS = 12


def tempered(probabilities: Tensor, temperature: float) -> Tensor:
    """p^(1/T), with rows that sum to 1: softer for T > 1, sharper below."""
    return ((probabilities.clamp(min=TINY)).log() / temperature).softmax(-1)


def surprise(probabilities: Tensor, y: Tensor) -> float:
    """Mean −log p of the true class."""
    return float(-probabilities.clamp(min=TINY)[torch.arange(y.numel()), y].log().mean())


def temperature(probabilities: Tensor, y: Tensor) -> float:
    """The T with the least surprise; few nodes pull it towards 1, as if ten more had said so."""
    grid = np.geomspace(COLDEST, HOTTEST, 61)
    m = y.numel()
    cost = [m * surprise(tempered(probabilities, float(T)), y) + 10 * float(np.log(T)) ** 2 for T in grid]
    return float(grid[int(np.argmin(cost))])


def merit(probabilities: Tensor, y: Tensor) -> float:
    """What choices go by: accuracy, and a quarter as heavy the mean probability of the true class.

    The second term settles the ties that few judging nodes leave.
    """
    right = (probabilities.argmax(1) == y).float().mean()
    return float(right + probabilities[torch.arange(y.numel()), y].mean() / 4)


def mixture(answers: list[Tensor], y: Tensor) -> list[float]:
    """The weight of every answer [m, C] in their mixture: picked greedily, with replacement, by :func:`merit`.

    It begins with the best answer; where there are few nodes to judge by, with the three best (of those that are not
    clearly worse), since the best of many is then partly luck.
    """
    merits = [merit(each, y) for each in answers]
    order = sorted(range(len(answers)), key=lambda i: -merits[i])
    close = merits[order[0]] - 1.0 / max(1, y.numel()) ** 0.5
    start = [i for i in order[:3] if merits[i] >= close] if y.numel() < FEW else order[:1]
    counts = [0] * len(answers)
    total = torch.zeros_like(answers[0])
    for i in start:
        counts[i] += 1
        total = total + answers[i]
    best = merit(total / sum(counts), y)
    while sum(counts) < PICKS:
        tried = [merit((total + each) / (sum(counts) + 1), y) for each in answers]
        i = int(np.argmax(tried))
        if tried[i] <= best + 1e-6:
            break
        best, total = tried[i], total + answers[i]
        counts[i] += 1
    return [count / sum(counts) for count in counts]
