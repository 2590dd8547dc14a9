"""A graph as the baselines see it: features, normalised adjacencies, edges; each laid out on the device once."""

from functools import cached_property
from typing import Literal

import torch
from torch import Tensor

from graphpartner.graph.adjacency import normalized_adjacency, to_torch, with_loops, with_values
from graphpartner.graph.record import GraphRecord
from graphpartner.kernels.edge_products import Edges
from graphpartner.kernels.spmm import SparseMatrix
from graphpartner.training.prepared import count_classes, feature_matrix

Normalization = Literal["symmetric", "row"]


class BaselineGraph:
    """A graph on a device: X, and P = D̃^-½ Ã D̃^-½ with Ã = A + I. Knows no label.

    Args:
        data: a graph as loaded, on the CPU.
        form: of the features, ``"raw"`` or ``"row"``.
        device: where the matrices go.
    """

    def __init__(self, data: GraphRecord, form: str, device: torch.device) -> None:
        self.num_nodes, self.num_features = data.x.shape
        self.num_classes = count_classes(data)
        self.device = device
        self.X = feature_matrix(data.x, form, device)
        edge_index, edge_weight = self.edge_list = data.edge_index, data.get("edge_weight")
        self.P = SparseMatrix(normalized_adjacency(edge_index, self.num_nodes, edge_weight).to(device))

    @cached_property
    def walk(self) -> SparseMatrix:
        """D̃⁻¹ Ã: every row sums to one. It is P with D̃^½, which stands on P's diagonal as D̃⁻¹, moved across."""
        edges = self.edges
        root = edges.weight[edges.loop].double().rsqrt()
        value = edges.weight.double() / root[edges.target] * root[edges.source]
        return SparseMatrix(with_values(self.P.csr, value.float()))

    @cached_property
    def edges(self) -> Edges:
        """The entries of Ã, self-loops among them."""
        return Edges(self.P.csr)

    @cached_property
    def entries(self) -> Tensor:
        """The values of Ã, [E] in the order of ``edges``: exact, as no way back from P's is."""
        edge_index, edge_weight = self.edge_list
        return to_torch(with_loops(edge_index, self.num_nodes, edge_weight)).values().to(self.device)

    def normalized(self, normalization: Normalization) -> SparseMatrix:
        """P or D̃⁻¹ Ã."""
        return self.P if normalization == "symmetric" else self.walk
