"""What a fit may try: settings from every region that has been the best somewhere, the likeliest first."""

import dataclasses
from dataclasses import dataclass, field
from typing import Any

from graphpartner.training.settings import Settings


@dataclass(frozen=True)
class Candidate:
    """Settings, and what the features are made of.

    Attributes:
        name: a word for people and files.
        settings: the hyperparameters of its runs.
        hops: features of neighbours up to so many hops away stand beside a node's own.
        links: whether a node's row of the adjacency is among its features.
        linear: whether it is a linear model (:mod:`graphpartner.fitting.candidate_runs`); of its settings, only the
            graph's count.
    """

    name: str
    settings: Settings
    hops: int = 0
    links: bool = False
    linear: bool = False

    @property
    def alone(self) -> bool:
        """Whether it is a plain MLP that looks at no edge."""
        return self.settings.alpha == 1 and not self.hops and not self.links

    @property
    def cold(self) -> bool:
        """Whether its MLP partner can answer for a node without edges: it sees the node's own features only."""
        return not self.hops and not self.links

    def asdict(self) -> dict[str, Any]:
        """For a JSON file."""
        kept = {name: getattr(self, name) for name in ("name", "hops", "links", "linear")}
        return kept | {"settings": self.settings.asdict()}

    @staticmethod
    def restore(content: dict[str, Any]) -> "Candidate":
        """The candidate that :meth:`asdict` wrote down."""
        settings = Settings().replace(**content["settings"])
        return Candidate(content["name"], settings, content["hops"], content["links"], content.get("linear", False))


@dataclass(frozen=True)
class Traits:
    """What is known of a graph before training; it decides which candidates make sense."""

    has_edges: bool
    sparse: bool
    """Whether few features are non-zero: then dropping some of them helps."""
    counts: bool
    """Whether features are never negative, so that a row can be divided by its sum."""
    few: bool
    """Whether there are few labels, so that strong regularisation helps."""
    enhance: bool = field(default=False)
    """Whether the attribute graph (Eq. 7) is worth its cost."""


BASE = Settings(beta=1.0, lambda_rt=0.0, lambda_cs=0.0, epochs=500, patience=40, score="cosine")


def candidates(traits: Traits) -> list[Candidate]:
    """All that may be tried on a graph like this, the likeliest first. The first one is the plain MLP."""
    drop = 0.5 if traits.sparse else 0.0
    form = "row" if traits.counts else "raw"
    base = BASE.replace(input_dropout=drop, decay2=5e-4)
    # many labels make many steps: they may be larger
    base = base.replace(decay1=5e-3, lr=0.01) if traits.few else base.replace(decay1=5e-4, lr=0.02, patience=25)
    alone = base.replace(num_steps=0, alpha=1.0)
    light = {"decay1": 1e-5, "decay2": 1e-5, "dropout": 0.3, "hidden_channels": 128}
    contrast = {"lambda_rt": 0.1, "lambda_cs": 0.7, "margin": 0.7}
    weak = {"input_dropout": 0.6 * drop, "dropout": 0.35}
    quick = [Candidate("linear", alone, linear=True), Candidate("mlp-light", alone.replace(**light))]
    graph, rest = [], []
    if traits.sparse and traits.counts:
        rest.append(Candidate("mlp-row", alone.replace(features="row", lr=0.03, decay1=1e-4)))
    if traits.has_edges:
        quick.insert(1, Candidate("linear-hops", alone, hops=2, linear=True))
        graph = [
            Candidate("linear-graph", base.replace(num_steps=2, alpha=0.0), linear=True),
            Candidate("shallow", base.replace(num_steps=2, alpha=0.1)),
            Candidate("two-hops", alone.replace(**light), hops=2),
            Candidate("contrast", base.replace(num_steps=10, alpha=0.2, decay1=base.decay1 * 2, **contrast, **weak)),
            Candidate("middle", base.replace(num_steps=4, alpha=0.2, features=form, lr=0.02, decay1=5e-5, **weak)),
            Candidate("links", alone.replace(**light | {"decay1": 1e-3}), hops=1, links=True),
            Candidate("one-hop", base.replace(num_steps=1, alpha=0.5, **light | {"decay1": 1e-4}), hops=1),
            Candidate("deep", base.replace(num_steps=16, alpha=0.06, lr=0.03, decay1=1.6e-4, decay2=1e-5, **weak)),
            Candidate("half", base.replace(num_steps=4, alpha=0.5, features=form, lr=0.02, **contrast)),
        ]
        rest += [
            Candidate("graph-only", base.replace(num_steps=3, alpha=0.0, lr=0.02)),
            Candidate("two-hops-wide", alone.replace(**light | {"hidden_channels": 256, "dropout": 0.5}), hops=2),
            Candidate("six", base.replace(num_steps=6, alpha=0.2, lr=0.02, decay1=base.decay1 / 5)),
        ]
    if traits.enhance:
        graph[4:4] = [enhanced(each, 0.7) for each in graph if each.name == "contrast"]
        rest += [enhanced(each, 0.8) for each in graph if each.name == "deep"]
    # many labels need little restraint: then what has little comes first
    return [Candidate("mlp", alone), *(graph + quick if traits.few else quick + graph), *rest]


def enhanced(candidate: Candidate, beta: float) -> Candidate:
    """The same on the enhanced graph."""
    settings = candidate.settings.replace(beta=beta)
    return dataclasses.replace(candidate, name=f"{candidate.name}-enhanced", settings=settings)
