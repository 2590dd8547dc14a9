"""Identify the runs of an experiment, and batch those that are trained in one call."""

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from graphpartner.graph.catalogue import CATALOGUE
from graphpartner.training.settings import PER_REPLICA

DATASET_METHODS = ("statistics", "edge-quality")
"""Methods that measure the graph without training: one run per graph."""

FORMAT = 1
"""Of journals; the package version is not part of a run's key, so that runs outlive it."""

WORDS = 30  # entries per row of features, roughly
DENSE = 0.5  # cost of a product in a dense matrix relative to one in a sparse matrix
ALL_PAIRS = ("grace", "mvgrl")  # compare every node with every other

REPLICAS_ON_GPU = 128  # maximum number of runs per call on a GPU: what a kill can lose there


class Training(NamedTuple):
    """One training of a network; equal ones are done once."""

    settings: str
    """As JSON."""
    seed: int
    split: int
    """Seed of its split; 0 where the graph has a public one."""


@dataclass(frozen=True)
class Run:
    """One training, or one measurement of a graph, with everything that determines its result.

    Attributes:
        method: ``gpnn``, a baseline, or one of :data:`DATASET_METHODS`.
        graph: by name.
        settings: all of them, not only those that differ from a preset.
        seed: of the run, and of the split where the graph has no public one.
        device: ``cpu`` or ``cuda``.
        members: above 1: an ensemble of this number of runs, with seeds ``members · seed``, ….
        timing: ``alone``, ``together``, or empty where runs are not timed one by one.
        together: number of runs that are timed as one call, for the timing ``together``.
        changes: settings that differ from the baseline's own; part of ``settings`` already.
        measures: names of what is measured of it.
    """

    method: str
    graph: str
    settings: dict[str, Any]
    seed: int
    device: str
    members: int = 1
    timing: str = ""
    together: int = 0
    changes: dict[str, Any] = field(default_factory=dict)
    measures: frozenset[str] = frozenset()

    @property
    def identity(self) -> dict[str, Any]:
        """Everything that determines the result, up to the order of floating-point sums.

        The runs trained beside it are not part of it, unless these are what is timed: a run's random draws depend on
        its own seed alone.
        """
        names = ("method", "graph", "settings", "seed", "device", "members", "timing")
        together = {"together": self.together} if self.together else {}
        return {"format": FORMAT} | {name: getattr(self, name) for name in names} | together

    @property
    def key(self) -> str:
        """Hash of the identity, 16 hexadecimal digits."""
        return hashlib.sha256(json.dumps(self.identity, sort_keys=True).encode()).hexdigest()[:16]

    @property
    def seeds(self) -> list[int]:
        """Seeds of its members."""
        return [self.members * self.seed + member for member in range(self.members)]

    @property
    def cost(self) -> float:
        """Estimated number of multiplications, for the progress bar alone."""
        entry, of = CATALOGUE[self.graph], self.settings
        width, layers = of.get("hidden_channels", 64) * of.get("heads", 1), of.get("layers", 0)
        steps = of.get("num_steps", layers or 2)
        input_and_steps = (WORDS * entry.num_nodes + 2 * entry.num_edges * steps) * width
        dense = layers * entry.num_nodes * width**2
        if self.method in ALL_PAIRS:
            dense += entry.num_nodes**2 * width
        networks = of.get("groups", 1) + of.get("teachers", 0) * of.get("generations", 1)
        epoch = of.get("views", 1) * (input_and_steps + dense * DENSE)
        return float(self.members * networks * of.get("epochs", 1) * epoch)

    @property
    def trainings(self) -> list[Training]:
        """What is trained for it, one training per member."""
        split = 0 if CATALOGUE[self.graph].has_public_split else self.seed
        settings = json.dumps(self.settings, sort_keys=True)
        return [Training(settings, seed, split) for seed in self.seeds]

    def with_measures(self, measures: Iterable[str]) -> "Run":
        """Return the same run with these measures as well."""
        return replace(self, measures=self.measures | frozenset(measures))


def batches(runs: list[Run], threads: int) -> Iterator[list[Run]]:
    """Yield the runs in batches that are trained in one call each, graph after graph so that each is loaded once.

    Runs of GPNN may differ in the settings of :data:`graphpartner.training.settings.PER_REPLICA`. A kill loses at most
    one batch: as many trainings as there are threads, or :data:`REPLICAS_ON_GPU`. An ensemble and a run that is one of
    its members share a training where they are in the same batch.
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
    """Return the trainings of a batch, each once, with their places."""
    distinct = dict.fromkeys(training for run in batch for training in run.trainings)
    return {training: place for place, training in enumerate(distinct)}


def _shape(run: Run) -> str:
    """Return what must be equal among the runs of one call."""
    shared = run.identity | {"seed": None}
    if run.method == "gpnn" and not run.timing:
        shared["members"] = None
        shared["settings"] = {name: value for name, value in run.settings.items() if name not in PER_REPLICA}
    return json.dumps(shared, sort_keys=True)
