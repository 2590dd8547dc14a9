"""How the k-hop cosine join grows: 10⁴ to 10⁶ nodes, in order and shuffled, and a power law with a bounded result."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from graphpartner.enhance.join import attribute_graph
from graphpartner.lab.bench.growth import Point, community_edges
from graphpartner.system.meter import memory_rise

WORDS, PER_NODE = 2_000, 39
TOP = 10  # pairs a row on the power law, where nearly half of all pairs lie within three hops
SIZES = {
    "communities, in order": (10_000, 100_000, 1_000_000),
    "communities, shuffled": (100_000, 1_000_000),
    f"power law, top {TOP}": (10_000, 100_000),
}


def power_law_edges(num_nodes: int, degree: int = 10, seed: int = 0) -> Tensor:
    """Edges whose ends are drawn with weights i^(−2/3): degrees with a tail of exponent 2.5, nodes in random order."""
    random = np.random.default_rng(seed)
    weights = np.arange(1, num_nodes + 1) ** (-2 / 3)
    share = np.cumsum(weights) / weights.sum()
    ends = np.searchsorted(share, random.random((2, num_nodes * degree // 2)))
    edges = torch.from_numpy(random.permutation(num_nodes)[np.minimum(ends, num_nodes - 1)])
    return torch.cat([edges, edges.flip(0)], 1)


def words(num_nodes: int, community: int = 100, seed: int = 0) -> sparse.csr_array:
    """Binary rows of at most 39 words, 30 of them from the sixty of the node's community."""
    random = np.random.default_rng(seed)
    columns = random.integers(WORDS, size=(num_nodes, PER_NODE))
    first = 37 * (np.arange(num_nodes) // community)
    columns[:, :30] = (first[:, None] + random.integers(60, size=(num_nodes, 30))) % WORDS
    starts = np.arange(0, columns.size + 1, PER_NODE)
    found = sparse.csr_array((np.ones(columns.size, np.float32), columns.ravel(), starts), shape=(num_nodes, WORDS))
    found.sum_duplicates()
    found.data[:] = 1
    return found


def synthetic(graph: str, num_nodes: int) -> tuple[Tensor, Tensor]:
    """Features (CSR) and edges of a named kind of graph."""
    x = words(num_nodes)
    edges = power_law_edges(num_nodes) if graph.startswith("power") else community_edges(num_nodes)
    if graph.endswith("shuffled"):
        place = np.random.default_rng(1).permutation(num_nodes)
        x, edges = sparse.csr_array(x[np.argsort(place)]), torch.from_numpy(place)[edges]
    starts, columns, values = (torch.from_numpy(part) for part in (x.indptr, x.indices, x.data))
    return torch.sparse_csr_tensor(starts, columns, values, size=x.shape), edges


def one_join(graph: str, num_nodes: int) -> None:
    """Print entries, seconds and bytes of one join, its loops compiled before."""
    attribute_graph(torch.eye(20), torch.tensor([[0], [1]]))
    x, edges = synthetic(graph, num_nodes)
    attribute_graph(*synthetic(graph, 500))
    taken: list[float] = []
    entries: list[int] = []

    def work() -> None:
        start = time.perf_counter()
        found = attribute_graph(x, edges, top=TOP if graph.startswith("power") else None)
        taken.append(time.perf_counter() - start)
        entries.append(found.values().numel())

    rise = memory_rise(work)
    print(entries[0], taken[0], rise)


def measure_join(graph: str, num_nodes: int) -> Point:
    """One join in a process of its own; the work is the number of entries of its result."""
    program = f"from graphpartner.lab.bench.join_growth import one_join; one_join({graph!r}, {num_nodes})"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    entries, seconds, peak = done.stdout.split()
    return Point(f"join, {graph}", num_nodes, float(entries), float(seconds), int(peak))


def join_points() -> Iterator[Callable[[], Point]]:
    """All points of the curves, each as a function to call."""
    for graph, sizes in SIZES.items():
        for num_nodes in sizes:
            yield partial(measure_join, graph, num_nodes)
