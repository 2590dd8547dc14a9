"""Train a batch of runs in one call, and measure each: accuracy, cost, smoothness, bounds, layers."""

import dataclasses
import json
import math
import time
from typing import Any

import torch
from torch import Tensor

from graphpartner.enhance.join import attribute_graph
from graphpartner.enhance.quality import edge_quality
from graphpartner.graph.adjacency import row_normalized
from graphpartner.graph.record import GraphRecord
from graphpartner.graph.statistics import graph_statistics
from graphpartner.lab.baselines.supervised import BaselineRuns
from graphpartner.lab.experiments.graph_cache import LoadedGraph
from graphpartner.lab.experiments.jobs import DATASET_METHODS, Run, trainings
from graphpartner.lab.experiments.journal import Line
from graphpartner.model.gpnn import GPNNOutput, forward
from graphpartner.model.metrics import accuracy
from graphpartner.model.propagation import propagate_to_depths
from graphpartner.smoothness.bounds import energy_bounds, partner_bounds
from graphpartner.smoothness.energy import dirichlet_energy
from graphpartner.smoothness.mad_gap import mad_gap_details
from graphpartner.smoothness.singular_values import squared_extremes
from graphpartner.system.device import machine_name
from graphpartner.system.meter import peak_memory
from graphpartner.system.progress import Progress, silent
from graphpartner.training.runs import Runs
from graphpartner.training.settings import Settings
from graphpartner.training.trainer import train

Measured = dict[str, Any]

GAPS = {"mad_gap", "mad_gap_smoothed"}
ENERGIES = {"energy", "relative_energy"}
PARTNER = {"graph_energy", "mixed_energy", "published_lower", "published_upper", "lower", "upper"}
LAYERS = {"layer_energy", "layer_s_min", "layer_s_max", "layer_lower", "layer_upper", "input_energy", "picture"}

PICTURED = 4  # the layer whose embedding the paper's Figure 1 shows


def measure_gpnn(runs: Runs, run: int, graph: LoadedGraph, wanted: frozenset[str]) -> Measured:
    """Return the wanted smoothness measures of one run of GPNN.

    ``mad_gap`` is of the last layer's embedding α H^φ1 + (1 − α) H^φ2, ``mad_gap_smoothed`` of H^(l+1); ``energy`` is
    E(H^(l+1)), ``relative_energy`` the same over ‖H^(l+1)‖². The energies and bounds of Proposition 2 are in units of
    E(H^φ1).
    """
    if not wanted & (GAPS | ENERGIES | PARTNER):
        return {}
    settings, problem, edges = runs.settings[run], runs.problem, graph.data.edge_index
    with torch.no_grad():
        weights = runs.weight1[run : run + 1], runs.weight2[run : run + 1]
        # the other runs of the batch may be deeper
        propagate = propagate_to_depths(problem.propagate, [settings.num_steps])
        out = GPNNOutput(*(part[0].cpu() for part in forward(problem.X, *weights, propagate, settings.alpha)))
    found: Measured = {}
    if wanted & GAPS:
        found["mad_gap"] = float(mad_gap_details(out.logits, graph.pairs).gap)
        found["mad_gap_smoothed"] = float(mad_gap_details(out.smoothed, graph.pairs).gap)
    if wanted & ENERGIES:
        found["energy"] = float(dirichlet_energy(out.smoothed.double(), edges))
        found["relative_energy"] = found["energy"] / max(float(out.smoothed.double().square().sum()), 1e-300)
    if wanted & PARTNER:
        branches = torch.stack([out.mlp_logits, out.gcn_logits, out.logits]).double()
        own, smooth, mixed = dirichlet_energy(branches, edges).tolist()
        bounds = partner_bounds(settings.alpha, settings.num_steps, 1.0, graph.extremes)
        found |= {"graph_energy": smooth / own, "mixed_energy": mixed / own}
        for name in ("published_lower", "published_upper", "lower", "upper"):
            found[name] = float(getattr(bounds, name))
    return found


def measure_baseline(
    runs: BaselineRuns, run: int, graph: LoadedGraph, wanted: frozenset[str], settings: Measured
) -> Measured:
    """Return the wanted smoothness measures of one run of a baseline; lists hold one value per layer."""
    found: Measured = {}
    if wanted & GAPS:
        found["mad_gap"] = float(mad_gap_details(runs.logits[run], graph.pairs).gap)
    if wanted & LAYERS:
        found |= _measure_layers(runs, run, graph, settings, draw="picture" in wanted)
    return found


def _measure_layers(runs: BaselineRuns, run: int, graph: LoadedGraph, settings: Measured, draw: bool) -> Measured:
    """Return energy, squared singular values and the bounds of Eq. 6 per layer, and a picture of the fourth."""
    data = graph.data
    weights = [weight[run].cpu() for weight in runs.weights.values() if weight.dim() == 3 and weight.shape[1] > 1]
    layers = [layer[run].cpu() for layer in runs.layers]
    if len(layers) == len(weights) - 1:  # hidden layers alone; the logits are the last
        layers.append(runs.logits[run])
    start = row_normalized(data.x.to_sparse_csr()).to_dense() if settings.get("features") == "row" else data.x
    bounds = energy_bounds([start, *layers], weights, data.edge_index, extremes=graph.extremes)
    squares = [squared_extremes(weight)["weight"] for weight in weights]
    found: Measured = {
        "layer_energy": bounds.energy.tolist(),
        "layer_lower": bounds.published_lower.tolist(),
        "layer_upper": bounds.published_upper.tolist(),
        "layer_s_min": [float(smallest) for smallest, _ in squares],
        "layer_s_max": [float(largest) for _, largest in squares],
        "input_energy": float(dirichlet_energy(start.double(), data.edge_index)),
    }
    if draw:  # of the first seed alone
        points = picture(layers[min(PICTURED, len(layers)) - 1]) if runs.seeds[run] == 0 else None
        found["picture"] = {"points": points, "classes": data.y.tolist()} if points else None
    return found


def picture(embedding: Tensor) -> list[list[float]]:
    """Return positions of the nodes by t-SNE, [n, 2], rounded to one digit after the point."""
    from sklearn.manifold import TSNE

    scaled = embedding.double() / embedding.abs().max().clamp_min(1e-300)  # an embedding may be almost 0
    perplexity = min(30.0, (len(scaled) - 1) / 3)
    plane = TSNE(init="random", perplexity=perplexity, random_state=0).fit_transform(scaled.numpy())
    return [[round(float(x), 1), round(float(y), 1)] for x, y in plane]


WARM_UP = 3  # epochs of the call before a timed one, which compiles loops and loads libraries


def run_batch(batch: list[Run], graph: LoadedGraph, progress: Progress = silent) -> list[Line]:
    """Train and measure the runs of one batch, and return a journal line for each, without the package version."""
    first = batch[0]
    if first.method in DATASET_METHODS:
        return [_line(run, _measure_dataset(run, graph.data)) for run in batch]
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
        lines.append(_line(run, found) | made)
    return lines


def _line(run: Run, measured: Measured) -> Line:
    return run.identity | {"key": run.key, "measured": _plain(measured)}


def _train(batch: list[Run], data: GraphRecord, progress: Progress = silent) -> Runs | BaselineRuns:
    first, distinct = batch[0], trainings(batch)
    seeds = [training.seed for training in distinct]
    if first.method == "gpnn":
        settings = [Settings().replace(**json.loads(training.settings)) for training in distinct]
        return train(data, settings, seeds, first.device, progress=progress)
    from graphpartner.lab.baselines.all_baselines import train_baseline

    layers = any(run.measures & LAYERS for run in batch)
    changes = dict(first.changes)
    return train_baseline(first.method, data, seeds, first.device, changes, progress, keep_layers=layers)


def _shortened(run: Run) -> Run:
    short = {"epochs": WARM_UP} if "epochs" in run.settings else {}
    return dataclasses.replace(run, settings=run.settings | short, changes=run.changes | short)


def _ensemble(members: Tensor, trained: Runs | BaselineRuns, data: GraphRecord) -> Measured:
    """Return accuracies in percent of the mean of the members' class probabilities."""
    probabilities = trained.logits[members].softmax(-1).mean(0)
    found: Measured = {}
    for name, masks in (("accuracy", data.test_mask), ("val_accuracy", data.val_mask)):
        mask = masks if masks.dim() == 1 else masks[members[0]]
        found[name] = 100 * float(accuracy(probabilities, data.y, mask, torch.float64))
    return found


def _plain(value: Any) -> Any:
    """Return a value with None in place of infinite numbers and NaN, which JSON does not have."""
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _smoothness(run: Run, place: int, trained: Runs | BaselineRuns, graph: LoadedGraph) -> Measured:
    if isinstance(trained, Runs):
        return measure_gpnn(trained, place, graph, run.measures)
    return measure_baseline(trained, place, graph, run.measures, run.settings)


def _parameters(trained: Runs | BaselineRuns) -> int:
    if isinstance(trained, Runs):
        return trained.weight1[0].numel() + trained.weight2[0].numel()
    return trained.parameters


def _measure_dataset(run: Run, data: GraphRecord) -> Measured:
    if run.method == "statistics":
        counted = dataclasses.asdict(graph_statistics(data))
        return {name.removeprefix("num_"): value for name, value in counted.items()}
    attribute = attribute_graph(data.x, data.edge_index, **run.settings)
    quality = dataclasses.asdict(edge_quality(data.x, data.edge_index, data.y, attribute))
    return {name: 100 * value if name.endswith("_rate") else value for name, value in quality.items()}
