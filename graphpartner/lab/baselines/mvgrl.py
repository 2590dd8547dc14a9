"""MVGRL: Hassani and Khasahmadi, Contrastive Multi-View Representation Learning on Graphs, ICML 2020.

One view is the graph itself, the other its diffusion by personalised PageRank, in which all nodes are connected, near
ones more strongly.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from graphpartner.graph.adjacency import is_symmetric, to_scipy
from graphpartner.kernels import draws
from graphpartner.kernels.spmm import SparseMatrix
from graphpartner.lab.baselines.dgi import bilinear_weights, discrimination_loss, scores, summary, take_rows
from graphpartner.lab.baselines.self_supervised import SLOPE, EncoderWeights, PretextSettings, PretextTask, prelu
from graphpartner.system.errors import InputError
from graphpartner.training.prepared import DeviceGraph
from graphpartner.training.settings import between

EPSILONS = (1e-5, 1e-4, 1e-3, 1e-2)
MOST_NODES = 30_000  # beyond, the n × n matrix and its inverse take more than 11 GB; 18 where the graph is directed


def personalized_pagerank(P: Tensor, alpha: float) -> Tensor:
    """S = α (I − (1 − α) P)⁻¹, dense, [n, n], of P = D̃^-½ Ã D̃^-½ in torch sparse CSR form."""
    if P.shape[0] > MOST_NODES:
        raise InputError(f"num_nodes = {P.shape[0]}: must be at most {MOST_NODES}, MVGRL's diffusion is a dense matrix")
    system = P.to_dense().mul_(alpha - 1)
    system.diagonal().add_(1)
    if not is_symmetric(to_scipy(P)):  # a directed graph: 2 / α does not bound its condition, float32 is too little
        return torch.linalg.inv(system.double()).mul_(alpha).float()
    # eigenvalues between α and 2 − α: float32 and a Cholesky factor suffice
    return torch.cholesky_inverse(torch.linalg.cholesky(system)).mul_(alpha)


def sparsified(S: Tensor, num_edges: int) -> SparseMatrix:
    """S as MVGRL's authors treat CiteSeer: small entries set to zero, every column scaled to [0, 1].

    Of ``EPSILONS``, the threshold is the one whose mean number of entries per row is nearest to the mean degree.
    """
    n = S.shape[0]
    epsilon = min(EPSILONS, key=lambda each: abs(int((each <= S).sum()) - num_edges) / n)
    kept = S.masked_fill(epsilon > S, 0)
    low, high = kept.min(0).values, kept.max(0).values
    scaled = (kept - low) / (high - low).masked_fill(high == low, 1)
    return SparseMatrix(scaled.to_sparse_csr())


View = SparseMatrix | Tensor


@dataclass(frozen=True)
class MVGRLSettings(PretextSettings):
    """Settings of MVGRL; the authors' as defaults."""

    alpha: float = between(0.2, 1e-3, 1)
    """α of personalised PageRank, the restart probability. Much less than 0.001 is too little for float32."""
    sparsify: bool = False
    """Whether small entries of S are set to zero and its columns scaled, as the authors do on CiteSeer."""
    window: int = between(2000, 1, 1_000_000)
    """Number of consecutive nodes in a window of a step."""
    windows: int = between(4, 1, 1000)
    """Number of windows in a step; one where a window holds the whole graph."""
    epochs: int = between(3000, 1, 10_000_000)
    """Maximum number of steps."""
    patience: int = between(20, 1, 10_000_000)
    """Number of steps without a lower loss after which a run stops."""


class MVGRL(PretextTask):
    """Two one-layer GCNs: H¹ = PReLU(P X W¹ + b¹) of the graph, H² = PReLU(S X W² + b²) of its diffusion S.

    A bilinear discriminator, as in DGI, separates the nodes of one view from those of the same view with the rows of X
    shuffled, by the summary of the *other* view. Every step sees a few windows of consecutive nodes. The embedding is
    H¹ + H² of the whole graph.

    The weights are W, b and the slope of PReLU of the graph's encoder, those of the diffusion's, then M and its bias.
    In a step the leading dimensions are [R, windows].
    """

    Settings: ClassVar = MVGRLSettings
    settings: MVGRLSettings
    draws_per_epoch: ClassVar = {"negatives": 1, "input": 1}

    def __init__(self, graph: DeviceGraph, settings: MVGRLSettings) -> None:
        super().__init__(graph, settings)
        n, h = graph.num_nodes, self.width
        self.size = min(settings.window, n)
        self.count = settings.windows if self.size < n else 1
        S = personalized_pagerank(graph.P.csr, settings.alpha)
        num_edges = graph.P.nnz - n  # without self-loops
        self.views: tuple[View, View] = (graph.P, sparsified(S, num_edges) if settings.sparsify else S)
        rows = self.count * self.size
        self.memory = 4 * (
            6 * n * h + 14 * self.X.shape[1] * h + 30 * rows * h + rows * self.size + 4 * self.count * n * h
        )

    def initial(self, seeds: list[int]) -> EncoderWeights:
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

    def loss(self, weights: EncoderWeights, drawn: tuple[Tensor, ...]) -> Tensor:
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

        Blocks are cut out of a dense view; a sparse one multiplies H padded with zeros.
        """
        if isinstance(view, Tensor):
            every_cut = view.unfold(0, self.size, 1).unfold(1, self.size, 1)  # a tensor view of every window there is
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

    def embed(self, weights: EncoderWeights) -> Tensor:
        """H¹ + H² of the whole graph, [R, n, h]."""
        views = zip(self.views, (weights[:3], weights[3:6]), strict=True)
        first, second = (prelu(view @ (self.X @ weight) + bias, slope) for view, (weight, bias, slope) in views)
        return first + second
