"""Where ``gpnn search`` looks: the values each setting may take, by family of presets and by baseline."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphpartner.system.errors import InputError
from graphpartner.training.settings import Settings


@dataclass(frozen=True)
class Choice:
    """One of these values."""

    values: tuple[Any, ...]


@dataclass(frozen=True)
class Between:
    """A number from low to high; with ``log``, uniform in its logarithm."""

    low: float
    high: float
    log: bool = False


Space = dict[str, Choice | Between]

# The same for all replicas of a batch, since it changes the shape of the work
SHARED: Space = {
    "num_steps": Choice((2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32)),
    "features": Choice(("raw", "row")),
    "num_negatives": Choice((1, 5, 20)),
}
# May differ from replica to replica
OWN: Space = {
    "alpha": Between(0.01, 0.6),
    "input_dropout": Between(0.0, 0.85),
    "dropout": Between(0.0, 0.85),
    "lambda_rt": Between(0.01, 3.0, log=True),
    "lambda_cs": Between(5e-4, 5.0, log=True),
    "margin": Between(0.3, 1000.0, log=True),  # inner products know no upper end
    "lr": Between(0.001, 0.2, log=True),
    "decay1": Between(1e-6, 0.05, log=True),
    "decay2": Between(1e-7, 0.05, log=True),
}
PAPER: Space = {
    "beta": Choice((0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 0.99)),
    "score": Choice(("inner",)),
    "positives": Choice(("self",)),
}
TUNED: Space = {
    "beta": Choice((0.5, 0.6, 0.7, 0.8, 0.9, 1.0)),
    "score": Choice(("inner", "cosine")),
    "positives": Choice(("self", "neighbors")),
    # 0: class frequencies of the training set; otherwise estimated from unlabelled nodes
    "prior_temperature": Choice((0.0, 0.4, 0.5, 0.6, 0.75, 0.9, 1.0, 1.2)),
}
VIEWS: Space = {
    "views": Choice((2, 3, 4)),
    "drop_node": Between(0.0, 0.8),
    "lambda_views": Between(0.1, 3.0, log=True),
    "sharpening": Between(0.1, 1.0),
}
DISTILLED: Space = {
    "teachers": Choice((4, 16)),
    "generations": Choice((1, 2, 3)),
    "lambda_distill": Between(0.05, 5.0, log=True),
}
# What a family adds to settings that are held
ADDED: dict[str, Space] = {
    "views": {**VIEWS, "prior_temperature": TUNED["prior_temperature"]},
    "distilled": {**DISTILLED, "prior_temperature": TUNED["prior_temperature"]},
}

# On the Amazon graphs a third to a half of all pairs lie within three hops, and most of those that features select
# have different labels: enhancement costs much and gains little. The paper's method includes it all the same, with a
# high threshold, which leaves few pairs.
FEW_STEPS = Choice((1, 2, 3, 4, 5, 6, 8, 10))
AMAZON: Space = {"beta": Choice((0.8, 0.9, 1.0)), "num_steps": FEW_STEPS}
PAPER_ON_AMAZON: Space = {
    "threshold": Choice((0.4, 0.6, 0.7, 0.8, 0.9)),
    "beta": Choice((0.8, 0.9, 0.99)),
    "num_steps": FEW_STEPS,
}
PAPER_ON: dict[str, Space] = {
    # The paper uses 48 steps, cosine scores and neighbour positives on CiteSeer. Cosines are at most 1.
    "citeseer": {
        "num_steps": Choice((48,)),
        "score": Choice(("cosine",)),
        "positives": Choice(("neighbors",)),
        "margin": Between(0.3, 1.5),
    },
    "amazon-computers": PAPER_ON_AMAZON,
    "amazon-photo": PAPER_ON_AMAZON,
}

FAMILIES: dict[str, Space] = {
    "paper": {**SHARED, **OWN, **PAPER},
    "tuned": {**SHARED, **OWN, **TUNED},
    "views": {**SHARED, **OWN, **TUNED, **VIEWS},
    "distilled": {**SHARED, **OWN, **TUNED, **VIEWS, **DISTILLED},
}


def only(family: str, settings: Settings) -> Settings:
    """Return settings without what goes beyond a family, and without groups, which multiply the work of a trial."""
    beyond = {*TUNED, *VIEWS, *DISTILLED, "groups"} - FAMILIES[family].keys()
    return settings.replace(**{name: getattr(Settings(), name) for name in beyond})


def space_of(graph: str, family: str, held: bool = False) -> Space:
    """Return the space of a family on a graph; where settings are ``held``, of what the family adds to them."""
    if family not in FAMILIES:
        raise InputError(f"family = {family!r}: must be one of {', '.join(FAMILIES)}")
    if held:
        if family not in ADDED:
            raise InputError(f"family = {family!r} adds nothing to settings that are held: {', '.join(ADDED)} do")
        return ADDED[family]
    own = PAPER_ON.get(graph, {}) if family == "paper" else AMAZON if graph.startswith("amazon") else {}
    return FAMILIES[family] | own


def baseline_space(method: str) -> dict[str, Choice]:
    """Return the values in ``baselines.yaml`` that each setting of a baseline may take."""
    import yaml

    content = yaml.safe_load(Path(__file__).with_name("baselines.yaml").read_text("utf-8"))
    return {name: Choice(tuple(values)) for name, values in content["methods"][method].items()}
