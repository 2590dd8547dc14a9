"""Dropout by counter-based draws: what a replica drops depends on its own seed alone."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from graphpartner.graph.adjacency import with_values
from graphpartner.kernels.draws import bits, counters, keep_below
from graphpartner.kernels.hop_features import HopFeatures
from graphpartner.kernels.spmm import SparseMatrix
from graphpartner.kernels.table import Kernels


@dataclass(frozen=True)
class Rate:
    """The dropout rates of R replicas, and what follows from them: computed once, used in every epoch."""

    rate: Tensor

    @cached_property
    def below(self) -> Tensor:
        """An entry is kept where its draw is below this threshold, int32 [R]."""
        return keep_below(1 - self.rate.double())

    @cached_property
    def scale(self) -> Tensor:
        """1 / (1 − rate), float32 [R]; 0 where everything is dropped."""
        keep = 1 - self.rate
        return torch.where(keep > 0, 1 / keep.clamp(min=1e-30), 0)


@dataclass(frozen=True)
class Dropout:
    """Dropout for R replicas in one epoch.

    ``key`` is int32 [R, 2]; an entry is kept with probability 1 − rate and is scaled by 1 / (1 − rate).
    """

    key: Tensor
    rate: Rate

    @property
    def draws(self) -> tuple[Tensor, Tensor, Tensor]:
        """The arguments of the compiled loops."""
        return self.key, self.rate.below, self.rate.scale

    def of(self, replica: int) -> "Dropout":
        """Return the dropout of one replica."""
        return Dropout(self.key[replica : replica + 1], Rate(self.rate.rate[replica : replica + 1]))

    def mask(self, counter: Tensor) -> Tensor:
        """Return 0 or ``scale`` for every counter, [R, m]."""
        kept = bits(self.key, counter) < self.rate.below[..., None]
        return kept * self.rate.scale[..., None]

    def hidden(self, H: Tensor) -> Tensor:
        """Drop entries of H [R, n, h]; entry (i, c) of every replica has the counter i·h + c."""
        return _HiddenDropout.apply(H, self)

    def nodes(self, H: Tensor) -> Tensor:
        """Drop whole rows of H [R, n, h] (DropNode); row i has the counter i."""
        return H * self.mask(counters(H.shape[1], device=H.device)).to(H.dtype)[..., None]

    def input(self, X: SparseMatrix | Tensor | HopFeatures) -> "DroppedFeatures | HopFeatures":
        """Drop entries of the features X [n, d], separately for every replica whose weights they multiply."""
        return X.dropped(self.input) if isinstance(X, HopFeatures) else DroppedFeatures(X, self)


@dataclass(frozen=True)
class DroppedFeatures:
    """X̃, different for every replica and never stored as a whole: ``X̃ @ W`` takes [R, d, h] to [R, n, h].

    Entry (i, j) has the counter i·d + j, so that a sparse and a dense X drop the same entries.
    """

    X: SparseMatrix | Tensor
    dropout: Dropout

    def __matmul__(self, W: Tensor) -> Tensor:
        return _DroppedProduct.apply(W, self.X, self.dropout)


class _HiddenDropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, H: Tensor, dropout: Dropout) -> Tensor:
        ctx.dropout = dropout
        return dropped(H, dropout)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return dropped(gradient, ctx.dropout), None


class _DroppedProduct(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, W: Tensor, X: SparseMatrix | Tensor, dropout: Dropout) -> Tensor:
        ctx.X, ctx.dropout = X, dropout
        return dropped_product(X, W, dropout)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return dropped_product_gradient(ctx.X, gradient, ctx.dropout), None, None


def dropped(H: Tensor, dropout: Dropout) -> Tensor:
    """Return H [R, n, h] with dropped entries at zero and the others scaled."""
    if (loops := Kernels.on(H.device).dropout) is not None:
        return loops.dropped(H, *dropout.draws)
    replicas, n, width = H.shape
    return H * dropout.mask(counters(n * width, device=H.device)).to(H.dtype).reshape(replicas, n, width)


def dropped_product(X: SparseMatrix | Tensor, W: Tensor, dropout: Dropout) -> Tensor:
    """Return X̃ W for W [R, d, h]: [R, n, h]."""
    if isinstance(X, SparseMatrix) and (loops := Kernels.on(W.device).dropout) is not None:
        return loops.dropped_product(X.csr, W, *dropout.draws)
    out = W.new_empty(X.shape[0], W.shape[0], W.shape[2])
    for replica, weight in enumerate(W):
        out[:, replica] = _dropped(X, dropout, replica) @ weight
    return out.transpose(0, 1)


def dropped_product_gradient(X: SparseMatrix | Tensor, G: Tensor, dropout: Dropout) -> Tensor:
    """Return X̃ᵀ G for G [R, n, h]: [R, d, h]."""
    if isinstance(X, SparseMatrix) and (loops := Kernels.on(G.device).dropout) is not None:
        return loops.dropped_product_gradient(X.transpose, G, *dropout.draws)
    return torch.stack([_dropped(X, dropout, replica, transpose=True) @ each for replica, each in enumerate(G)])


def _dropped(X: SparseMatrix | Tensor, dropout: Dropout, replica: int, transpose: bool = False) -> Tensor:
    """Return X̃ of one replica, or its transpose."""
    columns, own = X.shape[1], dropout.of(replica)
    if isinstance(X, Tensor):
        dense = dropped(X[None], own)[0]
        return dense.T if transpose else dense
    csr = X.transpose if transpose else X.csr
    row = torch.repeat_interleave(torch.arange(csr.shape[0], device=csr.device), csr.crow_indices().diff())
    counter = csr.col_indices() * columns + row if transpose else row * columns + csr.col_indices()
    value = csr.values() * own.mask(counter.to(torch.int32))[0].to(csr.dtype)
    return with_values(csr, value)
