"""Compare two ways of doing the same work, in one run.

The least time an epoch can take on a machine: bytes over bandwidth, operations over rate, whichever is more.
"""

import time
from dataclasses import asdict, dataclass
from typing import Any

import torch

from graphpartner.kernels.spmm import SparseMatrix
from graphpartner.system.meter import synchronize
from graphpartner.training.prepared import PreparedGraph
from graphpartner.training.settings import Settings


@dataclass(frozen=True)
class Claim:
    """One claim: how many times faster than a peer or a limit, against the bar and the floor.

    Attributes:
        what: the claim.
        graph: the graph it was measured on.
        device: ``cpu`` with the number of threads, or the GPU's name.
        precision: float32 unless it says what else.
        ours: our seconds.
        theirs: the peer's seconds, measured in the same run, or the limit.
        ratio: theirs / ours.
        bar: the least ratio asked for; None where none was.
        floor: the least seconds that bytes and operations allow on this machine; None where not computed.
        same_accuracy: whether both sides give the same answer: equal results, or accuracies that do not differ beyond
            sampling error; None where seconds alone are compared, as with another model.
        note: how that was judged, and what else belongs to the row.
    """

    what: str
    graph: str
    device: str
    precision: str
    ours: float
    theirs: float
    ratio: float
    bar: float | None
    floor: float | None
    same_accuracy: bool | None
    note: str = ""

    @property
    def holds(self) -> bool:
        """Whether the bar is reached by a side that is not wrong."""
        return self.same_accuracy is not False and (self.bar is None or self.ratio >= self.bar)

    def asdict(self) -> dict[str, Any]:
        """For a JSON file."""
        return asdict(self)


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


def epoch_floor(problem: PreparedGraph, settings: Settings, replicas: int, machine: Machine) -> float:
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
