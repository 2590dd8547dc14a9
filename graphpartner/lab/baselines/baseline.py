"""What a supervised baseline is made of: settings, weights, dropout, a forward pass and a loss, for any number of runs.

Every random number of a run, of its initial weights and of its dropout, depends on the seed of that run alone.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar, Literal, NamedTuple

import torch
from torch import Tensor

from graphpartner.kernels import draws
from graphpartner.kernels.dropout import Dropout, DroppedFeatures, Rate
from graphpartner.kernels.spmm import SparseMatrix, fold
from graphpartner.model.losses import cross_entropy
from graphpartner.training.prepared import DeviceGraph, Labelled
from graphpartner.training.settings import Checked, between


@dataclass(frozen=True)
class BaselineSettings(Checked):
    """Hyperparameters of every supervised baseline: features, optimiser and early stopping."""

    features: Literal["raw", "row"] = "row"
    """``raw`` as they are, or ``row``: every row divided by its sum."""
    lr: float = between(0.01, 0, 100)
    """Learning rate of Adam."""
    decay: float = between(5e-4, 0, 1e3)
    """Weight decay."""
    epochs: int = between(1000, 1, 1_000_000)
    """Maximum number of epochs."""
    patience: int = between(100, 1, 1_000_000)
    """Number of epochs without a lower validation loss after which a run stops."""


@dataclass(frozen=True)
class HiddenSettings(BaselineSettings):
    """Hyperparameters of a model with hidden layers and dropout."""

    hidden_channels: int = between(64, 1, 65536)
    """Width of a hidden layer."""
    dropout: float = between(0.5, 0, 1)
    """Share of the entries of a layer's input dropped."""


class InitialWeights:
    """Initial weights of R runs, [R, rows, columns] each; every matrix drawn has a stream of its own."""

    def __init__(self, seeds: list[int], device: torch.device) -> None:
        self.seeds, self.device, self.num_drawn = seeds, device, 0

    def _draw(self, rows: int, columns: int) -> Tensor:
        """Uniform in [0, 1)."""
        key = draws.keys(self.seeds, "weight1", 1, layer=self.num_drawn)[0].to(self.device)
        self.num_drawn += 1
        drawn = draws.uniform(key, draws.counters(rows * columns, device=self.device))
        return drawn.reshape(len(self.seeds), rows, columns)

    def uniform(self, rows: int, columns: int, bound: float) -> Tensor:
        """Uniform between −bound and bound."""
        return (self._draw(rows, columns) * 2 - 1) * bound

    def glorot(self, rows: int, columns: int) -> Tensor:
        """Uniform with bound √(6 / (rows + columns))."""
        return self.uniform(rows, columns, (6 / (rows + columns)) ** 0.5)

    def normal(self, rows: int, columns: int, mean: float, sd: float) -> Tensor:
        """Normal, by the inverse distribution function at the middle of each of the 2²⁴ steps of a draw.

        In float32 the middle of the last step would be 1, and its normal infinite: one weight in 17 million.
        """
        middle = self._draw(rows, columns).double() + 2**-25
        return (mean + sd * torch.special.ndtri(middle)).float()

    def full(self, rows: int, columns: int, value: float = 0.0) -> Tensor:
        """The same number everywhere."""
        return torch.full((len(self.seeds), rows, columns), value, device=self.device)


class NoDropout:
    """No dropout, as in validation and prediction."""

    training = False

    def input(self, X: SparseMatrix | Tensor, rate: float) -> SparseMatrix | Tensor | DroppedFeatures:
        """X [n, d] as it is."""
        return X

    def hidden(self, H: Tensor, rate: float, layer: int = 0, stream: str = "hidden") -> Tensor:
        """H [R, n, h] as it is."""
        return H


class RunDropout(NoDropout):
    """Dropout of R runs in training, one epoch after the other.

    Args:
        seeds: one per run.
        epochs: maximum number of epochs.
        device: where the draws are made.
    """

    training = True

    def __init__(self, seeds: list[int], epochs: int, device: torch.device) -> None:
        self.seeds, self.epochs, self.device = seeds, epochs, device
        self.epoch = torch.zeros(1, dtype=torch.int64, device=device)
        self._keys: dict[tuple[str, int], Tensor] = {}
        self._rates: dict[float, Rate] = {}

    def draw(self, rate: float, layer: int = 0, stream: str = "hidden") -> Dropout:
        """This epoch's dropout of a layer. The epoch is a tensor, so that it can be part of a captured CUDA graph."""
        if (stream, layer) not in self._keys:
            self._keys[stream, layer] = draws.keys(self.seeds, stream, self.epochs, layer).to(self.device)
        if rate not in self._rates:
            self._rates[rate] = Rate(torch.full((len(self.seeds),), rate, device=self.device))
        return Dropout(self._keys[stream, layer].index_select(0, self.epoch)[0], self._rates[rate])

    def input(self, X: SparseMatrix | Tensor, rate: float) -> SparseMatrix | Tensor | DroppedFeatures:
        """X̃ of every run, to be multiplied by its weights."""
        return DroppedFeatures(X, self.draw(rate, stream="input")) if rate else X

    def hidden(self, H: Tensor, rate: float, layer: int = 0, stream: str = "hidden") -> Tensor:
        """H [R, n, h] with a share of its entries dropped and the others scaled; layers differ in what they drop."""
        return self.draw(rate, layer, stream).hidden(H) if rate else H

    def keep(self, replicas: Tensor) -> None:
        """Go on with these runs alone."""
        self.seeds = [self.seeds[replica] for replica in replicas.tolist()]
        self._keys = {name: key[:, replicas] for name, key in self._keys.items()}
        self._rates = {}


Weights = dict[str, Tensor]


class Weight(NamedTuple):
    """A weight of R runs, [R, rows, columns], at the start."""

    value: Tensor
    decay: float
    learned: bool = True
    """False for what the forward pass itself updates, as running means."""


@dataclass(frozen=True)
class BaselineOutput:
    """The result of a forward pass: logits [R, n, C], and the hidden states after each graph layer, [R, n, h_i]."""

    logits: Tensor
    layers: list[Tensor] = field(default_factory=list)


class Baseline(ABC):
    """A supervised baseline on one graph. It holds no weights: they are arguments, of R runs at a time."""

    Settings: ClassVar[type[BaselineSettings]] = BaselineSettings
    settings: BaselineSettings

    def __init__(self, graph: DeviceGraph, settings: BaselineSettings) -> None:
        self.graph, self.settings, self.X = graph, settings, graph.features(settings.features)

    @abstractmethod
    def weights(self, initial: InitialWeights) -> dict[str, Weight]:
        """Return the weights at the start, by name, in the order of the layers."""

    @abstractmethod
    def forward(self, weights: Weights, dropout: NoDropout) -> BaselineOutput:
        """Return logits and hidden states."""

    def loss(self, weights: Weights, dropout: NoDropout, train: Labelled) -> Tensor:
        """Return what is minimised, [R]: the mean cross-entropy of the labelled nodes."""
        return cross_entropy(self.forward(weights, dropout).logits, train.index, train.target, train.weight)


def grouped(H: Tensor, groups: int = 1) -> Tensor:
    """[R, n, groups · c] → [n, R · groups, c], the layout of products over edges."""
    return fold(H).reshape(H.shape[1], H.shape[0] * groups, -1)


def ungrouped(H: Tensor, replicas: int) -> Tensor:
    """[n, R · groups, c] → [R, n, groups · c]: the inverse of :func:`grouped`."""
    return H.reshape(H.shape[0], replicas, -1).transpose(0, 1)
