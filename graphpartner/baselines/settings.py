"""The hyperparameters that many baselines have; each model adds its own."""

from dataclasses import dataclass
from typing import Literal

from graphpartner.train.settings import Checked, between


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
