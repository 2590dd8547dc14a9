"""The hyperparameters that many baselines have; each model adds its own.

What every supervised baseline is: weights, a forward pass, a loss; written once for any number of runs.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar, Literal, NamedTuple

from torch import Tensor

from graphpartner.kernels.spmm import fold
from graphpartner.lab.baselines.layouts import BaselineGraph
from graphpartner.lab.baselines.run_dropout import InitialWeights, NoDropout
from graphpartner.model.losses import cross_entropy
from graphpartner.training.prepared import Labelled
from graphpartner.training.settings import Checked, between


@dataclass(frozen=True)
class BaselineSettings(Checked):
    """How a baseline sees the features, learns and stops."""

    features: Literal["raw", "row"] = "row"
    """``raw`` as they are, or ``row``: every row divided by its sum."""
    lr: float = between(0.01, 0, 100)
    """Learning rate of Adam."""
    decay: float = between(5e-4, 0, 1e3)
    """Weight decay."""
    epochs: int = between(1000, 1, 1_000_000)
    """At most so many epochs."""
    patience: int = between(100, 1, 1_000_000)
    """Stop after so many epochs without a lower validation loss."""


@dataclass(frozen=True)
class HiddenSettings(BaselineSettings):
    """Settings of a model with a hidden layer and dropout."""

    hidden_channels: int = between(64, 1, 65536)
    """Width of a hidden layer."""
    dropout: float = between(0.5, 0, 1)
    """Share of the entries dropped of what goes into a layer."""


@dataclass(frozen=True)
class EmbeddingSettings(Checked):
    """How a model that learns without labels sees the features and learns."""

    features: Literal["raw", "row"] = "row"
    """``raw`` as they are, or ``row``: every row divided by its sum."""
    hidden_channels: int = between(512, 1, 65536)
    """Width of the embedding."""
    lr: float = between(0.001, 0, 100)
    """Learning rate of Adam."""
    weight_decay: float = between(0.0, 0, 1e3)
    """Of all weights."""
    regression_decay: float = between(0.0, 0, 1e3)
    """Of the logistic regression on top of the embedding as it is; 0: chosen on validation nodes."""


Weights = dict[str, Tensor]


class Weight(NamedTuple):
    """A weight of R runs, [R, rows, columns], at the start."""

    value: Tensor
    decay: float
    learned: bool = True
    """False for what the forward pass itself keeps up to date, as running means are."""


@dataclass(frozen=True)
class BaselineOutput:
    """What a forward pass gives: logits [R, n, C], and the hidden states after each graph layer, [R, n, h_i]."""

    logits: Tensor
    layers: list[Tensor] = field(default_factory=list)


class Baseline(ABC):
    """One baseline on one graph. Holds no weights of its own: they come and go, R runs at a time."""

    Settings: ClassVar[type[BaselineSettings]] = BaselineSettings
    settings: BaselineSettings

    def __init__(self, graph: BaselineGraph, settings: BaselineSettings) -> None:
        self.graph, self.settings = graph, settings

    @abstractmethod
    def weights(self, initial: InitialWeights) -> dict[str, Weight]:
        """The weights at the start, by name, in the order of the layers."""

    @abstractmethod
    def forward(self, weights: Weights, noise: NoDropout) -> BaselineOutput:
        """The forward pass; ``noise`` says what is dropped."""

    def loss(self, weights: Weights, noise: NoDropout, train: Labelled) -> Tensor:
        """What is made small, [R]: the mean cross-entropy of the labelled nodes."""
        return cross_entropy(self.forward(weights, noise).logits, train.index, train.target, train.weight)


def grouped(H: Tensor, groups: int = 1) -> Tensor:
    """[R, n, groups · c] → [n, R · groups, c], as products over edges want it."""
    return fold(H).reshape(H.shape[1], H.shape[0] * groups, -1)


def ungrouped(H: Tensor, replicas: int) -> Tensor:
    """[n, R · groups, c] → [R, n, groups · c]: the inverse of :func:`grouped`."""
    return H.reshape(H.shape[0], replicas, -1).transpose(0, 1)
