"""GCNII: Chen et al., Simple and Deep Graph Convolutional Networks, ICML 2020."""

from dataclasses import dataclass
from math import log
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
from graphpartner.training.settings import between


@dataclass(frozen=True)
class GCNIISettings(HiddenSettings):
    """Settings of a GCNII; ``decay`` is the weight decay of the dense layers."""

    epochs: int = between(1500, 1, 1_000_000)
    dropout: float = between(0.6, 0, 1)
    layers: int = between(64, 0, 1024)
    """Number of graph convolutions."""
    alpha: float = between(0.1, 0, 1)
    """α, the weight of the initial residual."""
    lam: float = between(0.5, 0, 1e6)
    """λ: layer l multiplies by β_l W + (1 − β_l) I with β_l = ln(λ/l + 1)."""
    conv_decay: float = between(0.01, 0, 1e3)
    """Weight decay of the graph convolutions."""


class GCNII(Baseline):
    """H^(l) = ReLU(((1 − α) P H^(l−1) + α H^(0)) ((1 − β_l) I + β_l W^(l))), between two dense layers with bias."""

    Settings: ClassVar = GCNIISettings
    settings: GCNIISettings

    def weights(self, initial: InitialWeights) -> dict[str, Weight]:
        """The dense layers, uniform within ±1/√rows, and W^(l) [h, h], uniform within ±1/√h."""
        d, h, classes = self.graph.num_features, self.settings.hidden_channels, self.graph.num_classes
        dense, conv = self.settings.decay, self.settings.conv_decay
        weights = {
            "weight_in": Weight(initial.uniform(d, h, d**-0.5), dense),
            "bias_in": Weight(initial.uniform(1, h, d**-0.5), dense),
        }
        for layer in range(1, self.settings.layers + 1):
            weights[f"weight{layer}"] = Weight(initial.uniform(h, h, h**-0.5), conv)
        weights["weight_out"] = Weight(initial.uniform(h, classes, h**-0.5), dense)
        weights["bias_out"] = Weight(initial.uniform(1, classes, h**-0.5), dense)
        return weights

    def forward(self, weights: Weights, dropout: NoDropout) -> BaselineOutput:
        """Dropout before each layer."""
        rate, alpha = self.settings.dropout, self.settings.alpha
        H = (dropout.input(self.X, rate) @ weights["weight_in"] + weights["bias_in"]).relu()
        initial, layers = H, []
        for layer in range(1, self.settings.layers + 1):
            beta = log(self.settings.lam / layer + 1)
            support = (self.graph.P @ dropout.hidden(H, rate, layer)).mul(1 - alpha).add(initial, alpha=alpha)
            H = (support @ weights[f"weight{layer}"]).mul(beta).add(support, alpha=1 - beta).relu()
            layers.append(H)
        logits = matmul_narrow(dropout.hidden(H, rate), weights["weight_out"]) + weights["bias_out"]
        return BaselineOutput(logits, layers)
