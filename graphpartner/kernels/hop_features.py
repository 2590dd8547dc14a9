"""Features of a node beside those of its neighbourhood, [X, S X, S² X, …], multiplied without being stored.

The MLP partner of the paper uses a node's own features. Where most neighbours are of another class, averaging over
them hurts, yet their features are informative: separate weights for every hop let the partner learn from them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from graphpartner.kernels.spmm import SparseMatrix


@dataclass(frozen=True)
class HopFeatures:
    """[X, S X, …, S^k X] of shape [n, (k + 1) d], to be multiplied by a weight.

    Since (S X) W = S (X W), only hidden columns are propagated: X W_0 + S (X W_1 + S (X W_2 + …)).

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
        """Apply dropout to X; the same entries are dropped at every hop."""
        return HopFeatures(drop(self.X), self.S, self.hops, self.columns)

    def __matmul__(self, W: Tensor) -> Tensor:
        """Return the product with a weight [..., (k + 1) d, h]: [..., n, h]."""
        parts = torch.cat(W.split(self.columns, dim=-2), dim=-1)  # [..., d, (k + 1) h]: X is read once
        *near, out = (self.X @ parts).split(W.shape[-1], dim=-1)
        for part in reversed(near):
            out = part + self.S @ out
        return out
