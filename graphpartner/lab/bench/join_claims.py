"""The k-hop cosine join against blockwise SciPy: seconds, extra memory, and the same pairs."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import torch

from graphpartner.enhance.blocks import join_blocks
from graphpartner.enhance.features import read_features
from graphpartner.enhance.join import attribute_graph
from graphpartner.enhance.rule import Rule
from graphpartner.enhance.scipy_join import scipy_join
from graphpartner.graph.adjacency import adjacency
from graphpartner.graph.catalogue import CATALOGUE
from graphpartner.graph.datasets import load_graph
from graphpartner.lab.bench.claims import Claim
from graphpartner.system.device import device_name
from graphpartner.system.meter import seconds_each

BARS = {"coauthor-cs": 12.0, "pubmed": 50.0, "amazon-photo": 80.0, "amazon-computers": 80.0}


def blockwise_join(graph: str, root: str | None, k: int = 3, threshold: float = 0.4) -> tuple[np.ndarray, ...]:
    """The peer: blockwise SciPy, float64, ties kept."""
    data = load_graph(graph, root)
    features = read_features(data.x)
    A = adjacency(data.edge_index, features.num_nodes)
    return join_blocks(scipy_join(Rule(features, threshold), A, k, 1024), features.num_nodes)


def against_scipy(graph: str, root: str | None, bar: float | None) -> Claim:
    """Our join against the peer, on a CPU, warm."""
    device = torch.device("cpu")
    data = load_graph(graph, root)
    (ours,) = seconds_each(lambda: attribute_graph(data.x, data.edge_index), device=device, repeats=(1,), rounds=5)
    start = time.perf_counter()
    starts, columns, values = blockwise_join(graph, root)
    theirs = time.perf_counter() - start
    found = attribute_graph(data.x, data.edge_index)
    same = np.array_equal(starts, found.crow_indices()) and np.array_equal(columns, found.col_indices())
    worst = float(np.abs(values - found.values().numpy()).max())
    output = 12 * found.values().numel()
    extra = extra_memory(graph, root)
    allowed = 2.2 * output + 100e6
    note = f"largest difference {worst:.1e}; extra memory {extra / 1e6:.0f} MB of {allowed / 1e6:.0f} MB allowed"
    right = same and worst <= 2e-7 and extra <= allowed
    what = "the join, k = 3, t = 0.4, against blockwise SciPy"
    return Claim(what, graph, device_name(device), "exact", ours, theirs, theirs / ours, bar, None, right, note)


def extra_memory(graph: str, root: str | None) -> int:
    """How far the memory of a fresh process rises while it joins, its loops compiled and its graph loaded before."""
    program = (
        "import torch\n"
        "from graphpartner.system.meter import memory_rise\n"
        "from graphpartner.enhance.join import attribute_graph\n"
        "from graphpartner.graph.datasets import load_graph\n"
        f"data = load_graph({graph!r}, {root!r})\n"
        "attribute_graph(data.x[:8], torch.tensor([[0], [1]]))\n"
        "print(memory_rise(lambda: attribute_graph(data.x, data.edge_index)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return int(done.stdout)


def within_a_second(graph: str, root: str | None) -> Claim:
    """Our join on a GPU, against the limit of one second."""
    device = torch.device("cuda")
    data = load_graph(graph, root)
    x, edges = data.x.to(device), data.edge_index.to(device)
    (ours,) = seconds_each(lambda: attribute_graph(x, edges), device=device, repeats=(1,), rounds=3)
    found = attribute_graph(x, edges).cpu()
    exact = attribute_graph(data.x, data.edge_index)
    same = torch.equal(exact.crow_indices(), found.crow_indices()) and torch.equal(
        exact.col_indices(), found.col_indices()
    )
    what, note = "the join, k = 3, t = 0.4, against the limit of 1 s", f"{found.values().numel():,} entries"
    return Claim(what, graph, device_name(device), "exact", ours, 1.0, 1 / ours, 1.0, None, same, note)


def join_claims(root: str | None) -> Iterator[Callable[[], Claim]]:
    """The claims about the join, each as a function to call; on a GPU where there is one."""
    for graph in CATALOGUE:
        if torch.cuda.is_available():
            yield partial(within_a_second, graph, root)
        else:
            yield partial(against_scipy, graph, root, BARS.get(graph))
