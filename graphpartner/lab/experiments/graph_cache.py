"""Keep the graph of a job in memory, one at a time, with what several measures need of it."""

import copy
from functools import cached_property, lru_cache

from graphpartner.graph.catalogue import locate
from graphpartner.graph.datasets import load_graph
from graphpartner.graph.record import GraphRecord
from graphpartner.graph.splits import with_split
from graphpartner.smoothness.bounds import LaplacianExtremes, laplacian_extremes
from graphpartner.smoothness.mad_gap import HopPairs, hop_pairs


class LoadedGraph:
    """A loaded graph, without a split where it has no public one."""

    def __init__(self, data: GraphRecord) -> None:
        self.data = data

    @cached_property
    def pairs(self) -> HopPairs:
        """Near and remote pairs of nodes, for MADGap."""
        return hop_pairs(self.data.edge_index, self.data.num_nodes)

    @cached_property
    def extremes(self) -> LaplacianExtremes:
        """Eigenvalues of L̃, for bounds."""
        return laplacian_extremes(self.data.edge_index, self.data.num_nodes)

    def split_for(self, seeds: list[int]) -> GraphRecord:
        """Return the graph with its public split, or with one random split per seed."""
        return with_split(copy.copy(self.data), seeds)


class Graphs:
    """Graphs of a data root; the last one stays loaded."""

    def __init__(self, root: str | None) -> None:
        self.root = root
        self.load = lru_cache(maxsize=1)(lambda name: LoadedGraph(load_graph(name, root)))

    def reason(self, name: str) -> str | None:
        """Return why a graph cannot be used without a download, or None if it can."""
        try:
            location = locate(name, self.root)
        except ImportError:  # without pooch there is no cache to look into
            return f"{name} is not here: give the folder that holds it with --data"
        if location.is_here:
            return None
        if location.kind == "missing":
            return f"{name} is not here: {location.path.name} is missing under --data"
        return (
            f"{name} is not here: give the folder that holds it with --data, or load it once with gpnn inspect {name}"
        )
