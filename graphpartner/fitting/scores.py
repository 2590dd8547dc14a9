"""How good are the answers? Accuracy with its interval, scores of every class, calibration."""

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

BINS = 10


@dataclass(frozen=True)
class ClassScores:
    """Of one class: the share of its answers that were right, the share of its nodes found, and their harmonic mean."""

    name: str
    precision: float
    recall: float
    f1: float
    support: int


@dataclass(frozen=True)
class Scores:
    """Of some labelled nodes: everything in shares of 1."""

    accuracy: float
    low: float
    high: float
    ece: float
    nodes: int
    classes: list[ClassScores]

    def asdict(self) -> dict[str, Any]:
        """For a JSON file."""
        return {**self.__dict__, "classes": [each.__dict__ for each in self.classes]}


def accuracy(probabilities: Tensor, y: Tensor) -> float:
    """The share of nodes whose class has the largest probability."""
    return float((probabilities.argmax(1) == y).float().mean())


def wilson(right: int, total: int, z: float = 1.96) -> tuple[float, float]:
    r"""Wilson's interval for a share p = right / total, 95 % by default.

    .. math::
        \frac{p + z^2 / 2n \pm z \sqrt{p (1 - p) / n + z^2 / 4n^2}}{1 + z^2 / n}
    """
    if total == 0:
        return 0.0, 1.0
    p, n = right / total, total
    centre, spread = p + z * z / (2 * n), z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return max(0.0, (centre - spread) / (1 + z * z / n)), min(1.0, (centre + spread) / (1 + z * z / n))


def calibration_error(confidence: Tensor, right: Tensor, bins: int = BINS) -> float:
    r"""Expected calibration error: how far confidence and accuracy are apart, over equal bins of confidence.

    .. math::
        \sum_b \frac{|b|}{n} \, |\mathrm{accuracy}(b) - \mathrm{confidence}(b)|

    Args:
        confidence: the probability of the answer given to each node, [m].
        right: whether it was right, [m].
        bins: how many, of equal width; the upper end belongs to a bin.
    """
    confidence = confidence.double()
    place = (confidence * bins).ceil().long().clamp(1, bins) - 1
    gap = torch.zeros(bins, dtype=torch.float64).index_add_(0, place, right.double() - confidence)
    return float(gap.abs().sum() / max(1, right.numel()))


def score_answers(probabilities: Tensor, y: Tensor, names: list[str]) -> Scores:
    """All scores of these answers [m, C] to the classes y [m]."""
    guess = probabilities.argmax(1)
    right = int((guess == y).sum())
    low, high = wilson(right, y.numel())
    classes = []
    for c, name in enumerate(names):
        hit, said, are = (int(each.sum()) for each in ((guess == c) & (y == c), guess == c, y == c))
        precision, recall = hit / said if said else 0.0, hit / are if are else 0.0
        f1 = 2 * hit / (said + are) if said + are else 0.0
        classes.append(ClassScores(name, precision, recall, f1, are))
    error = calibration_error(probabilities.max(1).values, guess == y)
    return Scores(right / max(1, y.numel()), low, high, error, y.numel(), classes)
