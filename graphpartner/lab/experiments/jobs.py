"""One run of an experiment, what identifies it, and which runs are trained together."""

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from graphpartner.graph.catalogue import CATALOGUE
from graphpartner.training.settings import PER_REPLICA

DATASET_METHODS = ("statistics", "edge-quality")
"""Methods that only look at the graph: one run says it all."""

IDENTITY_DEFAULTS = {"generations": 1, "groups": 1, "regression_decay": 0.0}
"""Settings that came after the first runs were written down, and the values that leave these what they were."""

WORDS = 30  # entries of a row of features, roughly
DENSE = 0.5  # what a product in a dense matrix costs beside one in a sparse matrix
ALL_PAIRS = ("grace", "mvgrl")  # every node meets every other

REPLICAS_ON_GPU = 128  # runs of one call on a GPU at most: what a kill can lose there


class Training(NamedTuple):
    """One network that learns; what is equal need not be learned twice."""

    settings: str
    """as JSON"""
    seed: int
    split: int
    """the seed of its split; 0 where the graph has a public one"""


@dataclass(frozen=True)
class Run:
    """One training, or one look at a graph, with everything that its result follows from.

    Attributes:
        method: ``gpnn``, a baseline, or one of :data:`DATASET_METHODS`.
        graph: by name.
        settings: all of them, not only what differs from a preset.
        changes: what differs from a baseline's own settings; part of ``settings`` already.
        seed: of the run, and of the split where the graph has no public one.
        device: ``cpu`` or ``cuda``.
        version: of the package.
        members: more than 1: an ensemble of so many runs, with seeds ``members · seed``, ….
        timing: how it is timed; a run of table 1 says nothing about the time of a run by itself.
        together: how many runs are timed as one call, where that is how it is timed.
        measures: what is measured of it.
    """

    method: str
    graph: str
    settings: dict[str, Any]
    seed: int
    device: str
    version: str
    members: int = 1
    timing: str = ""
    together: int = 0
    changes: dict[str, Any] = field(default_factory=dict)
    measures: frozenset[str] = frozenset()

    @property
    def identity(self) -> dict[str, Any]:
        """Everything the result follows from, up to the order of floating-point sums.

        Who was trained beside it is not part of it, unless that is what is timed: a run's random draws depend on its
        own seed alone.
        """
        kept = ("method", "graph", "settings", "seed", "device", "version", "members", "timing")
        settings = {name: value for name, value in self.settings.items() if IDENTITY_DEFAULTS.get(name) != value}
        company = {"together": self.together} if self.together else {}
        return {name: getattr(self, name) for name in kept} | company | {"settings": settings}

    @property
    def key(self) -> str:
        """The identity in 16 letters."""
        return hashlib.sha256(json.dumps(self.identity, sort_keys=True).encode()).hexdigest()[:16]

    @property
    def seeds(self) -> list[int]:
        """The seeds of its members."""
        return [self.members * self.seed + member for member in range(self.members)]

    @property
    def cost(self) -> float:
        """Roughly how much work it is, in products of two numbers. Only for telling how far a job is."""
        entry, of = CATALOGUE[self.graph], self.settings
        width, layers = of.get("hidden_channels", 64) * of.get("heads", 1), of.get("layers", 0)
        steps = of.get("num_steps", layers or 2)
        input_and_steps = (WORDS * entry.num_nodes + 2 * entry.num_edges * steps) * width
        dense = layers * entry.num_nodes * width**2
        if self.method in ALL_PAIRS:
            dense += entry.num_nodes**2 * width
        trained = of.get("groups", 1) + of.get("teachers", 0) * of.get("generations", 1)
        each = of.get("views", 1) * (input_and_steps + dense * DENSE)
        return float(self.members * trained * of.get("epochs", 1) * each)

    @property
    def trainings(self) -> "list[Training]":
        """What is trained for it: once, or once a member."""
        split = 0 if CATALOGUE[self.graph].has_public_split else self.seed
        settings = json.dumps(self.settings, sort_keys=True)
        return [Training(settings, seed, split) for seed in self.seeds]

    def wanting(self, measures: Iterable[str]) -> "Run":
        """The same run, with these measures as well."""
        return replace(self, measures=self.measures | frozenset(measures))


def batches(runs: list[Run], threads: int) -> Iterator[list[Run]]:
    """The runs in batches that are trained in one call each, graph after graph so that each is loaded once.

    Runs of GPNN may differ in what :data:`graphpartner.training.settings.PER_REPLICA` names. A batch is what a kill can
    lose: as many trainings as there are cores, or what a GPU takes at once. An ensemble and a run that is one of its
    members share a training where they meet in a batch.
    """
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(_shape(run), []).append(run)
    for group in sorted(groups.values(), key=lambda group: list(CATALOGUE).index(group[0].graph)):
        first = group[0]
        size = threads if first.device == "cpu" else REPLICAS_ON_GPU
        size = {"alone": 1, "together": len(group)}.get(first.timing, size)
        batch: list[Run] = []
        trained: set[Training] = set()
        for run in group:
            own = set(run.trainings)
            if batch and len(trained | own) > size:
                yield batch
                batch, trained = [], set()
            batch.append(run)
            trained |= own
        yield batch


def trainings(batch: list[Run]) -> dict[Training, int]:
    """All that is trained for a batch, each once, and its place."""
    each = dict.fromkeys(training for run in batch for training in run.trainings)
    return {training: place for place, training in enumerate(each)}


def _shape(run: Run) -> str:
    """What must be equal among runs of one call."""
    shared = run.identity | {"seed": None}
    if run.method == "gpnn" and not run.timing:
        shared["members"] = None
        shared["settings"] = {name: value for name, value in run.settings.items() if name not in PER_REPLICA}
    return json.dumps(shared, sort_keys=True)
