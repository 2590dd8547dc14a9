"""All hyperparameters of a run, with their ranges."""

import dataclasses
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, Literal, Self, get_args, get_origin, get_type_hints

from graphpartner.system.errors import InputError


def between(default: float, low: float, high: float) -> Any:
    """A number among the fields of settings, with its range."""
    return field(default=default, metadata={"low": low, "high": high})


@dataclass(frozen=True)
class Checked:
    """A frozen dataclass of hyperparameters whose every value has been looked at."""

    def __post_init__(self) -> None:
        types = get_type_hints(type(self))
        for item in dataclasses.fields(self):
            object.__setattr__(self, item.name, _checked(item, types[item.name], getattr(self, item.name)))

    def replace(self, **changes: Any) -> Self:
        """These settings with some of them changed; an unknown name is an :class:`InputError`."""
        known = [item.name for item in dataclasses.fields(self)]
        for name in changes:
            if name not in known:
                raise InputError(f"unknown setting {name!r}: must be one of {', '.join(known)}")
        return dataclasses.replace(self, **changes)

    def asdict(self) -> dict[str, Any]:
        """Name → value, for a JSON or YAML file."""
        return dataclasses.asdict(self)


@dataclass(frozen=True)
class Settings(Checked):
    """The hyperparameters of one run; the paper's values as defaults where it gives one (k, T; t of its Table 3)."""

    # Graph enhancement, Eqs. 7 and 8
    k: int = between(3, 0, 64)
    """How many hops apart two nodes may be to become neighbours in the attribute graph."""
    threshold: float = between(0.4, 1e-6, 1)
    """t, the least cosine that connects them."""
    beta: float = between(0.7, 0, 1)
    """β, the weight of the original graph; 1 switches enhancement off."""

    # Model, Eqs. 10 to 14
    features: Literal["raw", "row"] = "raw"
    """``raw`` as they are, or ``row``: every row divided by its sum."""
    hidden_channels: int = between(64, 1, 65536)
    """Width of H^(1)."""
    num_steps: int = between(10, 0, 10_000)
    """l, the number of propagation steps."""
    alpha: float = between(0.2, 0, 1)
    """α, the weight of the MLP partner."""
    input_dropout: float = between(0.5, 0, 1)
    """Share of the entries of X dropped."""
    dropout: float = between(0.5, 0, 1)
    """Share of the entries of H^(1) dropped."""
    separate_dropout: bool = False
    """Whether the MLP partner sees H^(1) through a dropout of its own."""

    # Losses, Eqs. 16 to 19
    lambda_rt: float = between(0.1, 0, 1e6)
    """λ_rt, the weight of the rectification loss."""
    temperature: float = between(2.0, 1e-6, 1e6)
    """T of the rectification loss."""
    lambda_cs: float = between(1.0, 0, 1e6)
    """λ_cs, the weight of the contrastive loss."""
    margin: float = between(1.0, -1e6, 1e6)
    """S, the score beyond which the contrastive loss is content."""
    score: Literal["inner", "cosine", "softmax"] = "inner"
    """s(·,·) of the contrastive loss."""
    positives: Literal["self", "neighbors"] = "self"
    """What is contrasted with the negatives: the node itself, or its neighbours."""
    num_negatives: int = between(5, 1, 1_000_000)
    """τ, the size of Ω."""

    # Beyond the paper: views, self-distillation and groups, off unless a preset switches them on
    views: int = between(1, 1, 64)
    """K, the number of forward passes an epoch, each with dropout of its own."""
    drop_node: float = between(0.0, 0, 1)
    """Share of the rows of H^(1) dropped as a whole."""
    lambda_views: float = between(0.0, 0, 1e6)
    """Weight of the distance between the views and their sharpened mean."""
    sharpening: float = between(0.5, 1e-3, 1)
    """s: the mean of the views is raised to the power 1/s."""
    teachers: int = between(0, 0, 1024)
    """How many runs are trained first, whose mean opinion on every node is taught to the run itself."""
    generations: int = between(1, 1, 64)
    """How many generations of teachers there are, each taught by the one before; the last one teaches the run."""
    lambda_distill: float = between(0.0, 0, 1e6)
    """Weight of the cross-entropy to that opinion."""
    groups: int = between(1, 1, 1024)
    """So many networks of this width are trained apart, and answer as one network of their joint width."""
    prior_temperature: float = between(0.0, 0, 100)
    """T of the estimate of how frequent each class is, which the answers take into account; 0: they do not."""

    # Optimisation
    lr: float = between(0.01, 0, 100)
    """Learning rate of Adam."""
    decay1: float = between(5e-3, 0, 1e3)
    """Weight decay of W^(1)."""
    decay2: float = between(5e-4, 0, 1e3)
    """Weight decay of W^(2)."""
    epochs: int = between(1000, 1, 10_000_000)
    """At most so many epochs."""
    patience: int = between(100, 1, 10_000_000)
    """Stop after so many epochs without a lower validation loss."""


PER_REPLICA = (
    "num_steps", "alpha", "input_dropout", "dropout", "lambda_rt", "temperature", "lambda_cs", "margin",
    "drop_node", "lambda_views", "sharpening", "lambda_distill", "prior_temperature",
    "lr", "decay1", "decay2",
)  # fmt: skip
"""What may differ between the replicas of one batch; everything else changes the shape of the work."""


def parse(name: str, text: str, among: type[Checked] = Settings) -> Any:
    """The value of a setting given as text, e.g. from ``--set alpha=0.3``; ``among`` says whose settings are meant."""
    hints = get_type_hints(among)
    if name not in hints:
        raise InputError(f"unknown setting {name!r}: must be one of {', '.join(hints)}")
    kind = hints[name]
    if kind is bool:
        if text.lower() not in ("true", "false"):
            raise InputError(f"{name} = {text!r}: must be true or false")
        return text.lower() == "true"
    if get_origin(kind) is Literal:
        return text
    try:
        return kind(text)
    except ValueError:
        raise InputError(f"{name} = {text!r}: must be {_named(kind)}") from None


def _named(kind: type) -> str:
    return "a whole number" if kind is int else "a number"


def _checked(item: "dataclasses.Field[Any]", kind: Any, value: Any) -> Any:
    """The value if it is of the right type and in range, or an InputError that says what would be right."""
    if get_origin(kind) is Literal:
        if value not in get_args(kind):
            raise InputError(f"{item.name} = {value!r}: must be one of {', '.join(get_args(kind))}")
        return value
    if kind is bool:
        if not isinstance(value, bool):
            raise InputError(f"{item.name} = {value!r}: must be true or false")
        return value
    if isinstance(value, bool) or not isinstance(value, Real) or (kind is int and float(value) % 1 != 0):
        raise InputError(f"{item.name} = {value!r}: must be {_named(kind)}")
    low, high = item.metadata["low"], item.metadata["high"]
    if not low <= float(value) <= high:
        raise InputError(f"{item.name} = {value}: must lie between {low:g} and {high:g}")
    return kind(value)
