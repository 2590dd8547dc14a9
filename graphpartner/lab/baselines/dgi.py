"""DGI: Veličković et al., Deep Graph Infomax, ICLR 2019; its bilinear discriminator serves MVGRL, too."""

from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from graphpartner.kernels import draws
from graphpartner.lab.baselines.self_supervised import SLOPE, EncoderWeights, PretextSettings, PretextTask, prelu
from graphpartner.training.prepared import DeviceGraph
from graphpartner.training.settings import between


@dataclass(frozen=True)
class DGISettings(PretextSettings):
    """Settings of DGI; the authors' as defaults."""

    epochs: int = between(10_000, 1, 10_000_000)
    """Maximum number of epochs."""
    patience: int = between(20, 1, 10_000_000)
    """Number of epochs without a lower loss L after which a run stops."""


class DGI(PretextTask):
    """A one-layer GCN, H = PReLU(P X W + b), and a discriminator that separates its nodes from those of H̃.

    H̃ is the GCN with the rows of X shuffled. With the summary s = σ(1/n Σ_i h_i) the loss is

        L = −1/(2n) Σ_i [ln σ(h_iᵀ M s) + ln(1 − σ(h̃_iᵀ M s))].

    The weights are W, b, the slope of PReLU, M and a bias of the scores.
    """

    Settings: ClassVar = DGISettings
    settings: DGISettings
    draws_per_epoch: ClassVar = {"negatives": 1}

    def __init__(self, graph: DeviceGraph, settings: DGISettings) -> None:
        super().__init__(graph, settings)
        (n, d), h = self.X.shape, self.width
        self.memory = 4 * (12 * n * h + 7 * d * h + 6 * h * h)

    def initial(self, seeds: list[int]) -> EncoderWeights:
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

    def loss(self, weights: EncoderWeights, drawn: tuple[Tensor, ...]) -> Tensor:
        """L, [R]. A product with shuffled features is the shuffled product: X W is computed once."""
        weight, bias, slope, bilinear, score_bias = weights
        transformed = self.X @ weight
        true = prelu(self.graph.P @ transformed + bias, slope)
        false = prelu(self.graph.P @ take_rows(transformed, drawn[0]) + bias, slope)
        s = summary(true)
        return discrimination_loss(scores(true, bilinear, score_bias, s), scores(false, bilinear, score_bias, s))

    def embed(self, weights: EncoderWeights) -> Tensor:
        """H, [R, n, h]."""
        weight, bias, slope, *_ = weights
        return prelu(self.graph.P @ (self.X @ weight) + bias, slope)


def summary(H: Tensor) -> Tensor:
    """The summary s = σ(1/n Σ_i h_i): [..., n, h] → [..., h]."""
    return H.mean(-2).sigmoid()


def scores(H: Tensor, bilinear: Tensor, bias: Tensor, summary: Tensor) -> Tensor:
    """h_iᵀ M s + b for every node: H [..., n, h], M [..., h, h], b [..., 1, 1], s [..., h] → [..., n]."""
    return (H @ (bilinear @ summary[..., None]) + bias).squeeze(-1)


def discrimination_loss(true: Tensor, false: Tensor) -> Tensor:
    """Binary cross-entropy, −½ (mean ln σ(true) + mean ln σ(−false)), over the last dimension."""
    return (F.softplus(-true).mean(-1) + F.softplus(false).mean(-1)) / 2


def bilinear_weights(key: Tensor, width: int) -> Tensor:
    """M, [R, h, h], Glorot-uniform as a bilinear form with one output is: fans of h² and h, so M starts small."""
    bound = (6 / (width * width + width)) ** 0.5
    flat = draws.uniform(key, draws.counters(width * width, device=key.device))
    return (flat * 2 - 1).mul_(bound).reshape(*key.shape[:-1], width, width)


def take_rows(H: Tensor, index: Tensor) -> Tensor:
    """Rows of every replica's H: [R, n, h] and [R, m] → [R, m, h], in memory [m, R, h] as products leave it."""
    replicas, n, width = H.shape
    place = index.T * replicas + torch.arange(replicas, device=index.device)
    rows = H.transpose(0, 1).reshape(n * replicas, width).index_select(0, place.reshape(-1))
    return rows.reshape(-1, replicas, width).transpose(0, 1)
