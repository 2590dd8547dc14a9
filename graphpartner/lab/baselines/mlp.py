"""MLP: two layers on the features alone, the reference for what a graph adds."""

from dataclasses import dataclass
from typing import ClassVar

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


@dataclass(frozen=True)
class MLPSettings(HiddenSettings):
    """Settings of an MLP."""


class MLP(Baseline):
    """softmax(ReLU(X W1) W2), without bias, Glorot-uniform weights."""

    Settings: ClassVar = MLPSettings
    settings: MLPSettings

    def weights(self, initial: InitialWeights) -> dict[str, Weight]:
        """W1 [d, h] and W2 [h, C]."""
        d, h, classes = self.graph.num_features, self.settings.hidden_channels, self.graph.num_classes
        return {
            "weight1": Weight(initial.glorot(d, h), self.settings.decay),
            "weight2": Weight(initial.glorot(h, classes), self.settings.decay),
        }

    def forward(self, weights: Weights, dropout: NoDropout) -> BaselineOutput:
        """Dropout before each layer."""
        hidden = (dropout.input(self.X, self.settings.dropout) @ weights["weight1"]).relu()
        return BaselineOutput(matmul_narrow(dropout.hidden(hidden, self.settings.dropout), weights["weight2"]))
