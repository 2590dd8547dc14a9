"""How often an answer is right: the one accuracy of all rooms."""

import torch
from torch import Tensor


def accuracy(scores: Tensor, y: Tensor, mask: Tensor | None = None, dtype: torch.dtype = torch.float32) -> Tensor:
    """Return the share of nodes whose largest score is that of their class, over labelled nodes under a mask: [...].

    Args:
        scores: [..., n, C], logits or probabilities.
        y: classes [n], −1 for a node without a label, which does not count.
        mask: the nodes that count, [n] or [..., n]; all where it is not given.
        dtype: of the result.
    """
    counted = y >= 0 if mask is None else mask & (y >= 0)
    right = (scores.argmax(-1) == y) & counted
    return right.sum(-1).to(dtype) / counted.sum(-1).to(dtype)
