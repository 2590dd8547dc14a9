"""A claim of speed: our seconds against those of a peer or a limit, and against what the machine allows at best."""

from dataclasses import asdict, dataclass
from typing import Any

import torch

from graphpartner.kernels.spmm import SparseMatrix
from graphpartner.system.meter import seconds_each
from graphpartner.training.prepared import PreparedGraph
from graphpartner.training.settings import Settings


@dataclass(frozen=True)
class Claim:
    """How many times faster than a peer or a limit, beside the ratio required and the least seconds possible.

    Attributes:
        what: the claim.
        graph: the graph it was measured on.
        device: ``cpu`` with the number of threads, or the GPU's name.
        precision: of the numbers computed with; ``exact`` where results are compared entry by entry.
        ours: our seconds.
        theirs: the peer's seconds, measured in the same run, or the limit.
        ratio: theirs / ours.
        bar: the ratio required; None where none is.
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
        """Tell whether the bar is reached, by a side that is not wrong."""
        return self.same_accuracy is not False and (self.bar is None or self.ratio >= self.bar)

    def asdict(self) -> dict[str, Any]:
        """Return the fields for a JSON file."""
        return asdict(self)


@dataclass(frozen=True)
class Machine:
    """What a device can do, measured: bytes per second of a large copy, float32 operations per second of a product."""

    bandwidth: float
    rate: float


def measure_machine(device: torch.device) -> Machine:
    """Time a copy that fits no cache and a large matrix product; the best of five, since noise only slows down."""
    large = 2**28 if device.type == "cuda" else 2**25
    source, target = torch.rand(large, device=device), torch.empty(large, device=device)
    side = 8192 if device.type == "cuda" else 1536
    left, right = torch.rand(side, side, device=device), torch.rand(side, side, device=device)
    copy, product = seconds_each(
        lambda: target.copy_(source), lambda: left @ right, device=device, repeats=(1, 1), reduce=min
    )
    return Machine(bandwidth=8 * large / copy, rate=2 * side**3 / product)


def epoch_floor(problem: PreparedGraph, settings: Settings, replicas: int, machine: Machine) -> float:
    """Return the least seconds for one epoch of R runs, training and validation, by the cheapest plan.

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
