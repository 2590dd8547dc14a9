"""Where ``gpnn search`` looks: the values each setting may take, family by family."""

from dataclasses import dataclass

from graphpartner.system.errors import InputError
from graphpartner.training.settings import Settings


@dataclass(frozen=True)
class Choice:
    """One of these values."""

    values: tuple[int | float | str | bool, ...]


@dataclass(frozen=True)
class Between:
    """A number from low to high; ``log``: every order of magnitude alike."""

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
    # 0: classes are taken to be as frequent as in the training set; otherwise as estimated from unlabelled nodes
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
# have different labels: enhancement costs much and promises little. The paper's method has it all the same, but a high
# threshold leaves few of them.
FEW_STEPS = Choice((1, 2, 3, 4, 5, 6, 8, 10))
AMAZON: Space = {"beta": Choice((0.8, 0.9, 1.0)), "num_steps": FEW_STEPS}
PAPER_ON_AMAZON: Space = {
    "threshold": Choice((0.4, 0.6, 0.7, 0.8, 0.9)),
    "beta": Choice((0.8, 0.9, 0.99)),
    "num_steps": FEW_STEPS,
}
PAPER_ON: dict[str, Space] = {
    # The paper says of CiteSeer that it takes 48 steps, cosine scores and neighbour positives. Cosines end at 1.
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
    """These settings without what goes beyond a family, and without groups: they multiply the work of every trial."""
    beyond = {*TUNED, *VIEWS, *DISTILLED, "groups"} - FAMILIES[family].keys()
    return settings.replace(**{name: getattr(Settings(), name) for name in beyond})


def space_of(graph: str, family: str, held: bool = False) -> Space:
    """The space of one family of presets on one graph; of what it adds alone where settings are ``held``."""
    if family not in FAMILIES:
        raise InputError(f"family = {family!r}: must be one of {', '.join(FAMILIES)}")
    if held:
        if family not in ADDED:
            raise InputError(f"family = {family!r} adds nothing to settings that are held: {', '.join(ADDED)} do")
        return ADDED[family]
    own = PAPER_ON.get(graph, {}) if family == "paper" else AMAZON if graph.startswith("amazon") else {}
    return FAMILIES[family] | own
