"""Run experiments: plan every run, do those that are missing, and turn the journal into cells."""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

import torch

from graphpartner.errors import InputError
from graphpartner.experiments.cells import NOT_RUN, Cell, cells_of, grid, merged, read_cells, write_cells
from graphpartner.experiments.files import TARGETS, Experiment, Row, load_experiments
from graphpartner.experiments.graphs import Graphs
from graphpartner.experiments.journal import Journal, Line
from graphpartner.experiments.perform import perform, settings_of
from graphpartner.experiments.runs import LOOKS, Run, batches
from graphpartner.experiments.verdicts import verdicts, write_verdicts
from graphpartner.graph.catalogue import CATALOGUE
from graphpartner.graph.location import data_root
from graphpartner.progress import Progress, silent
from graphpartner.train.presets import preset as find_preset
from graphpartner.train.trainer import pick_device

QUICK_GRAPH = "citeseer"  # built in
DEVICES = ("cuda", "cpu")


@dataclass(frozen=True)
class Selection:
    """What of the experiments is run, and where.

    Attributes:
        targets: tables and figures; ``all`` is all of them.
        graphs: None: all that an experiment names.
        methods: None: all of them.
        seeds: runs of each cell; None: as many as the file says.
        device: ``auto``, ``cpu`` or ``cuda``.
        root: the data root.
        quick: the preview on the built-in graph.
        run: False: only what the journal has, of whichever device.
        version: of the package.
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
        """The files of the targets; whatever is wrong in the selection is said here."""
        data_root(self.root)
        pick_device(self.device)
        wrong = [target for target in self.targets if target not in (*TARGETS, "all")]
        if wrong:
            raise InputError(f"{wrong[0]}: must be one of {', '.join(TARGETS)} or all")
        loaded = load_experiments()
        methods = {row.method for experiment in loaded for row in experiment.rows.values()} - set(LOOKS)
        for option, given, known in (("graphs", self.graphs, CATALOGUE), ("methods", self.methods, sorted(methods))):
            for name in given or ():
                if name not in known:
                    raise InputError(f"--{option} {name}: must be among {', '.join(known)}")
        if self.seeds is not None and self.seeds < 1:
            raise InputError(f"--seeds {self.seeds}: must be 1 or more")
        return [experiment for experiment in loaded if {"all", experiment.target} & set(self.targets)]


@dataclass
class Slot:
    """The runs of one row on one graph at one point of the grid, or why there are none."""

    experiment: Experiment
    row: str
    graph: str
    at: dict[str, float]
    options: list[list[Run]] = field(default_factory=list)
    """The runs of every choice there is; one list where there is none."""
    reason: str | None = None
    preset: str | None = None
    saw_test: bool = False

    @property
    def runs(self) -> list[Run]:
        """Of all choices."""
        return [run for option in self.options for run in option]


def reproduce(
    selection: Selection,
    folder: Path,
    progress: Progress = silent,
    warn: Callable[[str], None] = lambda sentence: None,
) -> dict[str, list[Cell]]:
    """Run what is missing, write ``<target>.json`` and ``verdicts.json``, and give back the cells of each target.

    Args:
        selection: what to run.
        folder: where ``runs/`` and the results are kept.
        progress: called with (work done, work in all), in thousandths of the whole job.
        warn: told which cells could not be run, and why; such a cell keeps the numbers it had.
    """
    experiments = selection.experiments()
    device = pick_device(selection.device).type
    graphs, journal = Graphs(selection.root), Journal(folder / "runs")
    before = {target: read_cells(folder / f"{target}.json") for target in TARGETS}  # a damaged file, found in time
    slots = [slot for experiment in experiments for slot in plan(experiment, selection, device, graphs)]
    if not slots:
        raise InputError(f"{', '.join(selection.targets)}: nothing there is of these graphs and methods; choose others")
    if not selection.run:
        _take_device(slots, journal)
    missing, wanting = _share(slots, journal)
    failed = _do(missing, wanting, journal, graphs, progress) if selection.run else {}
    for slot in slots:
        if why := next((failed[run.key] for run in slot.runs if run.key in failed), None):
            slot.reason = why
            warn(f"{slot.experiment.target}, {slot.row} on {slot.graph}: {why}")
    results = {}
    for target in dict.fromkeys(experiment.target for experiment in experiments):
        own = [slot for slot in slots if slot.experiment.target == target]
        cells = [cell for slot in own for cell in _cells(slot, journal)]
        if not cells:  # nothing of it was asked for
            continue
        places = [place for experiment in experiments for place in _places(experiment, selection)]
        results[target] = merged(before[target], cells, places)
        write_cells(folder / f"{target}.json", results[target])
    for experiment in experiments:
        journal.compress(experiment.name)
    write_verdicts(folder / "verdicts.json", verdicts(read_results(folder)))
    return results


def read_results(folder: Path) -> dict[str, list[Cell]]:
    """The cells of every target that a folder has results of."""
    found = {target: read_cells(folder / f"{target}.json") for target in TARGETS}
    return {target: cells for target, cells in found.items() if cells}


def plan(experiment: Experiment, selection: Selection, device: str, graphs: Graphs) -> list[Slot]:
    """Every cell of an experiment with its runs, or with the reason why it stays empty."""
    slots = []
    for name, row in experiment.rows.items():
        if selection.methods is not None and row.method not in (*selection.methods, *LOOKS):
            continue
        for graph, count in _graphs(experiment, selection).items():
            if selection.graphs is not None and graph not in selection.graphs:
                continue
            for at in grid(_vary(experiment, selection)):
                slot = Slot(experiment, name, graph, at, reason=graphs.reason(graph) if selection.run else None)
                if slot.reason is None:
                    _fill(slot, *_asked(row, count, selection), selection, device)
                slots.append(slot)
    return slots


def _asked(row: Row, count: int, selection: Selection) -> tuple[Row, int]:
    """A row as it is run, and how many runs a cell of it has. A preview's ensemble is one, of the runs there are."""
    if row.method in LOOKS:
        return row, 1
    if selection.quick and row.members > 1:
        return dataclasses.replace(row, members=max(2, selection.seeds or count)), 1
    return row, selection.seeds or row.runs or count


def _fill(slot: Slot, row: Row, seeds: int, selection: Selection, device: str) -> None:
    """Give a slot its runs; a preset or a method that does not exist is a reason to leave it empty."""
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
            kept = {} if row.method == "gpnn" else own
            run = Run(row.method, slot.graph, whole, 0, device, selection.version, row.members, row.timing, kept)
            run = run.wanting(row.measures)
            slot.options.append([dataclasses.replace(run, seed=seed) for seed in range(seeds)])
    except (InputError, ImportError) as error:
        slot.reason = str(error)


Wanting = dict[str, set[str]]
"""By the key of a run: the experiments that it belongs to."""


def _share(slots: list[Slot], journal: Journal) -> tuple[list[Run], Wanting]:
    """Tell every experiment the runs that another one has; the runs that none has, and who wants what."""
    wanted: dict[str, Run] = {}
    wanting: Wanting = {}
    for slot in slots:
        for run in slot.runs:
            wanted[run.key] = wanted.get(run.key, run).wanting(run.measures)
            wanting.setdefault(run.key, set()).add(slot.experiment.name)
    missing = []
    shared: dict[str, list[Line]] = {}
    for key, run in wanted.items():
        line = journal.find(run)
        if line is None:
            missing.append(run)
            continue
        for experiment in wanting[key]:
            if journal.find(run, experiment) is None:
                shared.setdefault(experiment, []).append(line)
    for experiment, lines in sorted(shared.items()):
        journal.append(experiment, lines)
    return missing, wanting


def _do(missing: list[Run], wanting: Wanting, journal: Journal, graphs: Graphs, progress: Progress) -> dict[str, str]:
    """Do these runs, and tell every experiment that wants them; why a run failed, by key."""
    failed: dict[str, str] = {}
    done, total = 0.0, sum(run.cost for run in missing) or 1.0
    for batch in batches(missing, torch.get_num_threads()):
        share = sum(run.cost for run in batch)

        def tell(part: int, whole: int, done: float = done, share: float = share) -> None:
            progress(round(1000 * (done + share * part / max(1, whole)) / total), 1000)

        try:
            lines = perform(batch, graphs.load(batch[0].graph), tell)
        except (InputError, ImportError, MemoryError, torch.cuda.OutOfMemoryError) as error:
            failed |= dict.fromkeys((run.key for run in batch), f"{type(error).__name__}: {error}")
            lines = []
        for experiment in sorted(set().union(*(wanting[line["key"]] for line in lines))):
            journal.append(experiment, [line for line in lines if experiment in wanting[line["key"]]])
        done += share
        tell(0, 1, done, 0.0)
    return failed


def _take_device(slots: list[Slot], journal: Journal) -> None:
    """Let every slot be about the device that its first run was done on."""
    for slot in slots:
        for device in DEVICES:
            there = [[dataclasses.replace(run, device=device) for run in option] for option in slot.options]
            if any(journal.find(run) for option in there for run in option):
                slot.options = there
                break
        else:
            slot.reason = slot.reason or NOT_RUN


def _cells(slot: Slot, journal: Journal) -> list[Cell]:
    lines: list[Line] = []
    if slot.reason is None:
        options = [
            [line for run in option if (line := journal.find(run, slot.experiment.name))] for option in slot.options
        ]
        lines = options[0] if len(options) == 1 else max(filter(None, options), key=_mean_validation)
    return cells_of(slot.experiment, slot.row, slot.graph, slot.at, lines, slot.reason, slot.preset, slot.saw_test)


def _mean_validation(lines: list[Line]) -> float:
    return fmean(line["measured"]["val_accuracy"] or 0.0 for line in lines)


def _places(experiment: Experiment, selection: Selection) -> list[tuple[Any, ...]]:
    """The places of all cells that an experiment has, asked for or not."""
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
    """What a baseline calls layers are propagation steps of GPNN."""
    return {"gpnn": "num_steps"}.get(method, "layers") if name == "steps" else name
