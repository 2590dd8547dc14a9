"""DAGNN: Liu, Gao and Ji, Towards Deeper Graph Neural Networks, KDD 2020."""

from dataclasses import dataclass
from typing import ClassVar

import torch

from graphpartner.kernels.narrow_product import matmul_narrow
from graphpartner.lab.baselines.baseline import (
    Baseline,
    BaselineOutput,
    HiddenSettings,
    InitialWeights,
    NoDropout,
    Weight,
    Weights,
)
from graphpartner.training.settings import between


@dataclass(frozen=True)
class DAGNNSettings(HiddenSettings):
    """Settings of a DAGNN."""

    decay: float = between(5e-3, 0, 1e3)
    dropout: float = between(0.8, 0, 1)
    num_steps: int = between(10, 0, 10_000)
    """K, the number of propagation steps."""


class DAGNN(Baseline):
    """Σ_k σ(P^k Z s) ∘ P^k Z for k = 0 … K, where Z is a two-layer MLP of the features and s weighs the depths."""

    Settings: ClassVar = DAGNNSettings
    settings: DAGNNSettings

    def weights(self, initial: InitialWeights) -> dict[str, Weight]:
        """W1, W2 and s, each with its bias, uniform within ±1/√rows."""
        d, h, classes = self.graph.num_features, self.settings.hidden_channels, self.graph.num_classes
        weights = {}
        for name, rows, columns in (("1", d, h), ("2", h, classes), ("_score", classes, 1)):
            for part, height in (("weight", rows), ("bias", 1)):
                weights[part + name] = Weight(initial.uniform(height, columns, rows**-0.5), self.settings.decay)
        return weights

    def forward(self, weights: Weights, dropout: NoDropout) -> BaselineOutput:
        """Dropout before each layer of the MLP."""
        rate = self.settings.dropout
        hidden = (dropout.input(self.X, rate) @ weights["weight1"] + weights["bias1"]).relu()
        layers = [matmul_narrow(dropout.hidden(hidden, rate), weights["weight2"]) + weights["bias2"]]
        for _ in range(self.settings.num_steps):
            layers.append(self.graph.P @ layers[-1])
        depths = torch.stack(layers, -2)  # [R, n, K + 1, C]
        score = depths @ weights["weight_score"][:, None] + weights["bias_score"][:, None]
        return BaselineOutput((score.sigmoid() * depths).sum(-2), layers[1:])
