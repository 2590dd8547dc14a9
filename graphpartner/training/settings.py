"""The hyperparameters of a run, with their ranges."""

import dataclasses
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, Literal, Self, get_args, get_origin, get_type_hints

from graphpartner.system.errors import InputError


def between(default: float, low: float, high: float) -> Any:
    """Return a dataclass field for a number with a default and a range."""
    return field(default=default, metadata={"low": low, "high": high})


@dataclass(frozen=True)
class Checked:
    """A frozen dataclass of hyperparameters that checks the type and range of every value."""

    def __post_init__(self) -> None:
        types = get_type_hints(type(self))
        for item in dataclasses.fields(self):
            object.__setattr__(self, item.name, _checked(item, types[item.name], getattr(self, item.name)))

    def replace(self, **changes: Any) -> Self:
        """Return a copy with some settings changed; raise an InputError for an unknown name."""
        known = [item.name for item in dataclasses.fields(self)]
        for name in changes:
            if name not in known:
                raise InputError(f"unknown setting {name!r}: must be one of {', '.join(known)}")
        return dataclasses.replace(self, **changes)

    def asdict(self) -> dict[str, Any]:
        """Return name → value, for a JSON or YAML file."""
        return dataclasses.asdict(self)


@dataclass(frozen=True)
class Settings(Checked):
    """The hyperparameters of one run; the paper's values as defaults where it gives one (k, T; t of its Table 3)."""

    # Graph enhancement, Eqs. 7 and 8
    k: int = between(3, 0, 64)
    """Maximum number of hops between two nodes that become neighbours in the attribute graph."""
    threshold: float = between(0.4, 1e-6, 1)
    """t, the minimum cosine of two nodes that become neighbours."""
    beta: float = between(0.7, 0, 1)
    """β, the weight of the original graph; 1 switches enhancement off."""

    # Model, Eqs. 10 to 14
    features: Literal["raw", "row"] = "raw"
    """``raw``: X as given; ``row``: each row divided by its sum."""
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
    """Whether the MLP partner gets H^(1) with a dropout mask of its own."""

    # Losses, Eqs. 16 to 19
    lambda_rt: float = between(0.1, 0, 1e6)
    """λ_rt, the weight of the rectification loss."""
    temperature: float = between(2.0, 1e-6, 1e6)
    """T of the rectification loss."""
    lambda_cs: float = between(1.0, 0, 1e6)
    """λ_cs, the weight of the contrastive loss."""
    margin: float = between(1.0, -1e6, 1e6)
    """S, the margin of the contrastive loss: it is 0 for larger differences of scores."""
    score: Literal["inner", "cosine", "softmax"] = "inner"
    """s(·,·) of the contrastive loss."""
    positives: Literal["self", "neighbors"] = "self"
    """What the contrastive loss takes as positives: the node itself, or its neighbours."""
    num_negatives: int = between(5, 1, 1_000_000)
    """τ, the size of Ω."""

    # Beyond the paper: views, self-distillation, groups and class priors, off by default
    views: int = between(1, 1, 64)
    """K, the number of forward passes per epoch, each with its own dropout masks."""
    drop_node: float = between(0.0, 0, 1)
    """Share of the rows of H^(1) dropped as a whole (DropNode)."""
    lambda_views: float = between(0.0, 0, 1e6)
    """Weight of the agreement loss, the distance between the views and their sharpened mean."""
    sharpening: float = between(0.5, 1e-3, 1)
    """s, the temperature of that mean: it is raised to the power 1/s."""
    teachers: int = between(0, 0, 1024)
    """Number of runs trained first, whose mean class probabilities are the targets of the distillation loss."""
    generations: int = between(1, 1, 64)
    """Number of generations of teachers, each distilled into the next; the last one is distilled into the run."""
    lambda_distill: float = between(0.0, 0, 1e6)
    """Weight of the distillation loss, the cross-entropy to the teachers' mean probabilities."""
    groups: int = between(1, 1, 1024)
    """Number of networks of this width that are trained separately and joined to one network."""
    prior_temperature: float = between(0.0, 0, 100)
    """T at which logits are scaled to estimate the class prior that corrects them; 0: no correction."""

    # Optimisation
    lr: float = between(0.01, 0, 100)
    """Learning rate of Adam."""
    decay1: float = between(5e-3, 0, 1e3)
    """Weight decay of W^(1)."""
    decay2: float = between(5e-4, 0, 1e3)
    """Weight decay of W^(2)."""
    epochs: int = between(1000, 1, 10_000_000)
    """Maximum number of epochs."""
    patience: int = between(100, 1, 10_000_000)
    """Number of epochs without a lower validation loss after which a run stops."""


PER_REPLICA = (
    "num_steps", "alpha", "input_dropout", "dropout", "lambda_rt", "temperature", "lambda_cs", "margin",
    "drop_node", "lambda_views", "sharpening", "lambda_distill", "prior_temperature",
    "lr", "decay1", "decay2",
)  # fmt: skip
"""Settings that may differ between the replicas of a batch; all others change the shape of the work."""


def parse(name: str, text: str, among: type[Checked] = Settings) -> Any:
    """Return the value of a setting of the class ``among``, given as text as in ``--set alpha=0.3``."""
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
    """Return the value if it has the right type and range, else raise an InputError."""
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
