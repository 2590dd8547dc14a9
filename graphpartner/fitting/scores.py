"""Scores of predictions: accuracy with its interval, precision, recall and F1 of every class, calibration error."""

import math
from typing import Any

import torch
from torch import Tensor

BINS = 10


def wilson(right: int, total: int, z: float = 1.96) -> tuple[float, float]:
    r"""Return Wilson's interval for a share p = right / total, 95 % by default.

    .. math::
        \frac{p + z^2 / 2n \pm z \sqrt{p (1 - p) / n + z^2 / 4n^2}}{1 + z^2 / n}
    """
    if total == 0:
        return 0.0, 1.0
    p, n = right / total, total
    centre, half = p + z * z / (2 * n), z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return max(0.0, (centre - half) / (1 + z * z / n)), min(1.0, (centre + half) / (1 + z * z / n))


def calibration_error(confidence: Tensor, right: Tensor, bins: int = BINS) -> float:
    r"""Return the expected calibration error: the distance of confidence and accuracy over bins of confidence.

    .. math::
        \sum_b \frac{|b|}{n} \, |\mathrm{accuracy}(b) - \mathrm{confidence}(b)|

    Args:
        confidence: the probability of the predicted class of each node, [m].
        right: whether it is the true one, [m].
        bins: number of bins of equal width; the upper end belongs to a bin.
    """
    confidence = confidence.double()
    place = (confidence * bins).ceil().long().clamp(1, bins) - 1
    gap = torch.zeros(bins, dtype=torch.float64).index_add_(0, place, right.double() - confidence)
    return float(gap.abs().sum() / max(1, right.numel()))


def score_predictions(probabilities: Tensor, y: Tensor, names: list[str]) -> dict[str, Any]:
    """Return the scores of predictions [m, C] for nodes of classes y [m], as shares of 1.

    They are ``accuracy`` with its interval from ``low`` to ``high``, ``ece`` (the calibration error), the number of
    ``nodes``, and for each of the ``classes`` its ``name``, ``precision``, ``recall``, ``f1`` and ``support``.
    """
    confidence, predicted = probabilities.max(1)
    right = int((predicted == y).sum())
    low, high = wilson(right, y.numel())
    classes = []
    for c, name in enumerate(names):
        masks = (predicted == c) & (y == c), predicted == c, y == c
        both, positive, support = (int(mask.sum()) for mask in masks)
        precision, recall = both / positive if positive else 0.0, both / support if support else 0.0
        f1 = 2 * both / (positive + support) if positive + support else 0.0
        classes.append({"name": name, "precision": precision, "recall": recall, "f1": f1, "support": support})
    ece = calibration_error(confidence, predicted == y)
    share = right / max(1, y.numel())
    return {"accuracy": share, "low": low, "high": high, "ece": ece, "nodes": y.numel(), "classes": classes}
