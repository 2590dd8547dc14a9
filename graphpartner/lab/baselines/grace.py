"""GRACE: Zhu et al., Deep Graph Contrastive Representation Learning, ICML workshop 2020."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from graphpartner.kernels import draws
from graphpartner.kernels.dropout import Dropout, Rate
from graphpartner.kernels.nt_xent import BLOCK, nt_xent
from graphpartner.kernels.spmm import SparseMatrix
from graphpartner.lab.baselines.self_supervised import SLOPE, EncoderWeights, PretextSettings, PretextTask, prelu
from graphpartner.training.prepared import DeviceGraph
from graphpartner.training.settings import between

NARROW = 64  # number of columns that one program of the GPU kernel over kept edges can hold


@dataclass(frozen=True)
class GRACESettings(PretextSettings):
    """Settings of GRACE; the authors' on Cora as defaults."""

    hidden_channels: int = between(128, 1, 65536)
    """Width of the embedding; the first layer is twice as wide."""
    projection_channels: int = between(128, 1, 65536)
    """Width of the projection's hidden layer."""
    activation: Literal["relu", "prelu"] = "relu"
    """Of both layers of the encoder."""
    drop_edges1: float = between(0.2, 0, 0.99)
    """Share of the edges dropped in the first view."""
    drop_edges2: float = between(0.4, 0, 0.99)
    """Share of the edges dropped in the second view."""
    drop_columns1: float = between(0.3, 0, 0.99)
    """Share of the columns of X dropped in the first view."""
    drop_columns2: float = between(0.4, 0, 0.99)
    """Share of the columns of X dropped in the second view."""
    temperature: float = between(0.4, 1e-2, 1e3)
    """τ of the loss."""
    lr: float = between(0.0005, 0, 100)
    """Learning rate of Adam."""
    weight_decay: float = between(1e-5, 0, 1e3)
    """Of all weights."""
    epochs: int = between(200, 1, 10_000_000)
    """Number of epochs: GRACE does not stop early."""


class GRACE(PretextTask):
    """Two views of the graph, each with some edges and some columns of X dropped anew in every epoch.

    A two-layer GCN embeds both, an MLP projects the embeddings, and every node has to be recognised in the other view
    among all nodes of both views (:func:`graphpartner.kernels.nt_xent.nt_xent`). The embedding is the encoder's on the
    whole graph, every row scaled to length 1.

    The weights are a matrix and a bias for each of the encoder's two layers, the same for the projection's two, and
    with PReLU its slope.
    """

    Settings: ClassVar = GRACESettings
    settings: GRACESettings
    draws_per_epoch: ClassVar = {"edges": 2, "input": 2}

    def __init__(self, graph: DeviceGraph, settings: GRACESettings) -> None:
        super().__init__(graph, settings)
        n, h, p, d = graph.num_nodes, self.width, settings.projection_channels, self.X.shape[1]
        self.shapes = ((d, 2 * h), (2 * h, h), (h, p), (p, h))
        self.memory = 4 * (8 * d * 2 * h + n * (24 * h + 8 * p) + 3 * BLOCK * BLOCK)

    def initial(self, seeds: list[int]) -> EncoderWeights:
        """The encoder's matrices are Glorot-uniform with biases of zero, the projection's U(±1/√rows) with biases."""
        convolutions = draws.keys(seeds, "weight1", 2).to(self.device)
        projections = draws.keys(seeds, "weight2", 4).to(self.device)
        weights: list[Tensor] = []
        for key, (rows, columns) in zip(convolutions, self.shapes[:2], strict=True):
            weights += draws.glorot(key, rows, columns), torch.zeros(len(seeds), 1, columns, device=self.device)
        for layer, (rows, columns) in enumerate(self.shapes[2:]):
            for key, height in zip(projections[2 * layer :], (rows, 1), strict=False):
                drawn = draws.uniform(key, draws.counters(height * columns, device=self.device))
                weights.append((2 * drawn - 1).mul_(rows**-0.5).reshape(len(seeds), height, columns))
        if self.settings.activation == "prelu":
            weights.append(torch.full((len(seeds), 1, 1), SLOPE, device=self.device))
        return tuple(weights)

    def draw(self, keys: dict[str, Tensor]) -> tuple[Tensor, ...]:
        """The keys of both views' dropped edges, [R, 2] each, and masks of the columns they keep, [R, d, 1] each."""
        counter = draws.counters(self.X.shape[1], device=self.device)
        rates = self.settings.drop_columns1, self.settings.drop_columns2
        kept = (draws.uniform(key, counter)[..., None] >= rate for key, rate in zip(keys["input"], rates, strict=True))
        return (*keys["edges"], *kept)

    def loss(self, weights: EncoderWeights, drawn: tuple[Tensor, ...]) -> Tensor:
        """NT-Xent of the two projected views, [R]."""
        of = self.settings
        views = zip(drawn[:2], drawn[2:], (of.drop_edges1, of.drop_edges2), strict=True)
        first, second = (self.project(self.view(weights, *each), weights) for each in views)
        return nt_xent(first, second, of.temperature)

    def view(self, weights: EncoderWeights, key: Tensor, kept: Tensor, rate: float) -> Tensor:
        """The encoder on a graph without the dropped edges and columns, [R, n, h].

        X without some columns times W is X times W without these rows.
        """
        dropped = DroppedEdges(self.graph.A, key, rate)
        first, *others = weights
        return self.encode((first * kept, *others), dropped)

    def encode(self, weights: EncoderWeights, P: "SparseMatrix | DroppedEdges") -> Tensor:
        """φ(P φ(P X W¹ + b¹) W² + b²), [R, n, h]."""
        first, first_bias, second, second_bias = weights[:4]
        H = self.activate(P @ (self.X @ first) + first_bias, weights)
        return self.activate(P @ (H @ second) + second_bias, weights)

    def activate(self, H: Tensor, weights: EncoderWeights) -> Tensor:
        """φ: ReLU, or PReLU with its learned slope."""
        return prelu(H, weights[-1]) if self.settings.activation == "prelu" else torch.relu(H)

    def project(self, H: Tensor, weights: EncoderWeights) -> Tensor:
        """ELU(H P¹ + c¹) P² + c², [R, n, h]."""
        first, first_bias, second, second_bias = weights[4:8]
        return F.elu(H @ first + first_bias) @ second + second_bias

    def embed(self, weights: EncoderWeights) -> Tensor:
        """The encoder on the whole graph, rows of length 1, [R, n, h]."""
        return F.normalize(self.encode(weights, self.graph.P), dim=-1)


class DroppedEdges:
    """D̃^-½ Ã D̃^-½ of a graph with dropped edges, which differ from replica to replica; never stored.

    The two directions of an edge are dropped independently; D̃ sums incoming edges and the self-loop.

    Args:
        edges: A, with its weights.
        key: int32 [R, 2], decides which edges are dropped.
        rate: the share that is.
    """

    def __init__(self, edges: SparseMatrix, key: Tensor, rate: float) -> None:
        self.edges, self.key, self.rate = edges, key, rate
        with torch.no_grad():
            ones = torch.ones(key.shape[0], edges.shape[0], 1, device=key.device)
            self.scale = (self.sum_neighbors(ones) + 1).rsqrt()  # [R, n, 1]

    def __matmul__(self, H: Tensor) -> Tensor:
        scaled = H * self.scale
        return (self.sum_neighbors(scaled) + scaled) * self.scale

    def sum_neighbors(self, H: Tensor) -> Tensor:
        """Σ_j a_ij h_j over the edges j → i that are kept, [R, n, h] → the same."""
        if self.rate == 0:
            return self.edges @ H
        replicas, n, width = H.shape
        parts = width // NARROW if H.is_cuda and width % NARROW == 0 else 1
        # a wide H is split into several narrow ones that drop the same edges
        narrow = H.reshape(replicas, n, parts, -1).transpose(1, 2).reshape(replicas * parts, n, -1)
        key = self.key[:, None].expand(-1, parts, -1).reshape(-1, 2)
        drop = Dropout(key, Rate(torch.full((len(key),), self.rate, device=key.device)))
        summed = (drop.input(self.edges) @ narrow) * (1 - self.rate)  # undoes the scaling of dropout
        return summed.reshape(replicas, parts, n, -1).transpose(1, 2).reshape(replicas, n, width)
