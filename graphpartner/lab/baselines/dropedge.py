"""JKNet with DropEdge: Rong et al., DropEdge: Towards Deep GCNs on Node Classification, ICLR 2020."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from graphpartner.lab.baselines.baseline import NoDropout, RunDropout, grouped, ungrouped
from graphpartner.lab.baselines.jknet import JKNet, JKNetSettings, Propagate
from graphpartner.training.prepared import DeviceGraph, Normalization
from graphpartner.training.settings import between


@dataclass(frozen=True)
class DropEdgeSettings(JKNetSettings):
    """Settings of a JKNet with DropEdge."""

    edge_dropout: float = between(0.5, 0, 1)
    """Share of the edges dropped in every epoch, the two directions independently, the same ones in all layers."""


class JKNetDropEdge(JKNet):
    """A JKNet with other edges dropped in every epoch and the rest normalised anew; all edges after training."""

    Settings: ClassVar = DropEdgeSettings
    settings: DropEdgeSettings

    def propagation(self, dropout: NoDropout) -> Propagate:
        """H ↦ Â_drop H, with an Â_drop of its own for every run."""
        if not isinstance(dropout, RunDropout) or not self.settings.edge_dropout:
            return super().propagation(dropout)
        edges, replicas = self.graph.edges, len(dropout.seeds)
        values = dropped_edges(self.graph, dropout, self.settings.edge_dropout, self.settings.normalization)
        return lambda H: ungrouped(edges.product(values, grouped(H)), replicas)


def dropped_edges(graph: DeviceGraph, dropout: RunDropout, rate: float, normalization: Normalization) -> Tensor:
    """The entries of Â_drop, [E, R]: a share of those of A is dropped, then Ã_drop = A_drop + I is normalised."""
    edges = graph.edges
    kept = dropout.draw(rate, stream="edges").mask(edges.order) > 0  # [R, E]
    value = (kept | edges.loop).float().T.contiguous() * graph.edge_values[:, None]
    degree = edges.into @ value  # [n, R]
    if normalization == "row":
        return value / degree.index_select(0, edges.target)
    root = degree.rsqrt()
    return value * root.index_select(0, edges.target) * root.index_select(0, edges.source)
