"""How cost grows on synthetic graphs: propagation with nodes, steps and replicas; the k-hop cosine join with nodes."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from graphpartner.enhance.join import attribute_graph
from graphpartner.graph.adjacency import normalized_adjacency
from graphpartner.model.propagation import Propagation
from graphpartner.system.meter import in_new_process, peak_memory, seconds_each, seconds_of

SIZES = (1_000, 10_000, 100_000, 1_000_000)
WORDS, WORDS_PER_NODE = 2_000, 39
TOP = 10  # pairs per row on the power law, where nearly half of all pairs lie within three hops
JOIN_SIZES = {
    "communities, in order": (10_000, 100_000, 1_000_000),
    "communities, shuffled": (100_000, 1_000_000),
    f"power law, top {TOP}": (10_000, 100_000),
}


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
        """Return the fields for a JSON file."""
        return asdict(self)


def scale_points(device: str) -> list[Callable[[], Point]]:
    """Return all points of the curves as functions to call; the join is measured on a CPU only."""
    points = [partial(measure, "nodes", nodes, device, nodes, 10, 64) for nodes in SIZES]
    points += [partial(measure, "steps", steps, device, 100_000, steps, 64) for steps in (4, 8, 16, 32, 64)]
    points += [partial(measure, "replicas", runs, device, 100_000, 10, 64 * runs) for runs in (1, 2, 4, 8)]
    joins = [partial(measure_join, graph, nodes) for graph, sizes in JOIN_SIZES.items() for nodes in sizes]
    return [*points, *(joins if device == "cpu" else [])]


def measure(curve: str, value: int, device: str, nodes: int, steps: int, columns: int) -> Point:
    """Measure one propagation, on a CPU in a process of its own."""
    arguments = (nodes, steps, columns, device)
    nnz, seconds, peak = one_pass(*arguments) if device == "cuda" else in_new_process(one_pass, *arguments)
    return Point(curve, value, float(nnz) * steps * columns, seconds, peak)


def one_pass(nodes: int, steps: int, columns: int, device: str) -> tuple[int, float, int]:
    """Return nnz, seconds and peak bytes of one propagation, forward and backward, after a warm-up."""
    place = torch.device(device)
    A = normalized_adjacency(community_edges(nodes), nodes).to(place)
    propagate = Propagation(A, steps, plan="steps")
    propagate.steps_matrix.transpose  # noqa: B018  # stored once, before the clock starts
    H = torch.rand(nodes, columns, device=place, requires_grad=True)
    with peak_memory(place) as peak:
        (seconds,) = seconds_each(
            lambda: propagate(H).sum().backward(), device=place, repeats=(1,), rounds=3, reduce=min
        )
    return propagate.matrix.nnz, seconds, int(peak[0])


def measure_join(graph: str, num_nodes: int) -> Point:
    """Measure one join in a process of its own; the work is the number of entries of its result."""
    entries, seconds, peak = in_new_process(one_join, graph, num_nodes)
    return Point(f"join, {graph}", num_nodes, float(entries), seconds, peak)


def one_join(graph: str, num_nodes: int) -> tuple[int, float, int]:
    """Return entries, seconds and peak bytes of one join, its loops compiled before."""
    attribute_graph(torch.eye(20), torch.tensor([[0], [1]]))
    x, edges = synthetic(graph, num_nodes)
    attribute_graph(*synthetic(graph, 500))
    entries: list[int] = []

    def work() -> None:
        joined = attribute_graph(x, edges, top=TOP if graph.startswith("power") else None)
        entries.append(joined.values().numel())

    with peak_memory("cpu") as peak:
        seconds = seconds_of(work, torch.device("cpu"))
    return entries[0], seconds, int(peak[0])


def synthetic(graph: str, num_nodes: int) -> tuple[Tensor, Tensor]:
    """Return features (CSR) and edges of a kind of graph, by its name in ``JOIN_SIZES``."""
    x = words(num_nodes)
    edges = power_law_edges(num_nodes) if graph.startswith("power") else community_edges(num_nodes)
    if graph.endswith("shuffled"):
        place = np.random.default_rng(1).permutation(num_nodes)
        x, edges = sparse.csr_array(x[np.argsort(place)]), torch.from_numpy(place)[edges]
    starts, columns, values = (torch.from_numpy(part) for part in (x.indptr, x.indices, x.data))
    return torch.sparse_csr_tensor(starts, columns, values, size=x.shape), edges


def community_edges(num_nodes: int, degree: int = 10, community: int = 100, seed: int = 0) -> Tensor:
    """Draw a graph of communities, nine edges of ten inside them, its nodes in community order."""
    random = np.random.default_rng(seed)
    source = random.integers(num_nodes, size=num_nodes * degree // 2)
    inside = (source // community) * community + random.integers(community, size=source.size)
    anywhere = random.integers(num_nodes, size=source.size)
    target = np.where(random.random(source.size) < 0.9, np.minimum(inside, num_nodes - 1), anywhere)
    edges = torch.from_numpy(np.stack([source, target]))
    return torch.cat([edges, edges.flip(0)], 1)


def power_law_edges(num_nodes: int, degree: int = 10, seed: int = 0) -> Tensor:
    """Draw ends of edges with weights i^(−2/3): degrees with a tail of exponent 2.5, nodes in random order."""
    random = np.random.default_rng(seed)
    weights = np.arange(1, num_nodes + 1) ** (-2 / 3)
    share = np.cumsum(weights) / weights.sum()
    ends = np.searchsorted(share, random.random((2, num_nodes * degree // 2)))
    edges = torch.from_numpy(random.permutation(num_nodes)[np.minimum(ends, num_nodes - 1)])
    return torch.cat([edges, edges.flip(0)], 1)


def words(num_nodes: int, community: int = 100, seed: int = 0) -> sparse.csr_array:
    """Draw binary rows of at most 39 words, 30 of them from the sixty of the node's community."""
    random = np.random.default_rng(seed)
    columns = random.integers(WORDS, size=(num_nodes, WORDS_PER_NODE))
    first = 37 * (np.arange(num_nodes) // community)
    columns[:, :30] = (first[:, None] + random.integers(60, size=(num_nodes, 30))) % WORDS
    starts = np.arange(0, columns.size + 1, WORDS_PER_NODE)
    x = sparse.csr_array((np.ones(columns.size, np.float32), columns.ravel(), starts), shape=(num_nodes, WORDS))
    x.sum_duplicates()
    x.data[:] = 1
    return x
