"""The least time an epoch can take on a machine: bytes over bandwidth, operations over rate, whichever is more."""

import time
from dataclasses import dataclass

import torch

from graphpartner.bench.timing import synchronize
from graphpartner.model.sparse import SparseMatrix
from graphpartner.train.problem import Problem
from graphpartner.train.settings import Settings


@dataclass(frozen=True)
class Machine:
    """What a device can do, measured: bytes per second of a large copy, float32 operations per second of a product."""

    bandwidth: float
    rate: float


def measure_machine(device: torch.device) -> Machine:
    """Time a copy that fits no cache and a large matrix product."""
    large = 2**28 if device.type == "cuda" else 2**25
    source, target = torch.rand(large, device=device), torch.empty(large, device=device)
    side = 8192 if device.type == "cuda" else 1536
    left, right = torch.rand(side, side, device=device), torch.rand(side, side, device=device)
    copy = _best(lambda: target.copy_(source), device)
    product = _best(lambda: left @ right, device)
    return Machine(bandwidth=8 * large / copy, rate=2 * side**3 / product)


def epoch_floor(problem: Problem, settings: Settings, replicas: int, machine: Machine) -> float:
    """Seconds for one epoch of R runs, training and validation, by the cheapest plan.

    Operations: the kept entries of X times the h columns of W^(1), forward and backward, all of them once more for
    validation; A_en^l H by l sparse products or one dense one, forward and backward, C columns for validation. Bytes:
    H^(1) and H^(l+1) written and read once in each direction, W^(1) with its gradient and Adam's two moments read and
    written once.
    """
    n, d = problem.X.shape
    h, C, l = settings.hidden_channels, problem.num_classes, settings.num_steps  # noqa: E741
    entries = problem.X.nnz if isinstance(problem.X, SparseMatrix) else n * d
    kept = (1 - settings.input_dropout) * entries
    power = min(l * problem.propagate.matrix.nnz, n * n)
    operations = 2 * h * (2 * kept + entries) + 2 * power * (2 * h + C)
    traffic = 4 * (8 * n * h + 7 * d * h)
    return replicas * max(operations / machine.rate, traffic / machine.bandwidth)


def _best(work, device: torch.device) -> float:  # type: ignore[no-untyped-def]
    work()
    times = []
    for _ in range(5):
        synchronize(device)
        start = time.perf_counter()
        work()
        synchronize(device)
        times.append(time.perf_counter() - start)
    return min(times)
