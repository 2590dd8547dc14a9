"""GAT: Veličković et al., Graph Attention Networks, ICLR 2018."""

from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

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

SLOPE = 0.2  # of the LeakyReLU in the attention


@dataclass(frozen=True)
class GATSettings(HiddenSettings):
    """Settings of a GAT; ``hidden_channels`` is the width of one head, ``dropout`` also that of the attention."""

    lr: float = between(0.005, 0, 100)
    hidden_channels: int = between(8, 1, 65536)
    dropout: float = between(0.6, 0, 1)
    heads: int = between(8, 1, 1024)
    """Number of attention heads of the hidden layers, whose outputs are concatenated."""
    output_heads: int = between(1, 1, 1024)
    """Number of attention heads of the last layer, whose outputs are averaged."""
    layers: int = between(2, 1, 1024)
    """Number of graph attention layers."""


class GAT(Baseline):
    """Each head: h_i' = Σ_j α_ij W h_j over node i itself and its neighbours j.

    α_ij is the softmax over j of LeakyReLU(a_target · W h_i + a_source · W h_j).

    ELU between the layers, a bias after each, Glorot-uniform weights; dropout of the input of a layer, of α and, as in
    the authors' code (PetarV-/GAT, utils/layers.py), of the W h_j that are summed.
    """

    Settings: ClassVar = GATSettings
    settings: GATSettings

    def shape(self, layer: int) -> tuple[int, int, int]:
        """Width of the input of a layer, number of its heads, width of a head."""
        settings, last = self.settings, layer == self.settings.layers - 1
        width = settings.heads * settings.hidden_channels if layer else self.graph.num_features
        if last:
            return width, settings.output_heads, self.graph.num_classes
        return width, settings.heads, settings.hidden_channels

    def weights(self, initial: InitialWeights) -> dict[str, Weight]:
        """Of every layer, W with its heads side by side, a_source, a_target and the bias."""
        weights: dict[str, Weight] = {}
        for layer in range(self.settings.layers):
            width, heads, head = self.shape(layer)
            last = layer == self.settings.layers - 1
            values = {
                "weight": initial.uniform(width, heads * head, (6 / (width + head)) ** 0.5),
                "source": initial.uniform(1, heads * head, (6 / (head + 1)) ** 0.5),
                "target": initial.uniform(1, heads * head, (6 / (head + 1)) ** 0.5),
                "bias": initial.full(1, head if last else heads * head),
            }
            weights |= {f"{name}{layer + 1}": Weight(value, self.settings.decay) for name, value in values.items()}
        return weights

    def forward(self, weights: Weights, dropout: NoDropout) -> BaselineOutput:
        """One attention layer after the other."""
        layers: list[Tensor] = []
        for layer in range(self.settings.layers):
            if layer:
                layers[-1] = F.elu(layers[-1])
                inner = dropout.hidden(layers[-1], self.settings.dropout, layer) @ weights[f"weight{layer + 1}"]
            else:
                inner = dropout.input(self.X, self.settings.dropout) @ weights["weight1"]
            layers.append(self.attend(inner, layer, weights, dropout))
        return BaselineOutput(layers[-1], layers)

    def attend(self, inner: Tensor, layer: int, weights: Weights, dropout: NoDropout) -> Tensor:
        """Return a layer's output for W h, [R, n, heads · head]."""
        edges, replicas = self.graph.edges, inner.shape[0]
        _, heads, head = self.shape(layer)
        source, target, bias = (weights[f"{name}{layer + 1}"] for name in ("source", "target", "bias"))
        by_source, by_target = (grouped(inner * vector, heads).sum(-1) for vector in (source, target))  # [n, R · heads]
        scores = F.leaky_relu(edges.sums(by_source, by_target), SLOPE)
        alpha = ungrouped(edges.softmax(scores), replicas)
        alpha = grouped(dropout.hidden(alpha, self.settings.dropout, layer, stream="edges")).reshape(edges.count, -1)
        inner = dropout.hidden(inner, self.settings.dropout, layer, stream="partner")
        out = ungrouped(edges.product(alpha, grouped(inner, heads)), replicas)
        if layer == self.settings.layers - 1:
            out = out.unflatten(-1, (heads, head)).mean(-2)
        return torch.add(out, bias)
