"""The diffusion view of MVGRL: personalised PageRank, where every node sees every other, near ones more.

MVGRL, from *Contrastive Multi-View Representation Learning on Graphs* (Hassani and Khasahmadi, 2020).

Two one-layer GCNs embed two views of the graph: its adjacency, H¹ = PReLU(Â X W¹ + b¹), and its diffusion by
personalised PageRank, H² = PReLU(S X W² + b²). A bilinear discriminator, as in DGI, tells the nodes of one view from
those of the same view with the rows of X shuffled, by the summary of the *other* view. Every step sees a few windows
of consecutive nodes. The embedding is H¹ + H² of the whole graph.
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
from graphpartner.system.errors import InputError
from graphpartner.training.prepared import feature_matrix
from graphpartner.training.settings import between

EPSILONS = (1e-5, 1e-4, 1e-3, 1e-2)
MOST_NODES = 30_000  # beyond, the n × n matrix and its inverse take more than 11 GB; 18 where the graph is directed


def personalized_pagerank(
    edge_index: Tensor, num_nodes: int, alpha: float, device: torch.device | str, edge_weight: Tensor | None = None
) -> Tensor:
    """S = α (I − (1 − α) D̃^-½ Ã D̃^-½)⁻¹, dense, [n, n]."""
    if num_nodes > MOST_NODES:
        raise InputError(
            f"a graph of {num_nodes} nodes: MVGRL's diffusion is a dense matrix, so n must be at most {MOST_NODES}"
        )
    P = normalized_adjacency(edge_index, num_nodes, edge_weight).to(device)
    system = P.to_dense().mul_(alpha - 1)
    system.diagonal().add_(1)
    if not is_symmetric(P):  # a directed graph: 2 / α does not bound its condition, float32 is too little
        return torch.linalg.inv(system.double()).mul_(alpha).float()
    # eigenvalues between α and 2 − α: float32 and a Cholesky factor suffice
    return torch.cholesky_inverse(torch.linalg.cholesky(system)).mul_(alpha)


def is_symmetric(matrix: Tensor) -> bool:
    """Is a square torch sparse CSR tensor its own transpose, up to the rounding of its values?"""
    T = matrix.to_sparse_csc()  # the parts of Mᵀ in CSR form
    same_pattern = torch.equal(matrix.crow_indices(), T.ccol_indices()) and torch.equal(
        matrix.col_indices(), T.row_indices()
    )
    return same_pattern and torch.allclose(matrix.values(), T.values())


def sparsified(S: Tensor, num_edges: int) -> SparseMatrix:
    """S as MVGRL's authors treat CiteSeer: small entries cut away, every column scaled to [0, 1].

    Of the thresholds ε the one is taken that leaves the mean number of entries a row nearest to the mean degree.
    """
    n = S.shape[0]
    epsilon = min(EPSILONS, key=lambda each: abs(int((each <= S).sum()) - num_edges) / n)
    kept = S.masked_fill(epsilon > S, 0)
    low, high = kept.min(0).values, kept.max(0).values
    scaled = (kept - low) / (high - low).masked_fill(high == low, 1)
    return SparseMatrix(scaled.to_sparse_csr())


View = SparseMatrix | Tensor


@dataclass(frozen=True)
class MVGRL(EmbeddingSettings):
    """Hyperparameters of MVGRL; the authors' as defaults."""

    alpha: float = between(0.2, 1e-3, 1)
    """α of personalised PageRank: the chance to return to the start. Much less than 0.001 is too little for float32."""
    sparsify: bool = False
    """Whether small entries of S are cut away and its columns scaled, as the authors do on CiteSeer."""
    window: int = between(2000, 1, 1_000_000)
    """How many consecutive nodes a step sees at a time."""
    windows: int = between(4, 1, 1000)
    """How many times; one where a window holds the whole graph."""
    epochs: int = between(3000, 1, 10_000_000)
    """At most so many steps."""
    patience: int = between(20, 1, 10_000_000)
    """Stop after so many steps without a lower loss."""

    def objective(self, data: GraphRecord, device: torch.device) -> "MultiView":
        """The loss on this graph."""
        return MultiView(self, data, device)


class MultiView:
    """The loss of MVGRL on one graph, for R replicas.

    The weights are W, b and the slope of PReLU of the adjacency's encoder, those of the diffusion's, then M and its
    bias. In a step the leading dimensions are [R, windows].
    """

    draws_per_epoch = {"negatives": 1, "input": 1}  # noqa: RUF012

    def __init__(self, settings: MVGRL, data: GraphRecord, device: torch.device) -> None:
        n = data.num_nodes
        self.width, self.device = settings.hidden_channels, device
        self.size = min(settings.window, n)
        self.count = settings.windows if self.size < n else 1
        self.X = feature_matrix(data.x, settings.features, device)
        weight = data.get("edge_weight")
        A = SparseMatrix(normalized_adjacency(data.edge_index, n, weight)).to(device)
        S = personalized_pagerank(data.edge_index, n, settings.alpha, device, weight)
        num_edges = A.nnz - n  # self-loops are none
        self.views: tuple[View, View] = (A, sparsified(S, num_edges) if settings.sparsify else S)
        h, rows = self.width, self.count * self.size
        self.memory = 4 * (
            6 * n * h + 14 * self.X.shape[1] * h + 30 * rows * h + rows * self.size + 4 * self.count * n * h
        )

    def initial(self, seeds: list[int]) -> Weights:
        """Glorot-uniform matrices, biases of zero."""
        keys = (key.to(self.device) for key in draws.keys(seeds, "weight1", 2))
        zeros = torch.zeros(len(seeds), 1, self.width, device=self.device)
        encoders = (
            (draws.glorot(key, self.X.shape[1], self.width), zeros.clone(), torch.full_like(zeros[..., :1], SLOPE))
            for key in keys
        )
        bilinear = bilinear_weights(draws.keys(seeds, "weight2", 1)[0].to(self.device), self.width)
        return (*next(encoders), *next(encoders), bilinear, torch.zeros_like(zeros[..., :1]))

    def draw(self, keys: dict[str, Tensor]) -> tuple[Tensor, ...]:
        """The first node of every window, [R, windows], and the shuffle of the rows in them, [R, size]."""
        start = draws.choices(keys["input"][0], self.count, self.X.shape[0] - self.size + 1)
        shuffle = draws.bits(keys["negatives"][0], draws.counters(self.size, device=self.device)).argsort(-1)
        return start, shuffle

    def loss(self, weights: Weights, drawn: tuple[Tensor, ...]) -> Tensor:
        """Mean binary cross-entropy over nodes, views and windows, [R]."""
        start, shuffle = drawn
        bilinear, score_bias = (weight[:, None] for weight in weights[6:])
        inside = torch.arange(self.size, device=self.device).expand(start.shape[0], -1)
        both = torch.stack([inside, shuffle], 1)[:, None] + start[:, :, None, None]  # [R, windows, 2, size]
        true, false = [], []
        for view, encoder in zip(self.views, (weights[:3], weights[3:6]), strict=True):
            weight, bias, slope = encoder
            rows = take_rows(self.X @ weight, both.flatten(1)).reshape(*both.shape, self.width)
            together = rows.transpose(2, 3).flatten(3)  # true and shuffled features side by side
            H = self.within(view, together, start).unflatten(-1, (2, self.width))
            H = prelu(H + bias[:, None, None], slope)
            true.append(H[..., 0, :])
            false.append(H[..., 1, :])
        losses = []
        for own, other in ((0, 1), (1, 0)):
            s = summary(true[other])
            right, wrong = (scores(H[own], bilinear, score_bias, s) for H in (true, false))
            losses.append(discrimination_loss(right, wrong))
        return torch.stack(losses).mean((0, 2))

    def within(self, view: View, H: Tensor, start: Tensor) -> Tensor:
        """The rows and columns of a view in every window, times H: [R, windows, size, c] → the same.

        A dense view is cut out; a sparse one multiplies H among zeros.
        """
        if isinstance(view, Tensor):
            every_cut = view.unfold(0, self.size, 1).unfold(1, self.size, 1)  # a view of every window there is
            return every_cut[start, start] @ H
        n, (replicas, count, size, columns) = view.shape[0], H.shape
        place = start.T[None] + torch.arange(size, device=start.device)[:, None, None]  # [size, windows, R]
        each = torch.arange(count * replicas, device=start.device).reshape(count, replicas)
        place = (place * count * replicas + each).reshape(-1)  # rows of a matrix [n · windows · R, c]
        padded = H.new_zeros(n * count * replicas, columns).index_copy(
            0, place, H.permute(2, 1, 0, 3).reshape(-1, columns)
        )
        product = view @ padded.reshape(n, count * replicas * columns)
        rows = product.reshape(-1, columns).index_select(0, place)
        return rows.reshape(size, count, replicas, columns).permute(2, 1, 0, 3)

    def embed(self, weights: Weights) -> Tensor:
        """H¹ + H² of the whole graph, [R, n, h]."""
        views = zip(self.views, (weights[:3], weights[3:6]), strict=True)
        first, second = (prelu(view @ (self.X @ weight) + bias, slope) for view, (weight, bias, slope) in views)
        return first + second
