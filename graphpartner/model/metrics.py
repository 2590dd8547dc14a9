"""Accuracy, as every room computes it."""

import torch
from torch import Tensor


def accuracy(scores: Tensor, y: Tensor, mask: Tensor | None = None, dtype: torch.dtype = torch.float32) -> Tensor:
    """Return the accuracy [...] over labelled nodes under a mask, with the class of the largest score as prediction.

    Args:
        scores: [..., n, C], logits or probabilities.
        y: classes [n], −1 for nodes without a label, which are left out.
        mask: nodes to include, [n] or [..., n]; by default all.
        dtype: of the result.
    """
    counted = y >= 0 if mask is None else mask & (y >= 0)
    right = (scores.argmax(-1) == y) & counted
    return right.sum(-1).to(dtype) / counted.sum(-1).to(dtype)
