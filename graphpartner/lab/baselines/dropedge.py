"""JKNet with DropEdge: Rong et al., DropEdge: Towards Deep GCNs on Node Classification, ICLR 2020."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from graphpartner.lab.baselines.baseline import grouped, ungrouped
from graphpartner.lab.baselines.jknet import JKNet, JKNetSettings, Propagate
from graphpartner.lab.baselines.layouts import BaselineGraph, Normalization
from graphpartner.lab.baselines.run_dropout import NoDropout, RunDropout
from graphpartner.training.settings import between


@dataclass(frozen=True)
class DropEdgeSettings(JKNetSettings):
    """Settings of a JKNet with DropEdge."""

    edge_dropout: float = between(0.5, 0, 1)
    """Share of the edges left out in every epoch, each direction by itself, the same in all layers."""


class JKNetDropEdge(JKNet):
    """A JKNet that sees another part of the edges in every epoch, normalised anew; all of them once it is trained."""

    Settings: ClassVar = DropEdgeSettings
    settings: DropEdgeSettings

    def propagation(self, noise: NoDropout) -> Propagate:
        """H ↦ Â_drop H, with an Â_drop of its own for every run."""
        if not isinstance(noise, RunDropout) or not self.settings.edge_dropout:
            return super().propagation(noise)
        edges, replicas = self.graph.edges, len(noise.seeds)
        values = dropped_edges(self.graph, noise, self.settings.edge_dropout, self.settings.normalization)
        return lambda H: ungrouped(edges.product(values, grouped(H)), replicas)


def dropped_edges(graph: BaselineGraph, noise: RunDropout, rate: float, normalization: Normalization) -> Tensor:
    """The entries of Â_drop, [E, R]: A loses a share of its entries, then Ã_drop = A_drop + I is normalised."""
    edges = graph.edges
    kept = noise.dropout(rate, stream="edges").mask(edges.order) > 0  # [R, E]
    value = (kept | edges.loop).float().T.contiguous() * graph.entries[:, None]
    degree = edges.into @ value  # [n, R]
    if normalization == "row":
        return value / degree.index_select(0, edges.target)
    root = degree.rsqrt()
    return value * root.index_select(0, edges.target) * root.index_select(0, edges.source)
