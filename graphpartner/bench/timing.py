"""Compare two ways of doing the same work, in one run."""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

import torch

Work = Callable[[], Any]


@dataclass(frozen=True)
class Row:
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


def seconds_each(
    *sides: Work, device: torch.device, repeats: tuple[int, ...] | None = None, rounds: int = 5
) -> list[float]:
    """Median seconds of one call of each side, warm, the sides taking turns so that a noisy moment hits all of them.

    Args:
        sides: what to call.
        device: where the work happens; a GPU is waited for.
        repeats: calls of each side per round; chosen so that a round of a side takes about 0.2 s if not given.
        rounds: how often the sides take turns.
    """
    for side in sides:
        for _ in range(2):
            side()
    counts = repeats or tuple(max(1, min(200, int(0.2 / max(1e-6, _timed(side, 1, device))))) for side in sides)
    taken: list[list[float]] = [[] for _ in sides]
    for _ in range(rounds):
        for times, side, count in zip(taken, sides, counts, strict=True):
            times.append(_timed(side, count, device) / count)
    return [median(times) for times in taken]


def _timed(side: Work, count: int, device: torch.device) -> float:
    synchronize(device)
    start = time.perf_counter()
    for _ in range(count):
        side()
    synchronize(device)
    return time.perf_counter() - start


def synchronize(device: torch.device) -> None:
    """Wait for a GPU."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def device_name(device: torch.device) -> str:
    """What the row says it was measured on."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"cpu, {torch.get_num_threads()} threads"
