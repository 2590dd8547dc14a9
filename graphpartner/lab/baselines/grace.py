"""GRACE, from *Deep Graph Contrastive Representation Learning* (Zhu et al., 2020).

Two views of the graph are drawn in every epoch: each loses some edges and some columns of X. A two-layer GCN embeds
both, an MLP projects the embeddings, and every node has to be recognised in the other view among all nodes of both
views (:func:`graphpartner.kernels.nt_xent.nt_xent`). The embedding is the encoder's on the whole graph, every row
scaled to length 1.
"""

from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from graphpartner.graph.adjacency import adjacency, normalized_adjacency, to_torch
from graphpartner.graph.record import GraphRecord
from graphpartner.kernels import draws
from graphpartner.kernels.dropout import Dropout, Rate
from graphpartner.kernels.nt_xent import BLOCK, nt_xent
from graphpartner.kernels.spmm import SparseMatrix
from graphpartner.lab.baselines.baseline import EmbeddingSettings
from graphpartner.lab.baselines.pretrain import SLOPE, Weights, prelu
from graphpartner.training.prepared import feature_matrix
from graphpartner.training.settings import between

NARROW = 64  # columns that one program of the GPU's loop over kept edges can hold


@dataclass(frozen=True)
class GRACE(EmbeddingSettings):
    """Hyperparameters of GRACE; the authors' on Cora as defaults."""

    hidden_channels: int = between(128, 1, 65536)
    """Width of the embedding; the first layer is twice as wide."""
    projection_channels: int = between(128, 1, 65536)
    """Width of the projection's hidden layer."""
    activation: Literal["relu", "prelu"] = "relu"
    """Of both layers of the encoder."""
    drop_edges1: float = between(0.2, 0, 0.99)
    """Share of the edges that the first view loses."""
    drop_edges2: float = between(0.4, 0, 0.99)
    """Share of the edges that the second view loses."""
    drop_columns1: float = between(0.3, 0, 0.99)
    """Share of the columns of X that the first view loses."""
    drop_columns2: float = between(0.4, 0, 0.99)
    """Share of the columns of X that the second view loses."""
    temperature: float = between(0.4, 1e-2, 1e3)
    """τ of the loss."""
    lr: float = between(0.0005, 0, 100)
    """Learning rate of Adam."""
    weight_decay: float = between(1e-5, 0, 1e3)
    """Of all weights."""
    epochs: int = between(200, 1, 10_000_000)
    """So many: GRACE does not stop early."""

    @property
    def patience(self) -> None:
        """The weights after the last epoch are taken."""

    def objective(self, data: GraphRecord, device: torch.device) -> "Recognition":
        """The loss on this graph."""
        return Recognition(self, data, device)


class Recognition:
    """The loss of GRACE on one graph, for R replicas.

    The weights are a matrix and a bias for each of the encoder's two layers, the same for the projection's two, and
    with PReLU its slope.
    """

    draws_per_epoch = {"edges": 2, "input": 2}  # noqa: RUF012

    def __init__(self, settings: GRACE, data: GraphRecord, device: torch.device) -> None:
        n = data.num_nodes
        self.settings, self.device = settings, device
        self.X = feature_matrix(data.x, settings.features, device)
        weight = data.get("edge_weight")
        self.A = SparseMatrix(normalized_adjacency(data.edge_index, n, weight)).to(device)
        self.edges = SparseMatrix(to_torch(adjacency(data.edge_index, n, weight))).to(device)
        h, p, d = settings.hidden_channels, settings.projection_channels, self.X.shape[1]
        self.shapes = ((d, 2 * h), (2 * h, h), (h, p), (p, h))
        self.memory = 4 * (8 * d * 2 * h + n * (24 * h + 8 * p) + 3 * BLOCK * BLOCK)

    def initial(self, seeds: list[int]) -> Weights:
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
        """The keys by which both views drop their edges, [R, 2], and which columns they keep, [R, d, 1]."""
        counter = draws.counters(self.X.shape[1], device=self.device)
        rates = self.settings.drop_columns1, self.settings.drop_columns2
        kept = (draws.uniform(key, counter)[..., None] >= rate for key, rate in zip(keys["input"], rates, strict=True))
        return (*keys["edges"], *kept)

    def loss(self, weights: Weights, drawn: tuple[Tensor, ...]) -> Tensor:
        """[R]."""
        of = self.settings
        views = zip(drawn[:2], drawn[2:], (of.drop_edges1, of.drop_edges2), strict=True)
        first, second = (self.project(self.view(weights, *each), weights) for each in views)
        return nt_xent(first, second, of.temperature)

    def view(self, weights: Weights, key: Tensor, kept: Tensor, rate: float) -> Tensor:
        """The encoder on a graph without the dropped edges and columns, [R, n, h].

        X without some columns times W is X times W without these rows.
        """
        dropped = DroppedEdges(self.edges, key, rate)
        first, *others = weights
        return self.encode((first * kept, *others), dropped)

    def encode(self, weights: Weights, A: "SparseMatrix | DroppedEdges") -> Tensor:
        """φ(Â φ(Â X W¹ + b¹) W² + b²), [R, n, h]."""
        first, first_bias, second, second_bias = weights[:4]
        H = self.activate(A @ (self.X @ first) + first_bias, weights)
        return self.activate(A @ (H @ second) + second_bias, weights)

    def activate(self, H: Tensor, weights: Weights) -> Tensor:
        """φ: ReLU, or PReLU with its learned slope."""
        return prelu(H, weights[-1]) if self.settings.activation == "prelu" else torch.relu(H)

    def project(self, H: Tensor, weights: Weights) -> Tensor:
        """ELU(H P¹ + c¹) P² + c², [R, n, h]."""
        first, first_bias, second, second_bias = weights[4:8]
        return F.elu(H @ first + first_bias) @ second + second_bias

    def embed(self, weights: Weights) -> Tensor:
        """The encoder on the whole graph, rows of length 1, [R, n, h]."""
        return F.normalize(self.encode(weights, self.A), dim=-1)


class DroppedEdges:
    """D̃^-½ (Ã) D̃^-½ of a graph that has lost edges, other ones in every replica; never stored.

    Either direction of an edge is dropped for itself; D̃ adds up the edges that arrive, with the self-loop.

    Args:
        edges: A, with its weights.
        key: int32 [R, 2], by which edges are dropped.
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
        """Σ_j a_ij h_j over the edges j → i that are left, [R, n, h] → the same."""
        if self.rate == 0:
            return self.edges @ H
        replicas, n, width = H.shape
        parts = width // NARROW if H.is_cuda and width % NARROW == 0 else 1
        # A wide H goes as several narrow ones that drop the same edges.
        narrow = H.reshape(replicas, n, parts, -1).transpose(1, 2).reshape(replicas * parts, n, -1)
        key = self.key[:, None].expand(-1, parts, -1).reshape(-1, 2)
        drop = Dropout(key, Rate(torch.full((len(key),), self.rate, device=key.device)))
        summed = (drop.input(self.edges) @ narrow) * (1 - self.rate)  # dropout scales what is left; edges do not
        return summed.reshape(replicas, parts, n, -1).transpose(1, 2).reshape(replicas, n, width)
