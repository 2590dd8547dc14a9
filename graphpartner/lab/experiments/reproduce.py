"""Reproduce experiments: do the runs that are missing, and turn the journal into cells and verdicts."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from statistics import fmean

import torch

from graphpartner.lab.experiments.experiment import TARGETS
from graphpartner.lab.experiments.findings import verdicts, write_verdicts
from graphpartner.lab.experiments.graph_cache import Graphs
from graphpartner.lab.experiments.jobs import Run, batches
from graphpartner.lab.experiments.journal import Journal, Line, locked
from graphpartner.lab.experiments.measure import run_batch
from graphpartner.lab.experiments.results import NOT_RUN, Cell, cells_of, merged, read_cells, write_cells
from graphpartner.lab.experiments.selection import Selection, Slot, places_of, plan
from graphpartner.system.device import pick_device
from graphpartner.system.errors import InputError
from graphpartner.system.progress import Progress, silent

DEVICES = ("cuda", "cpu")


def reproduce(
    selection: Selection,
    folder: Path,
    progress: Progress = silent,
    warn: Callable[[str], None] = lambda sentence: None,
) -> dict[str, list[Cell]]:
    """Do missing runs, write ``<target>.json`` and ``verdicts.json``, and return the cells of each target.

    Args:
        selection: what to run.
        folder: of the journal ``runs/`` and the results.
        progress: called with (work done, total work), in thousandths of the whole job.
        warn: called with one sentence per cell that could not be run; such a cell keeps the numbers it had.
    """
    experiments = selection.experiments()
    device = pick_device(selection.device).type
    graphs, journal = Graphs(selection.root), Journal(folder / "runs")
    read_results(folder)  # a damaged file is an error before anything runs
    slots = [slot for experiment in experiments for slot in plan(experiment, selection, device, graphs)]
    if not slots:
        raise InputError(f"{', '.join(selection.targets)}: must have a cell of these graphs and methods; choose others")
    if not selection.run:
        _take_device(slots, journal)
    missing, wanting = _share(slots, journal)
    failed = _do(missing, wanting, journal, graphs, progress, selection.version) if selection.run else {}
    for target, graph, why in dict.fromkeys((slot.experiment.target, slot.graph, slot.reason) for slot in slots):
        if why and selection.run:
            warn(f"{target} on {graph}: {why}")
    for slot in slots:
        if why := next((failed[run.key] for run in slot.runs if run.key in failed), None):
            slot.reason = why
            warn(f"{slot.experiment.target}, {slot.row} on {slot.graph}: {why}")
    for experiment in experiments:
        journal.compress(experiment.name)
    results: dict[str, list[Cell]] = {}
    places = [place for experiment in experiments for place in places_of(experiment, selection)]
    with locked(journal.folder):  # another program may write other cells of the same files
        everything = read_results(folder)
        for target in dict.fromkeys(slot.experiment.target for slot in slots):
            own = [slot for slot in slots if slot.experiment.target == target]
            cells = [cell for slot in own for cell in _cells(slot, journal)]
            results[target] = everything[target] = merged(everything.get(target, []), cells, places)
            write_cells(folder / f"{target}.json", results[target])
        write_verdicts(folder / "verdicts.json", verdicts(everything))
    return results


def read_results(folder: Path) -> dict[str, list[Cell]]:
    """Return the cells of every target that a folder has results of."""
    results = {target: read_cells(folder / f"{target}.json") for target in TARGETS}
    return {target: cells for target, cells in results.items() if cells}


Wanting = dict[str, set[str]]
"""By the key of a run: the experiments it belongs to."""


def _share(slots: list[Slot], journal: Journal) -> tuple[list[Run], Wanting]:
    """Copy runs between experiments that share them; return the runs that none has, and the experiments of each run."""
    wanted: dict[str, Run] = {}
    wanting: Wanting = {}
    for slot in slots:
        for run in slot.runs:
            wanted[run.key] = wanted.get(run.key, run).with_measures(run.measures)
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


def _do(
    missing: list[Run], wanting: Wanting, journal: Journal, graphs: Graphs, progress: Progress, version: str
) -> dict[str, str]:
    """Do runs and write them to the journals of their experiments; return why runs failed, by key."""
    failed: dict[str, str] = {}
    done, total = 0.0, sum(run.cost for run in missing) or 1.0
    for batch in batches(missing, torch.get_num_threads()):
        share = sum(run.cost for run in batch)

        def report(part: int, whole: int, done: float = done, share: float = share) -> None:
            progress(round(1000 * (done + share * part / max(1, whole)) / total), 1000)

        try:
            made = run_batch(batch, graphs.load(batch[0].graph), report)
            lines = [line | {"version": version} for line in made]
        except (InputError, ImportError, MemoryError, RuntimeError) as error:
            if isinstance(error, RuntimeError) and not _out_of_memory(error):
                raise
            why = str(error) if isinstance(error, InputError) else f"{type(error).__name__}: {error}"
            failed |= dict.fromkeys((run.key for run in batch), why)
            lines = []
        for experiment in sorted(set().union(*(wanting[line["key"]] for line in lines))):
            journal.append(experiment, [line for line in lines if experiment in wanting[line["key"]]])
        done += share
        report(0, 1, done, 0.0)
    return failed


def _out_of_memory(error: RuntimeError) -> bool:
    """Return whether PyTorch lacked memory; on a CPU only the message shows it."""
    return isinstance(error, torch.cuda.OutOfMemoryError) or "can't allocate memory" in str(error)


def _take_device(slots: list[Slot], journal: Journal) -> None:
    """Set the device of every slot to that of most of its runs in the journal."""
    for slot in slots:
        by_device = [
            [[dataclasses.replace(run, device=device) for run in option] for option in slot.options]
            for device in DEVICES
        ]
        counts = [sum(journal.find(run) is not None for option in each for run in option) for each in by_device]
        slot.options = by_device[counts.index(max(counts))]
        if not max(counts):
            slot.reason = slot.reason or NOT_RUN


def _cells(slot: Slot, journal: Journal) -> list[Cell]:
    lines: list[Line] = []
    if slot.reason is None:
        chosen = slot.options[0] if len(slot.options) == 1 else _choice(slot, journal)
        lines = [line for run in chosen if (line := journal.find(run, slot.experiment.name))]
        slot.reason = None if lines else NOT_RUN
    return cells_of(slot.experiment, slot.row, slot.graph, slot.at, lines, slot.reason, slot.preset, slot.saw_test)


def _choice(slot: Slot, journal: Journal) -> list[Run]:
    """Return the option with the highest mean validation accuracy, over the seeds that all options have runs of.

    Seeds outside the selection count too, so that the choice does not change with their number.
    """
    everything = []
    for option in slot.options:
        seeds = range(max(len(option), slot.experiment.runs.get(slot.graph, 0)))
        runs = (dataclasses.replace(option[0], seed=seed) for seed in seeds)
        lines = (journal.find(run, slot.experiment.name) for run in runs)
        everything.append({line["seed"]: line["measured"]["val_accuracy"] or 0.0 for line in lines if line})
    shared = set.intersection(*map(set, everything))
    if not shared:
        return []
    means = [fmean(accuracies[seed] for seed in shared) for accuracies in everything]
    return slot.options[means.index(max(means))]
