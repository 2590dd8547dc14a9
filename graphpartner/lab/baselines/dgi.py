"""DGI, from *Deep Graph Infomax* (Velickovic et al., 2019).

A one-layer GCN embeds the graph, H = PReLU(Â X W + b), and a copy of it with the rows of X shuffled, H̃. A bilinear
discriminator learns to tell the nodes of H from those of H̃ by the summary of H, s = σ(mean_i h_i):

    L = −1/(2n) Σ_i [ln σ(h_iᵀ M s) + ln(1 − σ(h̃_iᵀ M s))].
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from graphpartner.graph.adjacency import normalized_adjacency
from graphpartner.graph.record import GraphRecord
from graphpartner.kernels import draws
from graphpartner.kernels.spmm import SparseMatrix
from graphpartner.lab.baselines.baseline import EmbeddingSettings
from graphpartner.lab.baselines.pretrain import (
    SLOPE,
    Weights,
    bilinear_weights,
    discrimination_loss,
    prelu,
    scores,
    summary,
    take_rows,
)
from graphpartner.training.prepared import feature_matrix
from graphpartner.training.settings import between


@dataclass(frozen=True)
class DGI(EmbeddingSettings):
    """Hyperparameters of DGI; the authors' as defaults."""

    epochs: int = between(10_000, 1, 10_000_000)
    """At most so many epochs."""
    patience: int = between(20, 1, 10_000_000)
    """Stop after so many epochs without a lower loss L."""

    def objective(self, data: GraphRecord, device: torch.device) -> "Infomax":
        """L on this graph."""
        return Infomax(self, data, device)


class Infomax:
    """L of DGI on one graph, for R replicas. The weights are W, b, the slope of PReLU, M and its bias."""

    draws_per_epoch = {"negatives": 1}  # noqa: RUF012

    def __init__(self, settings: DGI, data: GraphRecord, device: torch.device) -> None:
        self.width = settings.hidden_channels
        self.X = feature_matrix(data.x, settings.features, device)
        self.A = SparseMatrix(normalized_adjacency(data.edge_index, data.num_nodes, data.get("edge_weight"))).to(device)
        self.device = device
        (n, d), h = self.X.shape, self.width
        self.memory = 4 * (12 * n * h + 7 * d * h + 6 * h * h)

    def initial(self, seeds: list[int]) -> Weights:
        """Glorot-uniform matrices, biases of zero."""
        first, second = (draws.keys(seeds, name, 1)[0].to(self.device) for name in ("weight1", "weight2"))
        zeros = torch.zeros(len(seeds), 1, self.width, device=self.device)
        return (
            draws.glorot(first, self.X.shape[1], self.width),
            zeros,
            torch.full_like(zeros[..., :1], SLOPE),
            bilinear_weights(second, self.width),
            torch.zeros_like(zeros[..., :1]),
        )

    def draw(self, keys: dict[str, Tensor]) -> tuple[Tensor, ...]:
        """The shuffle of the rows, a permutation [R, n]."""
        return (draws.bits(keys["negatives"][0], draws.counters(self.X.shape[0], device=self.device)).argsort(-1),)

    def loss(self, weights: Weights, drawn: tuple[Tensor, ...]) -> Tensor:
        """L, [R]. A product with shuffled features is the shuffled product: X W is computed once."""
        weight, bias, slope, bilinear, score_bias = weights
        transformed = self.X @ weight
        true = prelu(self.A @ transformed + bias, slope)
        false = prelu(self.A @ take_rows(transformed, drawn[0]) + bias, slope)
        s = summary(true)
        return discrimination_loss(scores(true, bilinear, score_bias, s), scores(false, bilinear, score_bias, s))

    def embed(self, weights: Weights) -> Tensor:
        """H, [R, n, h]."""
        weight, bias, slope, *_ = weights
        return prelu(self.A @ (self.X @ weight) + bias, slope)
