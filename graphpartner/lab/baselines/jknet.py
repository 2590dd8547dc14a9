"""JKNet: Xu et al., Representation Learning on Graphs with Jumping Knowledge Networks, ICML 2018.

The last layer is a graph convolution, as in Rong et al. (DropEdge, ICLR 2020), whose settings and results on the public
splits are the ones to compare with: Xu et al. used splits of their own.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from graphpartner.kernels.spmm import SparseMatrix
from graphpartner.lab.baselines.baseline import (
    Baseline,
    BaselineOutput,
    HiddenSettings,
    InitialWeights,
    NoDropout,
    Weight,
    Weights,
)
from graphpartner.training.prepared import Normalization
from graphpartner.training.settings import between

Propagate = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class JKNetSettings(HiddenSettings):
    """Settings of a JKNet."""

    epochs: int = between(400, 1, 1_000_000)
    patience: int = between(400, 1, 1_000_000)
    hidden_channels: int = between(128, 1, 65536)
    dropout: float = between(0.8, 0, 1)
    """Share of the entries of a hidden layer's output dropped; none of X, as in the code of DropEdge."""
    layers: int = between(4, 2, 1024)
    """Number of graph convolutions, the last one included."""
    jump: Literal["cat", "max"] = "cat"
    """How the hidden layers are combined: concatenated, or by their elementwise maximum."""
    normalization: Normalization = "symmetric"
    """``symmetric`` is D̃^-½ Ã D̃^-½, ``row`` is D̃⁻¹ Ã."""
    self_weight: bool = False
    """Whether every layer has a second weight matrix for the node itself."""


class JKNet(Baseline):
    """H^(l+1) = ReLU(Â H^(l) W^(l) + b^(l)), and a last graph convolution of H^(1), …, H^(L−1) combined."""

    Settings: ClassVar = JKNetSettings
    settings: JKNetSettings

    def weights(self, initial: InitialWeights) -> dict[str, Weight]:
        """Of every layer W, with ``self_weight`` one for the node itself, and the bias: uniform within ±1/√columns."""
        settings = self.settings
        hidden, jumped = settings.hidden_channels, settings.hidden_channels
        if settings.jump == "cat":
            jumped *= settings.layers - 1
        rows = [self.graph.num_features, *[hidden] * (settings.layers - 2), jumped]
        weights = {}
        for layer, height in enumerate(rows, 1):
            width = self.graph.num_classes if layer == settings.layers else hidden
            parts = {"weight": height, "self": height, "bias": 1}
            if not settings.self_weight:
                del parts["self"]
            for name, size in parts.items():
                weights[f"{name}{layer}"] = Weight(initial.uniform(size, width, width**-0.5), settings.decay)
        return weights

    def forward(self, weights: Weights, dropout: NoDropout) -> BaselineOutput:
        """Dropout after each hidden layer."""
        propagate = self.propagation(dropout)
        layers: list[Tensor] = []
        for layer in range(1, self.settings.layers):
            below = layers[-1] if layers else self.X
            hidden = self.convolve(propagate, below, layer, weights).relu()
            layers.append(dropout.hidden(hidden, self.settings.dropout, layer))
        jumped = torch.cat(layers, -1) if self.settings.jump == "cat" else torch.stack(layers).amax(0)
        logits = self.convolve(propagate, jumped, self.settings.layers, weights)
        return BaselineOutput(logits, [*layers, logits])

    def propagation(self, dropout: NoDropout) -> Propagate:
        """H ↦ Â H."""
        matrix = self.graph.normalized(self.settings.normalization)
        return lambda H: matrix @ H

    def convolve(self, propagate: Propagate, H: SparseMatrix | Tensor, layer: int, weights: Weights) -> Tensor:
        """Â H W + b, plus H W_self where there is one."""
        out = propagate(H @ weights[f"weight{layer}"]) + weights[f"bias{layer}"]
        return out + H @ weights[f"self{layer}"] if self.settings.self_weight else out
