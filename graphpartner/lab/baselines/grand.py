"""GRAND: Feng et al., Graph Random Neural Networks for Semi-Supervised Learning on Graphs, NeurIPS 2020."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import torch
from torch import Tensor

from graphpartner.kernels.narrow_product import matmul_narrow
from graphpartner.kernels.spmm import SparseMatrix
from graphpartner.lab.baselines.baseline import (
    Baseline,
    BaselineOutput,
    HiddenSettings,
    InitialWeights,
    NoDropout,
    RunDropout,
    Weight,
    Weights,
)
from graphpartner.model.losses import cross_entropy, sharpened
from graphpartner.training.prepared import Labelled
from graphpartner.training.settings import between

MOMENTUM, TINY = 0.1, 1e-5  # of the batch normalisation


@dataclass(frozen=True)
class GRANDSettings(HiddenSettings):
    """Settings of a GRAND; ``dropout`` is that of the hidden layer."""

    epochs: int = between(5000, 1, 1_000_000)
    patience: int = between(200, 1, 1_000_000)
    hidden_channels: int = between(32, 1, 65536)
    input_dropout: float = between(0.5, 0, 1)
    """Share of the entries of the propagated features dropped."""
    node_dropout: float = between(0.5, 0, 1)
    """δ: share of the nodes whose features are dropped before they are propagated (DropNode)."""
    num_steps: int = between(8, 0, 10_000)
    """K: the features are propagated by the mean of P^0 … P^K."""
    views: int = between(4, 1, 64)
    """S, the number of random propagations per epoch."""
    consistency: float = between(1.0, 0, 1e6)
    """λ, the weight of the consistency loss."""
    temperature: float = between(0.5, 1e-6, 1e6)
    """T: the mean of the views' distributions is sharpened to p^(1/T)."""
    batch_norm: bool = False
    """Whether the inputs of both layers are normalised."""


class GRAND(Baseline):
    """MLP(X̄ with a share of its entries dropped), X̄ = 1/(K + 1) Σ_k P^k X̃, where X̃ is X with whole rows dropped.

    The loss is the mean over S views of the cross-entropy and of λ/n Σ_i ‖p_i − p̄'_i‖², p̄' being the sharpened mean
    of the views' distributions. As in the authors' code, the rows kept in training are not scaled up; instead X is
    scaled by 1 − δ in validation and prediction.
    """

    Settings: ClassVar = GRANDSettings
    settings: GRANDSettings

    @cached_property
    def features(self) -> Tensor:
        """The features, dense."""
        return self.X.csr.to_dense() if isinstance(self.X, SparseMatrix) else self.X

    @cached_property
    def expected(self) -> Tensor:
        """The expected X̄, [n, d]."""
        return self.propagate((1 - self.settings.node_dropout) * self.features)

    def propagate(self, X: Tensor) -> Tensor:
        """1/(K + 1) Σ_k P^k X."""
        total = X
        for _ in range(self.settings.num_steps):
            X = self.graph.P @ X
            total = total + X
        return total / (self.settings.num_steps + 1)

    def weights(self, initial: InitialWeights) -> dict[str, Weight]:
        """Both layers normal with mean −s and standard deviation s = 1/√columns, as the authors' code has it."""
        d, h, classes = self.graph.num_features, self.settings.hidden_channels, self.graph.num_classes
        weights = {}
        for layer, rows, columns in ((1, d, h), (2, h, classes)):
            s = columns**-0.5
            for name, height in (("weight", rows), ("bias", 1)):
                value = initial.normal(height, columns, -s, s)
                weights[f"{name}{layer}"] = Weight(value, self.settings.decay)
            if self.settings.batch_norm:
                weights[f"scale{layer}"] = Weight(initial.full(1, rows, 1.0), self.settings.decay)
                weights[f"shift{layer}"] = Weight(initial.full(1, rows), self.settings.decay)
                weights[f"mean{layer}"] = Weight(initial.full(1, rows), 0.0, learned=False)
                weights[f"variance{layer}"] = Weight(initial.full(1, rows, 1.0), 0.0, learned=False)
        return weights

    def forward(self, weights: Weights, dropout: NoDropout, view: int = 0) -> BaselineOutput:
        """One view: a random propagation of its own in training, else the expected one."""
        hidden = (self.first_layer(weights, dropout, view) + weights["bias1"]).relu()
        if self.settings.batch_norm:
            hidden = normalized(hidden, 2, weights, dropout)
        hidden = dropout.hidden(hidden, self.settings.dropout, view)
        return BaselineOutput(matmul_narrow(hidden, weights["weight2"]) + weights["bias2"])

    def first_layer(self, weights: Weights, dropout: NoDropout, view: int) -> Tensor:
        """X̄ W1. Where nothing but propagation lies between X̃ and W1, X̃ W1 is propagated: it has far fewer columns."""
        if not self.settings.batch_norm and not (dropout.training and self.settings.input_dropout):
            inner = self.X @ weights["weight1"]
            kept = self.kept(dropout, view) if isinstance(dropout, RunDropout) else 1 - self.settings.node_dropout
            return self.propagate(inner * kept)
        X = self.random_propagation(dropout, view) if isinstance(dropout, RunDropout) else self.expected
        if self.settings.batch_norm:
            X = normalized(X, 1, weights, dropout)
        if dropout.training:
            X = dropout.hidden(X, self.settings.input_dropout, view, stream="input")
        return X @ weights["weight1"]

    def kept(self, dropout: RunDropout, view: int) -> Tensor:
        """1 for a node that keeps its features, else 0, [R, n, 1]."""
        nodes = torch.arange(self.graph.num_nodes, device=self.graph.device, dtype=torch.int32)
        mask = dropout.draw(self.settings.node_dropout, view, stream="nodes").mask(nodes)
        return (mask > 0).float()[:, :, None]

    @torch.no_grad()
    def random_propagation(self, dropout: RunDropout, view: int) -> Tensor:
        """X̄ of every run, [R, n, d]."""
        rows = self.kept(dropout, view).transpose(0, 1) * self.features[:, None]  # lies in memory as [n, R, d]
        return self.propagate(rows.transpose(0, 1))

    def loss(self, weights: Weights, dropout: NoDropout, train: Labelled) -> Tensor:
        """Cross-entropy and consistency of S views, [R]."""
        views = [self.forward(weights, dropout, view).logits for view in range(self.settings.views)]
        nll = sum(cross_entropy(logits, train.index, train.target, train.weight) for logits in views)
        distributions = torch.stack([logits.softmax(-1) for logits in views])
        target = sharpened(distributions.detach().mean(0), self.settings.temperature)
        distance = (distributions - target).square().sum(-1).mean(-1).mean(0)
        return nll / len(views) + self.settings.consistency * distance


def normalized(H: Tensor, layer: int, weights: Weights, dropout: NoDropout) -> Tensor:
    """Batch normalisation of H [R, n, h] over its nodes; after training, by the running mean and variance."""
    running = weights[f"mean{layer}"], weights[f"variance{layer}"]
    mean, variance = running
    if dropout.training:
        variance, mean = torch.var_mean(H, 1, correction=0, keepdim=True)
        with torch.no_grad():
            unbiased = variance * (H.shape[1] / max(1, H.shape[1] - 1))
            for average, current in zip(running, (mean, unbiased), strict=True):
                average.lerp_(current, MOMENTUM)
    return (H - mean) * (variance + TINY).rsqrt() * weights[f"scale{layer}"] + weights[f"shift{layer}"]
