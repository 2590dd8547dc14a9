"""The suites of ``gpnn bench``: which claims each one makes about training and the join, and how they are measured."""

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from graphpartner.enhance.join import attribute_graph
from graphpartner.graph.catalogue import CATALOGUE
from graphpartner.graph.datasets import load_graph
from graphpartner.graph.record import GraphRecord
from graphpartner.graph.splits import with_split
from graphpartner.lab.bench.claims import Claim, Machine, epoch_floor, measure_machine
from graphpartner.lab.bench.growth import Point, scale_points
from graphpartner.lab.bench.peers import PlainGPNN, blockwise_join, peer_epoch
from graphpartner.model.propagation import DENSE_POWER_BYTES, PlanName, Propagation
from graphpartner.system.errors import InputError
from graphpartner.system.meter import in_new_process, peak_memory, seconds_each, seconds_of
from graphpartner.system.progress import Progress, silent
from graphpartner.training.batch import Batch
from graphpartner.training.loop import CapturedStep, EarlyStopping
from graphpartner.training.prepared import PreparedGraph, labelled, prepare_graph
from graphpartner.training.settings import Settings
from graphpartner.training.trainer import train

SUITES = ("cpu", "cuda", "join", "scale")
SETTINGS = Path(__file__).with_name("settings.yaml")
PUBLIC = ("cora", "citeseer", "pubmed")
AMAZON = ("amazon-computers", "amazon-photo")
CPU = torch.device("cpu")
JOIN_BARS = {"coauthor-cs": 12.0, "pubmed": 50.0, "amazon-photo": 80.0, "amazon-computers": 80.0}
JOIN = "the join, k = 3, t = 0.4, against"


def run_suite(
    suite: str,
    root: str | None = None,
    on_result: Callable[[Claim | Point], None] | None = None,
    progress: Progress = silent,
) -> list[Claim | Point]:
    """Measure every claim of a suite.

    Args:
        suite: ``cpu`` and ``cuda`` are about training, ``join`` about the graph enhancement (on a GPU where there is
            one), ``scale`` about how cost grows.
        root: a data root with all six graphs.
        on_result: called with every result as soon as it is measured.
        progress: called with (claims measured, claims).
    """
    if suite not in SUITES:
        raise InputError(f"--suite {suite}: must be one of {', '.join(SUITES)}")
    on_gpu = torch.cuda.is_available()
    if suite == "cuda" and not on_gpu:
        raise InputError("--suite cuda: no GPU was found; use cpu, join or scale")
    if suite == "scale":
        claims: list[Callable[[], Claim | Point]] = list(scale_points("cuda" if on_gpu else "cpu"))
    else:
        claims = list({"cpu": cpu_claims, "cuda": cuda_claims, "join": join_claims}[suite](root))
    measured: list[Claim | Point] = []
    for done, claim in enumerate(claims):
        progress(done, len(claims))
        measured.append(claim())
        if on_result:
            on_result(measured[-1])
    progress(len(claims), len(claims))
    return measured


def cpu_claims(root: str | None) -> list[Callable[[], Claim]]:
    """Return the claims about training on two CPU cores, as functions to call."""
    machine = measure_machine(CPU)
    bars = zip(PUBLIC, (12.0, 20.0, 4.0), strict=True)
    claims = [partial(against_plain, graph, root, CPU, 10, 1, bar, machine) for graph, bar in bars]
    claims += [partial(together_against_alone, graph, root, CPU, 16, 1.0) for graph in PUBLIC]
    claims += [partial(against_peer, peer, root, CPU, None, 1) for peer in ("gcnii", "appnp", "gcn")]
    plans = [(graph, steps) for graph in ("cora", "citeseer") for steps in (2, 10, 48)]
    return [*claims, *(partial(plan_choice, graph, root, CPU, steps, 1) for graph, steps in plans)]


def cuda_claims(root: str | None) -> list[Callable[[], Claim]]:
    """Return the claims about training on one GPU, as functions to call."""
    device = torch.device("cuda")
    machine = measure_machine(device)
    bars = [("cora", 10, 120.0), ("citeseer", 10, 60.0), ("cora", 48, 370.0), ("citeseer", 48, 200.0)]
    bars += [(graph, 10, 8.0) for graph in ("pubmed", "coauthor-cs", *AMAZON)]
    claims = [partial(against_plain, graph, root, device, steps, 100, bar, machine) for graph, steps, bar in bars]
    claims += [partial(against_plain, "cora", root, device, 10, 1, 8.0, machine)]
    peers = (("gcnii", 700.0), ("appnp", None), ("gcn", None))
    claims += [partial(against_peer, peer, root, device, bar, 100) for peer, bar in peers]
    plans = [(graph, *plan) for graph in PUBLIC for plan in ((2, 1), (10, 1), (48, 1), (10, 100), (48, 100))]
    claims += [partial(plan_choice, graph, root, device, steps, replicas) for graph, steps, replicas in plans]
    claims += [partial(whole_row, root, device, 120.0)]
    return [*claims, *(partial(batched_against_single, graph, root, device, 100) for graph in ("cora", "citeseer"))]


def join_claims(root: str | None) -> list[Callable[[], Claim]]:
    """Return the claims about the join as functions to call; on a GPU where there is one."""
    if torch.cuda.is_available():
        return [partial(within_a_second, graph, root) for graph in CATALOGUE]
    return [partial(against_scipy, graph, root, JOIN_BARS.get(graph)) for graph in CATALOGUE]


def _claim(
    what: str,
    graph: str,
    device: torch.device,
    ours: float,
    theirs: float,
    bar: float | None = None,
    floor: float | None = None,
    same: bool | None = None,
    note: str = "",
    precision: str = "float32",
) -> Claim:
    """Return a claim with its ratio and the name of the device."""
    on_gpu = device.type == "cuda"
    place = torch.cuda.get_device_name(device) if on_gpu else f"cpu, {torch.get_num_threads()} threads"
    return Claim(what, graph, place, precision, ours, theirs, theirs / ours, bar, floor, same, note)


def fixed_settings(graph: str) -> Settings:
    """Return the graph's settings in ``settings.yaml``."""
    import yaml

    return Settings(**yaml.safe_load(SETTINGS.read_text())[graph])


def bench_settings(graph: str, num_steps: int = 10) -> Settings:
    """Return the fixed settings with 64 hidden columns, t = 0.4 and β = 0.7, or 1 on the Amazon graphs."""
    beta = 1.0 if graph in AMAZON else 0.7
    return fixed_settings(graph).replace(num_steps=num_steps, hidden_channels=64, threshold=0.4, beta=beta)


def _bench_graph(graph: str, root: str | None, num_steps: int = 10) -> tuple[GraphRecord, Settings]:
    return with_split(load_graph(graph, root), 0), bench_settings(graph, num_steps)


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
    graph: str, root: str | None, device: torch.device, num_steps: int, replicas: int, bar: float, machine: Machine
) -> Claim:
    """Compare an epoch of R runs together, per run, with an epoch of the plain loop."""
    data, settings = _bench_graph(graph, root, num_steps)
    engine = Engine(data, settings, replicas, device)
    plain = PlainGPNN(data, settings, 0, device)
    ours, theirs = seconds_each(engine.epoch, plain.epoch, device=device)
    same, note = same_accuracy(data, settings, device, epochs=60, seeds=3)
    what = f"{replicas} seeds together, per run," if replicas > 1 else "one run"
    what += f" against the plain loop, l = {num_steps}"
    floor = epoch_floor(engine.problem, settings, 1, machine)
    note = f"{engine.problem.propagate.plan.name}; {note}"
    return _claim(what, graph, device, ours / replicas, theirs, bar, floor, same, note)


def same_accuracy(
    data: GraphRecord, settings: Settings, device: torch.device, epochs: int, seeds: int
) -> tuple[bool, str]:
    """Tell by Welch's test whether engine and plain loop have the same mean test accuracy after some epochs."""
    short = settings.replace(epochs=epochs)
    ours = train(data, short, range(4 * seeds), device).accuracy(data.test_mask)
    theirs = torch.tensor([PlainGPNN(data, short, seed, device).fit(epochs) for seed in range(seeds)])
    difference = 100 * float(ours.mean() - theirs.mean())
    error = 100 * math.sqrt(float(ours.var()) / len(ours) + float(theirs.var()) / len(theirs))
    note = f"test accuracy after {epochs} epochs {100 * ours.mean():.1f} % against {100 * theirs.mean():.1f} %"
    return abs(difference) <= 4 * error + 0.5, note


def against_peer(peer: str, root: str | None, device: torch.device, bar: float | None, replicas: int) -> Claim:
    """Compare an epoch of one of R runs with an epoch of another model at its paper's sizes, on Cora."""
    data, settings = _bench_graph("cora", root)
    engine = Engine(data, settings, replicas, device)
    ours, theirs = seconds_each(engine.epoch, peer_epoch(peer, data, device), device=device)
    what = f"an epoch, per run of {replicas}, against {peer.upper()} at its paper's sizes"
    note = "another model: accuracies are compared in the results"
    return _claim(what, "cora", device, ours / replicas, theirs, bar, note=note)


def plan_choice(graph: str, root: str | None, device: torch.device, num_steps: int, replicas: int) -> Claim:
    """Compare the plan that was chosen for A_en^l H with the best of all plans, forward and backward."""
    data, settings = _bench_graph(graph, root, num_steps)
    chosen = prepare_graph(data, settings, device, replicas).propagate
    n = data.num_nodes
    H = torch.rand(n, replicas * settings.hidden_channels, device=device, requires_grad=True)
    plans: tuple[PlanName, ...] = ("steps", "dense") if 4 * n * n <= DENSE_POWER_BYTES else ("steps",)
    operators = [Propagation(chosen.matrix, num_steps, plan) for plan in plans]
    with torch.no_grad():
        results = [operator(H) for operator in operators]
    worst = max(float((result - results[0]).abs().max() / results[0].abs().max()) for result in results)
    times = seconds_each(*(partial(_forward_backward, operator, H) for operator in operators), device=device)
    what = f"A^l H, l = {num_steps}, {H.shape[1]} columns: the chosen plan against the best"
    each = (f"{plan} {1e3 * seconds:.3g} ms" for plan, seconds in zip(plans, times, strict=True))
    note = f"{chosen.plan.name} chosen; {', '.join(each)}"
    ours = times[plans.index(chosen.plan.name)]
    return _claim(what, graph, device, ours, min(times), bar=1 / 1.5, same=worst <= 1e-5, note=note)


def _forward_backward(propagate: Propagation, H: Tensor) -> None:
    torch.autograd.grad(propagate(H).sum(), H)


def together_against_alone(graph: str, root: str | None, device: torch.device, seeds: int, bar: float) -> Claim:
    """Compare whole trainings: several seeds in one call, per run, with one seed alone."""
    data, settings = _bench_graph(graph, root)
    settings = settings.replace(epochs=12)
    together, alone = seconds_each(
        lambda: train(data, settings, range(seeds), device),
        lambda: train(data, settings, [0], device),
        device=device,
        repeats=(1, 1),
        rounds=2,
    )
    what = f"{seeds} seeds in one call, per run, against one seed alone"
    return _claim(what, graph, device, together / seeds, alone, bar, note="12 epochs, set-up included")


def batched_against_single(graph: str, root: str | None, device: torch.device, seeds: int) -> Claim:
    """Compare accuracy and standard deviation of runs trained together and of the same seeds one by one, paired."""
    data, settings = _bench_graph(graph, root)
    accuracies: list[Tensor] = []

    def run(batch_size: int) -> None:
        runs = train(data, settings, range(seeds), device, batch_size=batch_size)
        accuracies.append(100 * runs.accuracy(data.test_mask))

    ours, theirs = (seconds_of(partial(run, size), device) for size in (seeds, 1))
    together, alone = accuracies
    difference = together - alone
    error = float(difference.std()) / math.sqrt(seeds)
    mean = float(difference.mean())
    same = abs(mean) <= 2.6 * error + 1e-6 and 0.67 < float(together.std() / alone.std()) < 1.5
    note = f"mean difference {mean:+.3f} ± {error:.3f} points, sd {together.std():.2f} against {alone.std():.2f}"
    what = f"{seeds} runs together against the same one by one, until they stop"
    return _claim(what, graph, device, ours, theirs, same=same, note=note)


def whole_row(root: str | None, device: torch.device, limit: float) -> Claim:
    """Time the paper's GPNN row: 100 runs on each citation graph and 10 on each of the others, joins included."""
    means: list[str] = []

    def row() -> None:
        for graph in (*PUBLIC, "coauthor-cs", *AMAZON):
            runs = 100 if graph in PUBLIC else 10
            data = with_split(load_graph(graph, root), range(runs))
            accuracy = train(data, fixed_settings(graph), range(runs), device).accuracy(data.test_mask)
            means.append(f"{graph} {100 * accuracy.mean():.1f}")

    seconds = seconds_of(row, device)
    what = "the paper's whole GPNN row, 3 × 100 + 3 × 10 runs, joins included, against the limit"
    note = "test accuracy in %: " + ", ".join(means)
    return _claim(what, "all six", device, seconds, limit, bar=1.0, note=note)


def against_scipy(graph: str, root: str | None, bar: float | None) -> Claim:
    """Compare the join with blockwise SciPy on a CPU, warm: seconds, extra memory, and the same pairs."""
    data = load_graph(graph, root)
    (ours,) = seconds_each(lambda: attribute_graph(data.x, data.edge_index), device=CPU, repeats=(1,), rounds=5)
    blockwise: list[tuple[np.ndarray, ...]] = []
    theirs = seconds_of(lambda: blockwise.append(blockwise_join(data)), CPU)
    starts, columns, values = blockwise[0]
    joined = attribute_graph(data.x, data.edge_index)
    same = np.array_equal(starts, joined.crow_indices()) and np.array_equal(columns, joined.col_indices())
    worst = float(np.abs(values - joined.values().numpy()).max())
    extra = in_new_process(join_memory, graph, root)
    allowed = 2.2 * 12 * joined.values().numel() + 100e6
    note = f"largest difference {worst:.1e}; extra memory {extra / 1e6:.0f} MB of {allowed / 1e6:.0f} MB allowed"
    right = same and worst <= 2e-7 and extra <= allowed
    return _claim(f"{JOIN} blockwise SciPy", graph, CPU, ours, theirs, bar, None, right, note, "exact")


def join_memory(graph: str, root: str | None) -> float:
    """Return the peak memory of the join in bytes, its loops compiled and its graph loaded before."""
    data = load_graph(graph, root)
    attribute_graph(data.x[:8], torch.tensor([[0], [1]]))
    with peak_memory("cpu") as peak:
        attribute_graph(data.x, data.edge_index)
    return peak[0]


def within_a_second(graph: str, root: str | None) -> Claim:
    """Compare the join on a GPU with the limit of one second."""
    device = torch.device("cuda")
    data = load_graph(graph, root)
    x, edges = data.x.to(device), data.edge_index.to(device)
    (ours,) = seconds_each(lambda: attribute_graph(x, edges), device=device, repeats=(1,), rounds=3)
    joined, exact = attribute_graph(x, edges).cpu(), attribute_graph(data.x, data.edge_index)
    same = all(
        torch.equal(one, other)
        for one, other in (
            (exact.crow_indices(), joined.crow_indices()),
            (exact.col_indices(), joined.col_indices()),
        )
    )
    note = f"{joined.values().numel():,} entries"
    return _claim(f"{JOIN} the limit of 1 s", graph, device, ours, 1.0, 1.0, None, same, note, "exact")
