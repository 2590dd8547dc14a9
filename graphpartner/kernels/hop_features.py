"""Features of a node beside those of its neighbourhood: [X, S X, S² X, …], multiplied without ever being written down.

The paper's MLP partner sees a node's own features. Where neighbours are mostly of another class, averaging them away
hurts, but what they are like still tells: weights of their own for every hop let the partner learn it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from graphpartner.kernels.spmm import SparseMatrix


@dataclass(frozen=True)
class HopFeatures:
    """[X, S X, …, S^k X] of shape [n, (k + 1) d], as something that multiplies a weight from the left.

    Since (S X) W = S (X W), only hidden columns travel: X W_0 + S (X W_1 + S (X W_2 + …)).

    Args:
        X: features [n, d]: a tensor, a sparse matrix, or features with dropout.
        S: D^-½ A D^-½ without self-loops, [n, n].
        hops: k.
        columns: d.
    """

    X: Any
    S: SparseMatrix
    hops: int
    columns: int

    @property
    def shape(self) -> tuple[int, int]:
        """[n, (k + 1) d]."""
        return self.S.shape[0], (self.hops + 1) * self.columns

    def dropped(self, drop: Callable[[Any], Any]) -> "HopFeatures":
        """The same with dropout of X; every hop sees the same entries dropped."""
        return HopFeatures(drop(self.X), self.S, self.hops, self.columns)

    def __matmul__(self, W: Tensor) -> Tensor:
        """[..., n, h] for a weight [..., (k + 1) d, h]."""
        parts = torch.cat(W.split(self.columns, dim=-2), dim=-1)  # [..., d, (k + 1) h]: X is read once
        *near, out = (self.X @ parts).split(W.shape[-1], dim=-1)
        for part in reversed(near):
            out = part + self.S @ out
        return out
