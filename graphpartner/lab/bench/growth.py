"""Does the cost grow as theory says? Time in nnz × l × columns, memory in l and in R, on synthetic graphs."""

import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from graphpartner.graph.adjacency import normalized_adjacency
from graphpartner.model.propagation import Propagation
from graphpartner.system.meter import synchronize

SIZES = (1_000, 10_000, 100_000, 1_000_000)


@dataclass(frozen=True)
class Point:
    """One measurement of a curve.

    Attributes:
        curve: what is varied: ``nodes``, ``steps`` or ``replicas`` (64 columns each), or the kind of graph joined.
        value: its value.
        work: nnz × l × columns of the propagation that was timed; of a join, the entries of its result.
        seconds: one pass forward and backward; of a join, the whole of it.
        bytes: peak memory beyond what was given.
    """

    curve: str
    value: int
    work: float
    seconds: float
    bytes: int

    def asdict(self) -> dict[str, Any]:
        """For a JSON file."""
        return asdict(self)


def community_edges(num_nodes: int, degree: int = 10, community: int = 100, seed: int = 0) -> Tensor:
    """A graph of communities, nine edges of ten inside them, its nodes in community order."""
    random = np.random.default_rng(seed)
    source = random.integers(num_nodes, size=num_nodes * degree // 2)
    inside = (source // community) * community + random.integers(community, size=source.size)
    anywhere = random.integers(num_nodes, size=source.size)
    target = np.where(random.random(source.size) < 0.9, np.minimum(inside, num_nodes - 1), anywhere)
    edges = torch.from_numpy(np.stack([source, target]))
    return torch.cat([edges, edges.flip(0)], 1)


def measure(curve: str, value: int, device: str, nodes: int, steps: int, columns: int) -> Point:
    """Time one propagation forward and backward, and its peak memory; on a CPU in a process of its own.

    A process knows its highest memory only since it began; a GPU's allocator can be told to forget.
    """
    if device == "cuda":
        nnz, seconds, peak = one_pass(nodes, steps, columns, device)
        return Point(curve, value, float(nnz) * steps * columns, seconds, peak)
    call = f"one_pass({nodes}, {steps}, {columns}, {device!r})"
    program = f"from graphpartner.lab.bench.growth import one_pass; print(*{call})"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    found = done.stdout.split()
    return Point(curve, value, float(found[0]) * steps * columns, float(found[1]), int(found[2]))


def one_pass(nodes: int, steps: int, columns: int, device: str) -> tuple[int, float, int]:
    """nnz, seconds and bytes of one propagation, forward and backward, after a warm-up."""
    place = torch.device(device)
    A = normalized_adjacency(community_edges(nodes), nodes).to(place)
    propagate = Propagation(A, steps, plan="steps")
    propagate.steps_matrix.transpose  # noqa: B018  # stored once, before the clock starts
    H = torch.rand(nodes, columns, device=place, requires_grad=True)
    if place.type == "cuda":
        torch.cuda.reset_peak_memory_stats(place)
    before = _peak(place)
    times = []
    for _ in range(3):
        synchronize(place)
        start = time.perf_counter()
        propagate(H).sum().backward()
        synchronize(place)
        times.append(time.perf_counter() - start)
    return propagate.matrix.nnz, min(times), _peak(place) - before


def _peak(device: torch.device) -> int:
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def scale_points(device: str) -> Iterator[Callable[[], Point]]:
    """All points of the curves, each as a function to call."""
    for nodes in SIZES:
        yield partial(measure, "nodes", nodes, device, nodes, 10, 64)
    for steps in (4, 8, 16, 32, 64):
        yield partial(measure, "steps", steps, device, 100_000, steps, 64)
    for replicas in (1, 2, 4, 8):
        yield partial(measure, "replicas", replicas, device, 100_000, 10, 64 * replicas)
