"""Do a batch of runs: train them in one call, measure each, and say what it cost."""

import copy
import dataclasses
import json
import math
import time
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from graphpartner.baselines.runs import BaselineRuns
from graphpartner.enhance.join import attribute_graph
from graphpartner.enhance.quality import edge_quality
from graphpartner.experiments import measures
from graphpartner.experiments.graphs import Graph
from graphpartner.experiments.journal import Line
from graphpartner.experiments.measures import Measured
from graphpartner.experiments.memory import peak_memory
from graphpartner.experiments.runs import LOOKS, Run, trainings
from graphpartner.graph.statistics import graph_statistics
from graphpartner.progress import Progress, silent
from graphpartner.train.runs import Runs
from graphpartner.train.settings import Settings
from graphpartner.train.trainer import train

WARM_UP = 3  # epochs of the call before a timed one: loops are compiled and libraries loaded only once


def perform(batch: list[Run], graph: Graph, progress: Progress = silent) -> list[Line]:
    """Train and measure runs that belong together, and give back a line for each."""
    first = batch[0]
    if first.method in LOOKS:
        return [run.identity | {"key": run.key, "measured": _plain(_look(run, graph.data))} for run in batch]
    places = trainings(batch)
    data = graph.split_for([training.split for training in places])
    if first.timing:
        _train([_shortened(run) for run in batch], data)
    with peak_memory(first.device) as peak:
        start = time.perf_counter()
        trained = _train(batch, data, progress)
        if first.device == "cuda":
            torch.cuda.synchronize()
        seconds = time.perf_counter() - start
    made: Line = {
        "split": "public" if graph.data.get("train_mask") is not None else "20 and 30 a class, by seed",
        "machine": machine_name(first.device),
        "torch": torch.__version__,
        "batch": [run.seed for run in batch],
        "plan": trained.problem.propagate.explain() if isinstance(trained, Runs) else None,
    }
    cost = {"peak_memory": peak[0] / 1e6, "parameters": _parameters(trained)}
    columns = {
        "accuracy": 100 * trained.accuracy(data.test_mask).double(),
        "val_accuracy": 100 * trained.accuracy(data.val_mask).double(),
        "val_loss": trained.val_loss.double(),
        "epochs": trained.epochs.double(),
    }
    lines = []
    for run in batch:
        members = torch.tensor([places[training] for training in run.trainings])
        found: Measured = cost | {"seconds": seconds * run.members / len(places)}
        found |= {name: float(column[members].mean()) for name, column in columns.items()}
        if run.members > 1:
            found |= {"member_accuracy": found["accuracy"]} | _ensemble(members, trained, data)
        else:
            found |= _smoothness(run, int(members), trained, graph)
        lines.append(run.identity | made | {"key": run.key, "measured": _plain(found)})
    return lines


def _train(batch: list[Run], data: Data, progress: Progress = silent) -> Runs | BaselineRuns:
    first, each_once = batch[0], trainings(batch)
    seeds = [training.seed for training in each_once]
    if first.method == "gpnn":
        each = [Settings().replace(**json.loads(training.settings)) for training in each_once]
        return train(data, each, seeds, first.device, progress=progress)
    from graphpartner.baselines.table import train_baseline

    layers = any(run.measures & measures.LAYERS for run in batch)
    changes = dict(first.changes)
    return train_baseline(first.method, data, seeds, first.device, changes, progress, keep_layers=layers)


def _shortened(run: Run) -> Run:
    short = {"epochs": WARM_UP} if "epochs" in run.settings else {}
    return dataclasses.replace(run, settings=run.settings | short, changes=run.changes | short)


def _ensemble(members: Tensor, trained: Runs | BaselineRuns, data: Data) -> Measured:
    """Accuracies in percent of the mean of its members' class distributions."""
    right = trained.logits[members].softmax(-1).mean(0).argmax(-1) == data.y
    found: Measured = {}
    for name, masks in (("accuracy", data.test_mask), ("val_accuracy", data.val_mask)):
        counted = (masks if masks.dim() == 1 else masks[members[0]]) & (data.y >= 0)
        found[name] = 100 * float(right[counted].double().mean())
    return found


def _plain(value: Any) -> Any:
    """None for what is not a number: JSON knows no infinity."""
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _smoothness(run: Run, place: int, trained: Runs | BaselineRuns, graph: Graph) -> Measured:
    if isinstance(trained, Runs):
        return measures.of_gpnn(trained, place, graph, run.measures)
    return measures.of_baseline(trained, place, graph, run.measures, run.settings)


def _parameters(trained: Runs | BaselineRuns) -> int:
    if isinstance(trained, Runs):
        return trained.weight1[0].numel() + trained.weight2[0].numel()
    return trained.parameters


def _look(run: Run, data: Data) -> Measured:
    if run.method == "statistics":
        counted = dataclasses.asdict(graph_statistics(data))
        return {name.removeprefix("num_"): value for name, value in counted.items()}
    attribute = attribute_graph(data.x, data.edge_index, **run.settings)
    quality = dataclasses.asdict(edge_quality(data.x, data.edge_index, data.y, attribute))
    return {name: 100 * value if name.endswith("_rate") else value for name, value in quality.items()}


def machine_name(device: str) -> str:
    """What a number was measured on."""
    if device == "cuda":
        return torch.cuda.get_device_name()
    try:
        with open("/proc/cpuinfo") as file:
            name = next(line.split(":", 1)[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        name = "CPU"
    return f"{name}, {torch.get_num_threads()} threads"


def settings_of(method: str, graph: str, preset: Settings | None, changes: dict[str, Any]) -> dict[str, Any]:
    """All settings of a run: the preset's or the baseline's own, with the changes."""
    if method in LOOKS:
        return copy.copy(changes)
    if preset is not None:
        return preset.replace(**changes).asdict()
    from graphpartner.baselines.table import baseline_settings

    return dict(baseline_settings(method, graph).settings.asdict()) | changes
