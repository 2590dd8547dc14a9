"""SGC: Wu et al., Simplifying Graph Convolutional Networks, ICML 2019."""

from dataclasses import dataclass
from typing import ClassVar

from graphpartner.lab.baselines.baseline import (
    Baseline,
    BaselineOutput,
    BaselineSettings,
    InitialWeights,
    NoDropout,
    Weight,
    Weights,
)
from graphpartner.training.settings import between


@dataclass(frozen=True)
class SGCSettings(BaselineSettings):
    """Settings of an SGC."""

    lr: float = between(0.2, 0, 100)
    decay: float = between(5e-6, 0, 1e3)
    num_steps: int = between(2, 0, 10_000)
    """K, the number of propagation steps."""


class SGC(Baseline):
    """softmax(P^K X W + b): logistic regression on smoothed features.

    Since P^K (X W) = (P^K X) W, the C columns of logits are propagated instead of the features.
    """

    Settings: ClassVar = SGCSettings
    settings: SGCSettings

    def weights(self, initial: InitialWeights) -> dict[str, Weight]:
        """W [d, C] and b, uniform within ±1/√d."""
        d, classes = self.graph.num_features, self.graph.num_classes
        return {
            "weight": Weight(initial.uniform(d, classes, d**-0.5), self.settings.decay),
            "bias": Weight(initial.uniform(1, classes, d**-0.5), self.settings.decay),
        }

    def forward(self, weights: Weights, dropout: NoDropout) -> BaselineOutput:
        """No dropout."""
        logits = self.graph.P.power(self.X @ weights["weight"], self.settings.num_steps) + weights["bias"]
        return BaselineOutput(logits, [logits])
