"""APPNP: Klicpera, Bojchevski and Günnemann, Predict then Propagate, ICLR 2019."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from graphpartner.kernels.narrow_product import matmul_narrow
from graphpartner.lab.baselines.baseline import (
    Baseline,
    BaselineOutput,
    HiddenSettings,
    InitialWeights,
    NoDropout,
    Weight,
    Weights,
    grouped,
    ungrouped,
)
from graphpartner.training.settings import between


@dataclass(frozen=True)
class APPNPSettings(HiddenSettings):
    """Settings of an APPNP; ``decay`` is the weight decay of the first layer, the only one its authors decay."""

    decay: float = between(5e-3, 0, 1e3)
    num_steps: int = between(10, 0, 10_000)
    """K, the number of power iterations."""
    alpha: float = between(0.1, 0, 1)
    """α, the teleport probability."""
    edge_dropout: float = between(0.5, 0, 1)
    """Share of the entries of P dropped, anew in every power iteration."""


class APPNP(Baseline):
    """Z^(k+1) = (1 − α) P Z^(k) + α H, where H = Z^(0) is a two-layer MLP of the features, without bias."""

    Settings: ClassVar = APPNPSettings
    settings: APPNPSettings

    def weights(self, initial: InitialWeights) -> dict[str, Weight]:
        """W1 [d, h] and W2 [h, C], uniform within ±1/√rows."""
        d, h, classes = self.graph.num_features, self.settings.hidden_channels, self.graph.num_classes
        return {
            "weight1": Weight(initial.uniform(d, h, d**-0.5), self.settings.decay),
            "weight2": Weight(initial.uniform(h, classes, h**-0.5), 0.0),
        }

    def forward(self, weights: Weights, dropout: NoDropout) -> BaselineOutput:
        """Dropout before each layer of the MLP, and of the edges of each power iteration."""
        rate, alpha = self.settings.dropout, self.settings.alpha
        hidden = (dropout.input(self.X, rate) @ weights["weight1"]).relu()
        H = matmul_narrow(dropout.hidden(hidden, rate), weights["weight2"])
        layers = [H]
        for step in range(self.settings.num_steps):
            layers.append((1 - alpha) * self.propagate(layers[-1], dropout, step) + alpha * H)
        return BaselineOutput(layers[-1], layers[1:])

    def propagate(self, Z: Tensor, dropout: NoDropout, step: int) -> Tensor:
        """P Z, a share of the entries of P dropped in training."""
        edges, rate = self.graph.edges, self.settings.edge_dropout
        if not dropout.training or not rate:
            return self.graph.P @ Z
        values = edges.weight[:, None].expand(Z.shape[0], -1, -1)
        dropped = dropout.hidden(values, rate, step, stream="edges")  # [R, E, 1]
        return ungrouped(edges.product(grouped(dropped).squeeze(-1), grouped(Z)), Z.shape[0])
