"""GCN: Kipf and Welling, Semi-Supervised Classification with Graph Convolutional Networks, ICLR 2017."""

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
from graphpartner.training.settings import between


@dataclass(frozen=True)
class GCNSettings(HiddenSettings):
    """Settings of a GCN; ``decay`` is the weight decay of the first layer, the only one its authors decay."""

    layers: int = between(2, 1, 1024)
    """Number of graph convolutions."""
    later_decay: float = between(0, 0, 1e3)
    """Weight decay of all layers but the first."""


class GCN(Baseline):
    """H^(l+1) = ReLU(P H^(l) W^(l)), P = D̃^-½ Ã D̃^-½; no ReLU after the last layer, no bias, Glorot-uniform weights."""

    Settings: ClassVar = GCNSettings
    settings: GCNSettings

    def weights(self, initial: InitialWeights) -> dict[str, Weight]:
        """W^(l) of every layer."""
        settings, layers = self.settings, self.settings.layers
        widths = [self.graph.num_features, *[settings.hidden_channels] * (layers - 1), self.graph.num_classes]
        decays = [settings.decay, *[settings.later_decay] * (layers - 1)]
        return {
            f"weight{layer + 1}": Weight(initial.glorot(widths[layer], widths[layer + 1]), decays[layer])
            for layer in range(layers)
        }

    def forward(self, weights: Weights, dropout: NoDropout) -> BaselineOutput:
        """Dropout before each layer."""
        rate = self.settings.dropout
        first, *others = weights.values()
        layers = [self.graph.P @ (dropout.input(self.X, rate) @ first)]
        for layer, weight in enumerate(others, 1):
            layers[-1] = layers[-1].relu()
            layers.append(self.graph.P @ matmul_narrow(dropout.hidden(layers[-1], rate, layer), weight))
        return BaselineOutput(layers[-1], layers)
