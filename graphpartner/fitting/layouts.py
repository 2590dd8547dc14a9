"""A graph laid out for the candidates of a fit."""

from functools import cached_property

import torch
from scipy import sparse
from torch import Tensor

from graphpartner.fitting.candidates import Candidate
from graphpartner.graph.adjacency import row_normalized, to_scipy, to_torch
from graphpartner.graph.record import GraphRecord
from graphpartner.kernels.hop_features import HopFeatures
from graphpartner.kernels.spmm import SparseMatrix
from graphpartner.model.label_propagation import LabelPropagation
from graphpartner.training.prepared import SPARSE_BELOW, DeviceGraph, PreparedGraph, feature_matrix, once


class CandidateGraphs(DeviceGraph):
    """The matrices that the candidates of a fit need, shared among them.

    Features get a last column of ones, so that the model, which has no bias, can learn one.

    Args:
        data: x (dense or torch sparse CSR), edge_index and perhaps edge_weight.
        num_classes: C.
        device: where the runs are trained.
        num_links: number of the adjacency's first columns that are features where a candidate has links: the nodes
            that were there when it was trained. All if not given.
    """

    def __init__(self, data: GraphRecord, num_classes: int, device: torch.device, num_links: int | None = None) -> None:
        super().__init__(data, device, num_classes)
        self.num_links = self.num_nodes if num_links is None else num_links

    def problem(self, candidate: Candidate) -> PreparedGraph:
        """Return what the runs of a candidate share."""
        settings = candidate.settings
        neighbors = self.neighbor_mean if settings.positives == "neighbors" else None
        propagate = self.propagation(settings, plan="steps")
        return PreparedGraph(self._inputs(candidate), propagate, neighbors, self.num_nodes, self.num_classes)

    def _inputs(self, candidate: Candidate) -> SparseMatrix | Tensor | HopFeatures:
        X = self.features_and_links(candidate.settings.features, candidate.links)
        return HopFeatures(X, self.symmetric, candidate.hops, X.shape[1]) if candidate.hops else X

    @once
    def features_and_links(self, form: str, links: bool) -> SparseMatrix | Tensor:
        """X, a column of ones, and where asked for the rows of the adjacency."""
        x = row_normalized(self.x) if form == "row" else self.x
        n = self.num_nodes
        if x.layout == torch.strided and not links and density(x) >= SPARSE_BELOW["cpu"]:
            return torch.cat([x, x.new_ones(n, 1)], 1).to(self.device)
        parts = [to_scipy(x.to_sparse_csr()), sparse.csr_array(torch.ones(n, 1).numpy())]
        if links:
            parts.append(self.scipy_adjacency[:, : self.num_links])
        joined = sparse.csr_array(sparse.hstack(parts, format="csr"))
        return feature_matrix(to_torch(joined), "raw", self.device)

    @cached_property
    def spread(self) -> LabelPropagation:
        """Label propagation on this graph."""
        return LabelPropagation(self.edge_index, self.num_nodes, self.edge_weight)


def density(x: Tensor) -> float:
    """Return the share of features that are not zero."""
    stored = x.values().numel() if x.layout == torch.sparse_csr else int(x.count_nonzero())
    return stored / max(1, x.shape[0] * x.shape[1])
