"""The candidates of a fit: settings from every region that was the best on some graph, the likeliest first."""

import dataclasses
from dataclasses import dataclass
from typing import Any

from graphpartner.training.settings import Settings


@dataclass(frozen=True)
class Candidate:
    """Settings, and the features they are for.

    Attributes:
        name: unique among the candidates.
        settings: the hyperparameters of its runs.
        hops: number of hops up to which features of neighbours stand beside a node's own.
        links: whether a node's row of the adjacency is among its features.
        linear: whether it is a linear model (:mod:`graphpartner.fitting.candidate_runs`), which uses only those of its
            settings that concern the graph.
    """

    name: str
    settings: Settings
    hops: int = 0
    links: bool = False
    linear: bool = False

    @property
    def ignores_graph(self) -> bool:
        """Whether it is a plain MLP or linear model that uses no edge."""
        return self.settings.alpha == 1 and not self.hops and not self.links

    @property
    def own_features(self) -> bool:
        """Whether its MLP partner sees a node's own features only, and so can predict a node without edges."""
        return not self.hops and not self.links

    def asdict(self) -> dict[str, Any]:
        """Return plain values for a JSON file."""
        return {**self.__dict__, "settings": self.settings.asdict()}

    @staticmethod
    def restore(content: dict[str, Any]) -> "Candidate":
        """Return the candidate that :meth:`asdict` gave the values of."""
        return Candidate(**content | {"settings": Settings().replace(**content["settings"])})


@dataclass(frozen=True)
class Traits:
    """Properties of a graph, known before training, that decide which candidates make sense."""

    has_edges: bool
    sparse: bool
    """few features are non-zero: then dropping some of them helps"""
    counts: bool
    """no feature is negative, so that a row can be divided by its sum"""
    few: bool
    """there are few labels, so that strong regularisation helps"""
    enhance: bool = False
    """the attribute graph (Eq. 7) is worth its cost"""


BASE = Settings(beta=1.0, lambda_rt=0.0, lambda_cs=0.0, epochs=500, patience=40, score="cosine")


def candidates_for(traits: Traits) -> list[Candidate]:
    """Return the candidates for a graph with these traits, the likeliest first; the very first is the plain MLP."""
    drop = 0.5 if traits.sparse else 0.0
    form = "row" if traits.counts else "raw"
    base = BASE.replace(input_dropout=drop, decay2=5e-4)
    # many labels allow larger steps
    base = base.replace(decay1=5e-3, lr=0.01) if traits.few else base.replace(decay1=5e-4, lr=0.02, patience=25)
    plain = base.replace(num_steps=0, alpha=1.0)
    light = {"decay1": 1e-5, "decay2": 1e-5, "dropout": 0.3, "hidden_channels": 128}
    contrast = {"lambda_rt": 0.1, "lambda_cs": 0.7, "margin": 0.7}
    weak = {"input_dropout": 0.6 * drop, "dropout": 0.35}
    quick = [Candidate("linear", plain, linear=True), Candidate("mlp-light", plain.replace(**light))]
    graph, rest = [], []
    if traits.sparse and traits.counts:
        rest.append(Candidate("mlp-row", plain.replace(features="row", lr=0.03, decay1=1e-4)))
    if traits.has_edges:
        quick.insert(1, Candidate("linear-hops", plain, hops=2, linear=True))
        graph = [
            Candidate("linear-graph", base.replace(num_steps=2, alpha=0.0), linear=True),
            Candidate("shallow", base.replace(num_steps=2, alpha=0.1)),
            Candidate("two-hops", plain.replace(**light), hops=2),
            Candidate("contrast", base.replace(num_steps=10, alpha=0.2, decay1=base.decay1 * 2, **contrast, **weak)),
            Candidate("middle", base.replace(num_steps=4, alpha=0.2, features=form, lr=0.02, decay1=5e-5, **weak)),
            Candidate("links", plain.replace(**light | {"decay1": 1e-3}), hops=1, links=True),
            Candidate("one-hop", base.replace(num_steps=1, alpha=0.5, **light | {"decay1": 1e-4}), hops=1),
            Candidate("deep", base.replace(num_steps=16, alpha=0.06, lr=0.03, decay1=1.6e-4, decay2=1e-5, **weak)),
            Candidate("half", base.replace(num_steps=4, alpha=0.5, features=form, lr=0.02, **contrast)),
        ]
        rest += [
            Candidate("graph-only", base.replace(num_steps=3, alpha=0.0, lr=0.02)),
            Candidate("two-hops-wide", plain.replace(**light | {"hidden_channels": 256, "dropout": 0.5}), hops=2),
            Candidate("six", base.replace(num_steps=6, alpha=0.2, lr=0.02, decay1=base.decay1 / 5)),
        ]
    if traits.enhance:
        graph[4:4] = [enhanced(each, 0.7) for each in graph if each.name == "contrast"]
        rest += [enhanced(each, 0.8) for each in graph if each.name == "deep"]
    # many labels need little regularisation: then candidates that have little come first
    return [Candidate("mlp", plain), *(graph + quick if traits.few else quick + graph), *rest]


def enhanced(candidate: Candidate, beta: float) -> Candidate:
    """Return the same candidate on the enhanced graph."""
    settings = candidate.settings.replace(beta=beta)
    return dataclasses.replace(candidate, name=f"{candidate.name}-enhanced", settings=settings)
