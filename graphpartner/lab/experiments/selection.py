"""Select what is reproduced, and list the runs that every cell of the selected experiments is made of."""

import dataclasses
from dataclasses import dataclass, field
from typing import Any

from graphpartner.graph.catalogue import CATALOGUE, data_root
from graphpartner.lab.experiments.experiment import TARGETS, Experiment, Row, load_experiments
from graphpartner.lab.experiments.graph_cache import Graphs
from graphpartner.lab.experiments.jobs import DATASET_METHODS, Run
from graphpartner.lab.experiments.results import Cell, grid
from graphpartner.system.device import pick_device
from graphpartner.system.errors import InputError
from graphpartner.training.presets import preset as find_preset
from graphpartner.training.settings import Settings

QUICK_GRAPH = "citeseer"  # built in


@dataclass(frozen=True)
class Selection:
    """The part of the experiments that is reproduced, and where it runs.

    Attributes:
        targets: tables and figures, or ``all``.
        graphs: None for all graphs of an experiment.
        methods: None for all of them.
        seeds: runs per cell; None for the number in the experiment's file.
        device: ``auto``, ``cpu`` or ``cuda``.
        root: the data root.
        quick: whether to make the preview on the built-in graph.
        run: whether to do missing runs; if not, the journal's runs are used, of whichever device.
        version: of the package, for the lines of new runs.
    """

    targets: tuple[str, ...] = ("all",)
    graphs: tuple[str, ...] | None = None
    methods: tuple[str, ...] | None = None
    seeds: int | None = None
    device: str = "auto"
    root: str | None = None
    quick: bool = False
    run: bool = True
    version: str = ""

    def experiments(self) -> list[Experiment]:
        """Return the experiments of the targets; errors in the selection are raised here."""
        data_root(self.root)
        pick_device(self.device)
        for target in self.targets:
            if target not in (*TARGETS, "all"):
                raise InputError(f"{target}: must be one of {', '.join(TARGETS)} or all")
        loaded = load_experiments()
        methods = {row.method for experiment in loaded for row in experiment.rows.values()} - set(DATASET_METHODS)
        for option, given, known in (("graphs", self.graphs, CATALOGUE), ("methods", self.methods, sorted(methods))):
            if given is not None and not given:
                raise InputError(f"--{option}: must name at least one of {', '.join(known)}")
            for name in given or ():
                if name not in known:
                    raise InputError(f"--{option} {name}: must be one of {', '.join(known)}")
        if self.seeds is not None and self.seeds < 1:
            raise InputError(f"--seeds {self.seeds}: must be 1 or more")
        return [experiment for experiment in loaded if {"all", experiment.target} & set(self.targets)]


@dataclass
class Slot:
    """The runs of one row on one graph at one point of the grid, or the reason why there are none."""

    experiment: Experiment
    row: str
    graph: str
    at: dict[str, float]
    options: list[list[Run]] = field(default_factory=list)
    """The runs of every setting that is chosen from; one list where nothing is chosen."""
    reason: str | None = None
    preset: str | None = None
    saw_test: bool = False

    @property
    def runs(self) -> list[Run]:
        """All runs, of every option."""
        return [run for option in self.options for run in option]


def plan(experiment: Experiment, selection: Selection, device: str, graphs: Graphs) -> list[Slot]:
    """Return every slot of an experiment with its runs, or with the reason why it stays empty."""
    slots = []
    for name, row in experiment.rows.items():
        if selection.methods is not None and row.method not in (*selection.methods, *DATASET_METHODS):
            continue
        for graph, count in _graphs(experiment, selection).items():
            if selection.graphs is not None and graph not in selection.graphs:
                continue
            for at in grid(_vary(experiment, selection)):
                slot = Slot(experiment, name, graph, at, reason=graphs.reason(graph) if selection.run else None)
                if slot.reason is None:
                    _fill(slot, *_adapted(row, count, selection), selection, device)
                slots.append(slot)
    return slots


def _adapted(row: Row, count: int, selection: Selection) -> tuple[Row, int]:
    """Return a row as it is run, and the number of runs per cell; a preview has one ensemble, of all its runs."""
    if row.method in DATASET_METHODS:
        return row, 1
    if selection.quick and row.members > 1:
        return dataclasses.replace(row, members=max(2, selection.seeds or count)), 1
    return row, selection.seeds or row.runs or count


def _fill(slot: Slot, row: Row, seeds: int, selection: Selection, device: str) -> None:
    """Add the runs of a slot; a missing preset or method is a reason to leave it empty."""
    changes = row.changes | {_setting(row.method, name): value for name, value in slot.at.items()}
    choices = grid(slot.experiment.choose)[: 1 if selection.quick else None]
    try:
        settings = None
        if row.preset is not None:
            chosen = find_preset(f"{slot.graph}/{row.preset}")
            settings, slot.saw_test = chosen.settings, chosen.saw_test
            slot.preset = f"{chosen.family}, changed" if changes or choices[0] else chosen.family
        for choice in choices:
            own = changes | choice
            whole = settings_of(row.method, slot.graph, settings, own)
            if selection.quick and "epochs" in whole:
                own["epochs"] = whole["epochs"] = min(int(whole["epochs"]), slot.experiment.quick.epochs)
            run = Run(
                row.method, slot.graph, whole, 0, device, row.members, row.timing,
                together=seeds if row.timing == "together" else 0,
                changes={} if row.method == "gpnn" else own,
                measures=frozenset(row.measures),
            )  # fmt: skip
            slot.options.append([dataclasses.replace(run, seed=seed) for seed in range(seeds)])
    except (InputError, ImportError) as error:
        slot.reason = str(error)


def places_of(experiment: Experiment, selection: Selection) -> list[tuple[Any, ...]]:
    """Return the places of all cells of an experiment, selected or not."""
    return [
        Cell(experiment.name, name, row.method, graph, measure, at).place
        for name, row in experiment.rows.items()
        for graph in _graphs(experiment, selection)
        for at in grid(_vary(experiment, selection))
        for measure in row.measures
    ]


def _graphs(experiment: Experiment, selection: Selection) -> dict[str, int]:
    return {QUICK_GRAPH: experiment.quick.runs} if selection.quick else experiment.runs


def _vary(experiment: Experiment, selection: Selection) -> dict[str, list[float]]:
    return experiment.vary | experiment.quick.vary if selection.quick else experiment.vary


def _setting(method: str, name: str) -> str:
    """Return the setting that a varied value sets; ``steps`` are GPNN's propagation steps and a baseline's layers."""
    return {"gpnn": "num_steps"}.get(method, "layers") if name == "steps" else name


def settings_of(method: str, graph: str, preset: Settings | None, changes: dict[str, Any]) -> dict[str, Any]:
    """Return all settings of a run: those of the preset or of the baseline, with the changes."""
    if method in DATASET_METHODS:
        return dict(changes)
    if preset is not None:
        return preset.replace(**changes).asdict()
    from graphpartner.lab.baselines.all_baselines import baseline_settings

    return baseline_settings(method, graph).settings.asdict() | changes
