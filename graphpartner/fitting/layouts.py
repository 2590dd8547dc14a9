"""A graph laid out for the candidates of a fit: every matrix is made once, and shared by all that need it."""

from typing import Any

import torch
from scipy import sparse
from torch import Tensor

from graphpartner.enhance.join import attribute_graph
from graphpartner.enhance.mixture import enhanced_adjacency
from graphpartner.fitting.candidates import Candidate
from graphpartner.graph.adjacency import adjacency, neighbor_mean, row_normalized, to_scipy, to_torch
from graphpartner.graph.record import GraphRecord
from graphpartner.kernels.hop_features import HopFeatures
from graphpartner.kernels.spmm import SparseMatrix
from graphpartner.model.label_propagation import LabelPropagation
from graphpartner.model.propagation import Propagation
from graphpartner.training.prepared import SPARSE_BELOW, PreparedGraph, feature_matrix
from graphpartner.training.settings import Settings


class CandidateGraphs:
    """A graph on a device.

    Features get a last column of ones, so that the model, which has no bias, can learn one.

    Args:
        data: x (dense or torch sparse CSR), edge_index, perhaps edge_weight.
        num_classes: C.
        device: where it is trained.
        num_links: the adjacency's first so many columns are features where a candidate asks for links: the nodes
            that were there when it was trained.
    """

    def __init__(self, data: GraphRecord, num_classes: int, device: torch.device, num_links: int | None = None) -> None:
        self.data, self.num_classes, self.device = data, num_classes, device
        self.num_links = data.num_nodes if num_links is None else num_links
        self._made: dict[Any, Any] = {}

    @property
    def num_nodes(self) -> int:
        """How many nodes the graph has."""
        return int(self.data.num_nodes)

    def problem(self, candidate: Candidate) -> PreparedGraph:
        """What the runs of a candidate share."""
        settings = candidate.settings
        neighbors = None
        if settings.positives == "neighbors":
            neighbors = self._once("neighbors", self._neighbors)
        key = ("steps", settings.num_steps, *_matrix(settings))
        propagate = self._once(key, lambda: Propagation(self._matrix(settings), settings.num_steps, plan="steps"))
        return PreparedGraph(self.features(candidate), propagate, neighbors, self.num_nodes, self.num_classes)

    @property
    def spread(self) -> LabelPropagation:
        """Label propagation on this graph."""
        data = self.data
        return self._once("spread", lambda: LabelPropagation(data.edge_index, self.num_nodes, data.get("edge_weight")))

    def features(self, candidate: Candidate) -> SparseMatrix | Tensor | HopFeatures:
        """X as a candidate sees it."""
        form, links = candidate.settings.features, candidate.links
        X = self._once(("x", form, links), lambda: self._features(form, links))
        if not candidate.hops:
            return X
        return HopFeatures(X, self._once("hops", self._symmetric), candidate.hops, X.shape[1])

    def _features(self, form: str, links: bool) -> SparseMatrix | Tensor:
        x = row_normalized(self.data.x) if form == "row" else self.data.x
        n = x.shape[0]
        if x.layout == torch.strided and not links and density(x) >= SPARSE_BELOW["cpu"]:
            return torch.cat([x, x.new_ones(n, 1)], 1).to(self.device)
        parts = [to_scipy(x.to_sparse_csr()), sparse.csr_array(torch.ones(n, 1).numpy())]
        if links:
            parts.append(self._adjacency[:, : self.num_links])
        joined = sparse.csr_array(sparse.hstack(parts, format="csr"))
        return feature_matrix(to_torch(joined), "raw", self.device)

    @property
    def _adjacency(self) -> sparse.csr_array:
        return self._once("A", lambda: adjacency(self.data.edge_index, self.num_nodes, self.data.get("edge_weight")))

    def _symmetric(self) -> SparseMatrix:
        """D^-½ A D^-½, without self-loops: a node's own features stand beside it."""
        A = self._adjacency
        degree = A.sum(axis=1)
        scale = sparse.diags_array((degree + (degree == 0)) ** -0.5)
        return SparseMatrix(to_torch(scale @ A @ scale, torch.float32, self.device))

    def _matrix(self, settings: Settings) -> SparseMatrix:
        return self._once(_matrix(settings), lambda: SparseMatrix(self._enhanced(settings).to(self.device)))

    def _enhanced(self, settings: Settings) -> Tensor:
        """A_en, Eq. 8."""
        data, k, threshold = self.data, settings.k, settings.threshold
        attribute = None
        if settings.beta < 1:
            join = lambda: attribute_graph(data.x, data.edge_index, k, threshold)  # noqa: E731
            attribute = self._once(("join", k, threshold), join)
        return enhanced_adjacency(attribute, data.edge_index, self.num_nodes, settings.beta, data.get("edge_weight"))

    def _neighbors(self) -> SparseMatrix:
        matrix = neighbor_mean(self.data.edge_index, self.num_nodes, self.data.get("edge_weight"))
        return SparseMatrix(matrix).to(self.device)

    def _once(self, key: Any, make: Any) -> Any:
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]


def _matrix(settings: Settings) -> tuple[Any, ...]:
    """What decides A_en."""
    return ("A_en", settings.beta, settings.k, settings.threshold) if settings.beta < 1 else ("A_en", 1.0)


def density(x: Tensor) -> float:
    """The share of features that are not zero."""
    stored = x.values().numel() if x.layout == torch.sparse_csr else int(x.count_nonzero())
    return stored / max(1, x.shape[0] * x.shape[1])
