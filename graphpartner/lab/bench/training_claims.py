"""Training against the plain loop and against GCNII: seconds per epoch and run, at equal accuracy."""

import math
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from graphpartner.graph.datasets import load_graph
from graphpartner.graph.record import GraphRecord
from graphpartner.graph.splits import with_split
from graphpartner.lab.bench.claims import Claim, Machine, epoch_floor, measure_machine
from graphpartner.lab.bench.peers import peer_epoch
from graphpartner.lab.bench.plain import PlainGPNN
from graphpartner.model.propagation import DENSE_POWER_BYTES, PlanName, Propagation
from graphpartner.system.device import device_name
from graphpartner.system.meter import seconds_each, synchronize
from graphpartner.training.batch import Batch
from graphpartner.training.loop import CapturedStep, EarlyStopping
from graphpartner.training.prepared import PreparedGraph, labelled, prepare_graph
from graphpartner.training.settings import Settings
from graphpartner.training.trainer import train

PUBLIC = ("cora", "citeseer", "pubmed")
SETTINGS = Path(__file__).with_name("settings.yaml")
AMAZON = ("amazon-computers", "amazon-photo")


def fixed_settings(graph: str) -> Settings:
    """The graph's settings in ``settings.yaml``."""
    import yaml

    return Settings(**yaml.safe_load(SETTINGS.read_text())[graph])


def bench_settings(graph: str, num_steps: int = 10) -> Settings:
    """The fixed settings with 64 hidden columns, t = 0.4 and β = 0.7, or 1 on the Amazon graphs."""
    beta = 1.0 if graph in AMAZON else 0.7
    return fixed_settings(graph).replace(num_steps=num_steps, hidden_channels=64, threshold=0.4, beta=beta)


class Engine:
    """R runs of the engine, an epoch at a time, as :func:`graphpartner.training.loop.train_replicas` does it."""

    def __init__(self, data: GraphRecord, settings: Settings, replicas: int, device: torch.device) -> None:
        self.problem: PreparedGraph = prepare_graph(data, settings, device, replicas)
        train_nodes = labelled(data.train_mask, data.y, replicas, "train_mask", device)
        val_nodes = labelled(data.val_mask, data.y, replicas, "val_mask", device)
        seeds = list(range(replicas))
        self.batch = Batch(self.problem, [settings] * replicas, seeds, train_nodes, val_nodes)
        self.stopping = EarlyStopping(self.batch.weights, settings.patience)
        self.epoch = CapturedStep(self._one_epoch, device)
        for _ in range(5):
            self.epoch()

    def _one_epoch(self) -> None:
        self.batch.step()
        loss, _ = self.batch.validate()
        self.stopping.update(self.batch.epoch, loss, self.batch.weights)
        self.batch.epoch += 1
        self.batch.epoch %= self.batch.shared.epochs  # timing may go on for longer than training would


def against_plain(
    graph: str,
    root: str | None,
    device: torch.device,
    num_steps: int,
    replicas: int,
    bar: float | None,
    machine: Machine,
) -> Claim:
    """Seconds per epoch and run of R runs together against the plain loop, one run at a time."""
    data, settings = with_split(load_graph(graph, root), 0), bench_settings(graph, num_steps)
    engine = Engine(data, settings, replicas, device)
    plain = PlainGPNN(data, settings, 0, device)
    ours, theirs = seconds_each(engine.epoch, plain.epoch, device=device)
    same, note = same_accuracy(data, settings, device, epochs=60, seeds=3)
    runs = f"{replicas} seeds together, per run," if replicas > 1 else "one run"
    return Claim(
        f"{runs} against the plain loop, l = {num_steps}",
        graph,
        device_name(device),
        "float32",
        ours / replicas,
        theirs,
        theirs / (ours / replicas),
        bar,
        epoch_floor(engine.problem, settings, 1, machine),
        same,
        f"{engine.problem.propagate.plan.name}; {note}",
    )


def same_accuracy(
    data: GraphRecord, settings: Settings, device: torch.device, epochs: int, seeds: int
) -> tuple[bool, str]:
    """Whether engine and plain loop learn equally well: mean test accuracy after so many epochs, by Welch's test."""
    short = settings.replace(epochs=epochs)
    ours = train(data, short, range(4 * seeds), device).accuracy(data.test_mask)
    theirs = torch.tensor([PlainGPNN(data, short, seed, device).fit(epochs) for seed in range(seeds)])
    difference = 100 * float(ours.mean() - theirs.mean())
    error = 100 * math.sqrt(float(ours.var()) / len(ours) + float(theirs.var()) / len(theirs))
    note = f"test accuracy after {epochs} epochs {100 * ours.mean():.1f} % against {100 * theirs.mean():.1f} %"
    return abs(difference) <= 4 * error + 0.5, note


def against_peer(peer: str, root: str | None, device: torch.device, bar: float | None, replicas: int) -> Claim:
    """An epoch of one of R runs against an epoch of another model at its paper's sizes, on Cora."""
    data, settings = with_split(load_graph("cora", root), 0), bench_settings("cora")
    engine = Engine(data, settings, replicas, device)
    ours, theirs = seconds_each(engine.epoch, peer_epoch(peer, data, device), device=device)
    what = f"an epoch, per run of {replicas}, against {peer.upper()} at its paper's sizes"
    note = "another model: accuracies are compared in the results"
    name = device_name(device)
    return Claim(
        what, "cora", name, "float32", ours / replicas, theirs, theirs * replicas / ours, bar, None, None, note
    )


def plan_choice(graph: str, root: str | None, device: torch.device, num_steps: int, replicas: int) -> Claim:
    """The plan that was chosen for A_en^l H against the best of all plans, forward and backward."""
    data, settings = with_split(load_graph(graph, root), 0), bench_settings(graph, num_steps)
    chosen = prepare_graph(data, settings, device, replicas).propagate
    n = data.num_nodes
    H = torch.rand(n, replicas * settings.hidden_channels, device=device, requires_grad=True)
    plans: tuple[PlanName, ...] = ("steps", "dense") if 4 * n * n <= DENSE_POWER_BYTES else ("steps",)
    operators = [Propagation(chosen.matrix, num_steps, plan) for plan in plans]
    with torch.no_grad():
        results = [operator(H) for operator in operators]
    worst = max(float((result - results[0]).abs().max() / results[0].abs().max()) for result in results)
    times = seconds_each(*(partial(_forward_backward, operator, H) for operator in operators), device=device)
    ours, best = times[plans.index(chosen.plan.name)], min(times)
    what = f"A^l H, l = {num_steps}, {H.shape[1]} columns: the chosen plan against the best"
    note = f"{chosen.plan.name} chosen; " + ", ".join(
        f"{plan} {1e3 * seconds:.3g} ms" for plan, seconds in zip(plans, times, strict=True)
    )
    same = worst <= 1e-5
    return Claim(what, graph, device_name(device), "float32", ours, best, best / ours, 1 / 1.5, None, same, note)


def _forward_backward(propagate: Propagation, H: Tensor) -> None:
    torch.autograd.grad(propagate(H).sum(), H)


def together_against_alone(graph: str, root: str | None, device: torch.device, seeds: int, bar: float) -> Claim:
    """Whole trainings: seconds per run of several seeds in one call against one seed alone."""
    data, settings = with_split(load_graph(graph, root), 0), bench_settings(graph).replace(epochs=12)
    each = seconds_each(
        lambda: train(data, settings, range(seeds), device),
        lambda: train(data, settings, [0], device),
        device=device,
        repeats=(1, 1),
        rounds=2,
    )
    ours, theirs = each[0] / seeds, each[1]
    what = f"{seeds} seeds in one call, per run, against one seed alone"
    return Claim(
        what,
        graph,
        device_name(device),
        "float32",
        ours,
        theirs,
        theirs / ours,
        bar,
        None,
        None,
        "12 epochs, set-up included",
    )


def batched_against_single(graph: str, root: str | None, device: torch.device, seeds: int) -> Claim:
    """Accuracy and spread of runs trained together against the same seeds one by one, paired."""
    data, settings = with_split(load_graph(graph, root), 0), bench_settings(graph)

    def run(batch_size: int) -> tuple[Tensor, float]:
        start = time.perf_counter()
        accuracy = 100 * train(data, settings, range(seeds), device, batch_size=batch_size).accuracy(data.test_mask)
        synchronize(device)
        return accuracy, time.perf_counter() - start

    (together, ours), (alone, theirs) = run(seeds), run(1)
    difference = together - alone
    error = float(difference.std()) / math.sqrt(seeds)
    mean = float(difference.mean())
    same = abs(mean) <= 2.6 * error + 1e-6 and 0.67 < float(together.std() / alone.std()) < 1.5
    note = f"mean difference {mean:+.3f} ± {error:.3f} points, sd {together.std():.2f} against {alone.std():.2f}"
    what = f"{seeds} runs together against the same one by one, until they stop"
    return Claim(what, graph, device_name(device), "float32", ours, theirs, theirs / ours, None, None, same, note)


def whole_row(root: str | None, device: torch.device, limit: float) -> Claim:
    """The paper's GPNN row: 100 runs on each citation graph and 10 on each of the others, joins included."""
    start = time.perf_counter()
    means = []
    for graph, runs in (*((name, 100) for name in PUBLIC), *((name, 10) for name in ("coauthor-cs", *AMAZON))):
        data = with_split(load_graph(graph, root), range(runs))
        accuracy = train(data, fixed_settings(graph), range(runs), device).accuracy(data.test_mask)
        means.append(f"{graph} {100 * accuracy.mean():.1f}")
    seconds = time.perf_counter() - start
    what = "the paper's whole GPNN row, 3 × 100 + 3 × 10 runs, joins included, against the limit"
    note = "test accuracy in %: " + ", ".join(means)
    return Claim(
        what, "all six", device_name(device), "float32", seconds, limit, limit / seconds, 1.0, None, None, note
    )


def cpu_claims(root: str | None) -> Iterator[Callable[[], Claim]]:
    """The claims about two CPU cores, each as a function to call."""
    device = torch.device("cpu")
    machine = measure_machine(device)
    for graph, bar in zip(PUBLIC, (12.0, 20.0, 4.0), strict=True):
        yield partial(against_plain, graph, root, device, 10, 1, bar, machine)
    for graph in PUBLIC:
        yield partial(together_against_alone, graph, root, device, 16, 1.0)
    for peer in ("gcnii", "appnp", "gcn"):
        yield partial(against_peer, peer, root, device, None, 1)
    for graph in ("cora", "citeseer"):
        for steps in (2, 10, 48):
            yield partial(plan_choice, graph, root, device, steps, 1)


def cuda_claims(root: str | None) -> Iterator[Callable[[], Claim]]:
    """The claims about one GPU, each as a function to call."""
    device = torch.device("cuda")
    machine = measure_machine(device)
    bars = [("cora", 10, 120.0), ("citeseer", 10, 60.0), ("cora", 48, 370.0), ("citeseer", 48, 200.0)]
    bars += [(graph, 10, 8.0) for graph in ("pubmed", "coauthor-cs", *AMAZON)]
    for graph, steps, bar in bars:
        yield partial(against_plain, graph, root, device, steps, 100, bar, machine)
    yield partial(against_plain, "cora", root, device, 10, 1, 8.0, machine)
    for peer, bar_of_peer in (("gcnii", 700.0), ("appnp", None), ("gcn", None)):
        yield partial(against_peer, peer, root, device, bar_of_peer, 100)
    for graph in PUBLIC:
        for steps, replicas in ((2, 1), (10, 1), (48, 1), (10, 100), (48, 100)):
            yield partial(plan_choice, graph, root, device, steps, replicas)
    yield partial(whole_row, root, device, 120.0)
    for graph in ("cora", "citeseer"):
        yield partial(batched_against_single, graph, root, device, 100)
