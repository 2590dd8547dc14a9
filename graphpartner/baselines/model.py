"""What every supervised baseline is: weights, a forward pass, a loss; written once for any number of runs."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

from torch import Tensor

from graphpartner.baselines.graph import Graph
from graphpartner.baselines.noise import Initial, Quiet
from graphpartner.baselines.settings import BaselineSettings
from graphpartner.model.losses import cross_entropy
from graphpartner.model.sparse import fold
from graphpartner.train.problem import Labelled

Weights = dict[str, Tensor]


class Weight(NamedTuple):
    """A weight of R runs, [R, rows, columns], at the start."""

    value: Tensor
    decay: float
    learned: bool = True
    """False for what the forward pass itself keeps up to date, as running means are."""


@dataclass(frozen=True)
class Output:
    """What a forward pass gives: logits [R, n, C], and the hidden states after each graph layer, [R, n, h_i]."""

    logits: Tensor
    layers: list[Tensor] = field(default_factory=list)


class Model(ABC):
    """One baseline on one graph. Holds no weights of its own: they come and go, R runs at a time."""

    Settings: ClassVar[type[BaselineSettings]] = BaselineSettings
    settings: BaselineSettings

    def __init__(self, graph: Graph, settings: BaselineSettings) -> None:
        self.graph, self.settings = graph, settings

    @abstractmethod
    def weights(self, initial: Initial) -> dict[str, Weight]:
        """The weights at the start, by name, in the order of the layers."""

    @abstractmethod
    def forward(self, weights: Weights, noise: Quiet) -> Output:
        """The forward pass; ``noise`` says what is dropped."""

    def loss(self, weights: Weights, noise: Quiet, train: Labelled) -> Tensor:
        """What is made small, [R]: the mean cross-entropy of the labelled nodes."""
        return cross_entropy(self.forward(weights, noise).logits, train.index, train.target, train.weight)


def grouped(H: Tensor, groups: int = 1) -> Tensor:
    """[R, n, groups · c] → [n, R · groups, c], as products over edges want it."""
    return fold(H).reshape(H.shape[1], H.shape[0] * groups, -1)


def ungrouped(H: Tensor, replicas: int) -> Tensor:
    """[n, R · groups, c] → [R, n, groups · c]: the inverse of :func:`grouped`."""
    return H.reshape(H.shape[0], replicas, -1).transpose(0, 1)
