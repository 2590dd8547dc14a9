"""A graph's matrices on a device, what the runs of a batch share of them, and the nodes they learn from."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, wraps
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar

import torch
from scipy import sparse
from torch import Tensor

from graphpartner.enhance.join import attribute_graph
from graphpartner.enhance.mixture import enhanced_adjacency
from graphpartner.graph.adjacency import (
    adjacency,
    csr,
    neighbor_mean,
    normalized_adjacency,
    row_normalized,
    to_torch,
    with_loops,
    with_values,
)
from graphpartner.graph.record import GraphRecord
from graphpartner.kernels.edge_products import Edges
from graphpartner.kernels.hop_features import HopFeatures
from graphpartner.kernels.spmm import SparseMatrix
from graphpartner.model.propagation import PlanName, Propagation
from graphpartner.system.device import fits_on
from graphpartner.system.errors import InputError
from graphpartner.training.settings import Settings

# Features with fewer non-zeros than this share are multiplied as a sparse matrix. On a CPU both ways take as long at
# about this share; a GPU prefers the sparse one for longer, since there every replica would write a dropped copy.
SPARSE_BELOW = {"cpu": 0.35, "cuda": 0.6}

Normalization = Literal["symmetric", "row"]
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def once(method: Callable[Concatenate[Any, Arguments], Result]) -> Callable[Concatenate[Any, Arguments], Result]:
    """Let a method of :class:`DeviceGraph` compute its result once for the same arguments."""

    @wraps(method)
    def cached(graph: Any, /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        key = (method.__name__, args, *kwargs.items())
        if key not in graph.results:
            graph.results[key] = method(graph, *args, **kwargs)
        result: Result = graph.results[key]
        return result

    return cached


class DeviceGraph:
    """The matrices of one graph on a device, each computed once, when it is first needed. Holds no label.

    Args:
        data: x (dense or torch sparse CSR), edge_index and perhaps edge_weight, on the CPU.
        device: where the matrices go.
        num_classes: C; by :func:`count_classes` if not given.
    """

    def __init__(self, data: GraphRecord, device: torch.device, num_classes: int | None = None) -> None:
        self.x, self.edge_index, self.edge_weight = data.x, data.edge_index, data.get("edge_weight")
        self.num_nodes, self.num_features = int(data.num_nodes), int(data.x.shape[1])
        self.num_classes = count_classes(data) if num_classes is None else num_classes
        self.device = device
        self.results: dict[Any, Any] = {}
        self._topology = self.edge_index, self.num_nodes, self.edge_weight

    @once
    def features(self, form: str) -> SparseMatrix | Tensor:
        """X, ``"raw"`` or ``"row"``-normalised."""
        return feature_matrix(self.x, form, self.device)

    @cached_property
    def scipy_adjacency(self) -> sparse.csr_array:
        """A without self-loops, in float64 on the CPU."""
        return adjacency(*self._topology)

    @cached_property
    def A(self) -> SparseMatrix:  # noqa: N802
        """A without self-loops."""
        return SparseMatrix(to_torch(self.scipy_adjacency, device=self.device))

    @cached_property
    def P(self) -> SparseMatrix:  # noqa: N802
        """D̃^-½ Ã D̃^-½ with Ã = A + I (Eq. 1)."""
        return SparseMatrix(normalized_adjacency(*self._topology).to(self.device))

    @cached_property
    def random_walk(self) -> SparseMatrix:
        """D̃⁻¹ Ã: every row sums to one. It is P with D̃^½, which stands on P's diagonal as D̃⁻¹, moved across."""
        edges = self.edges
        root = edges.weight[edges.loop].double().rsqrt()
        value = edges.weight.double() / root[edges.target] * root[edges.source]
        return SparseMatrix(with_values(self.P.csr, value.float()))

    def normalized(self, normalization: Normalization) -> SparseMatrix:
        """P or D̃⁻¹ Ã."""
        return self.P if normalization == "symmetric" else self.random_walk

    @cached_property
    def edges(self) -> Edges:
        """The entries of P, self-loops among them."""
        return Edges(self.P.csr)

    @cached_property
    def edge_values(self) -> Tensor:
        """The values of Ã, [E] in the order of ``edges``. They cannot be recovered exactly from those of P."""
        return to_torch(with_loops(*self._topology)).values().to(self.device)

    @cached_property
    def neighbor_mean(self) -> SparseMatrix:
        """D⁻¹ A, without self-loops."""
        return SparseMatrix(neighbor_mean(*self._topology).to(self.device))

    @cached_property
    def symmetric(self) -> SparseMatrix:
        """D^-½ A D^-½, without self-loops."""
        A = self.scipy_adjacency
        degree = A.sum(axis=1)
        scale = sparse.diags_array((degree + (degree == 0)) ** -0.5)
        return SparseMatrix(to_torch(scale @ A @ scale, device=self.device))

    @once
    def attribute(self, k: int, threshold: float) -> Tensor:
        """A_attr (Eq. 7)."""
        return attribute_graph(self.x, self.edge_index, k, threshold, device=self.device)

    @once
    def enhanced(self, beta: float, k: int = 0, threshold: float = 1.0) -> SparseMatrix:
        """A_en (Eq. 8), on the device if it fits there, else on the CPU. Where β is 1, k and t do not matter."""
        attribute = self.attribute(k, threshold) if beta < 1 else None
        on_device = attribute is not None and fits_on(attribute, self.device)
        edges = self.edge_index.to(self.device) if on_device else self.edge_index
        A_en = enhanced_adjacency(attribute, edges, self.num_nodes, beta, self.edge_weight)
        return SparseMatrix(A_en.to(self.device) if fits_on(A_en, self.device) else A_en.cpu())

    def propagation(self, settings: Settings, plan: PlanName | None = None, columns: int = 64) -> Propagation:
        """H ↦ A_en^l H; by row blocks where A_en does not fit on the device, else by the plan given or chosen."""
        join = (settings.k, settings.threshold) if settings.beta < 1 else ()
        return self._propagation(settings.num_steps, plan, columns, settings.beta, *join)

    @once
    def _propagation(self, num_steps: int, plan: PlanName | None, columns: int, beta: float, *join: Any) -> Propagation:
        A_en = self.enhanced(beta, *join)
        return Propagation(A_en, num_steps, plan if A_en.csr.device.type == self.device.type else "blocks", columns)


@dataclass(frozen=True)
class Labelled:
    """Nodes and their classes, [m], or [R, m] where each replica has its own split."""

    index: Tensor
    target: Tensor
    weight: Tensor | None
    """None: equal weights. [R, m]: rows are padded with weight 0 where a replica has fewer nodes than another."""

    def of(self, replicas: Tensor) -> "Labelled":
        """Return the nodes of these replicas."""
        if self.index.dim() == 1:
            return self
        return Labelled(
            self.index[replicas], self.target[replicas], None if self.weight is None else self.weight[replicas]
        )


@dataclass(frozen=True)
class PreparedGraph:
    """What the runs of a batch share of a graph: features, A_en^l, perhaps D⁻¹A, and sizes."""

    X: SparseMatrix | Tensor | HopFeatures
    propagate: Propagation
    neighbors: SparseMatrix | None
    num_nodes: int
    num_classes: int


def restrict_to_labelled(
    problem: PreparedGraph, train: Labelled, val: Labelled
) -> tuple[PreparedGraph, Labelled, Labelled]:
    """Return the same problem on these nodes alone, for a model that uses no edge: no other row need be multiplied.

    The nodes must be the same for all replicas, and the features those of the nodes themselves.
    """
    if isinstance(problem.X, HopFeatures):
        raise InputError("features of neighbours need all nodes")
    nodes, place = torch.unique(torch.cat([train.index, val.index]), return_inverse=True)
    X = problem.X.rows(nodes) if isinstance(problem.X, SparseMatrix) else problem.X[nodes]
    count = torch.arange(nodes.numel() + 1, device=nodes.device)
    same = csr(count, count[:-1], torch.ones(nodes.numel(), device=nodes.device), (nodes.numel(), nodes.numel()))
    first = train.index.numel()
    return (
        PreparedGraph(X, Propagation(same, 0, plan="steps"), None, nodes.numel(), problem.num_classes),
        Labelled(place[:first], train.target, train.weight),
        Labelled(place[first:], val.target, val.weight),
    )


def prepare_graph(data: GraphRecord, settings: Settings, device: torch.device, replicas: int = 1) -> PreparedGraph:
    """Enhance a graph (Eqs. 7, 8) and lay it out for a batch of ``replicas``. No label is read but to count classes."""
    graph = DeviceGraph(data, device)
    propagate = graph.propagation(settings, columns=replicas * settings.hidden_channels)
    neighbors = graph.neighbor_mean if settings.positives == "neighbors" else None
    X = graph.features(settings.features)
    return PreparedGraph(X, propagate, neighbors, graph.num_nodes, graph.num_classes)


def feature_matrix(x: Tensor, form: str, device: torch.device) -> SparseMatrix | Tensor:
    """Return X, ``"raw"`` or ``"row"``-normalised, sparse where that is faster."""
    csr = x.to(device, torch.float32).to_sparse_csr()
    if form == "row":
        csr = row_normalized(csr)
    dense = csr.values().numel() >= SPARSE_BELOW[device.type] * csr.shape[0] * csr.shape[1]
    return csr.to_dense() if dense else SparseMatrix(csr)


def count_classes(data: GraphRecord) -> int:
    """Return C: ``data.num_classes``, or if it is missing the largest class of training and validation nodes + 1."""
    if (given := data.get("num_classes")) is not None:
        return int(given)
    known = torch.as_tensor(data.train_mask | data.val_mask).reshape(-1, data.num_nodes).any(0)
    return int(data.y[known].max()) + 1


def labelled(mask: Tensor, y: Tensor, replicas: int, name: str, device: torch.device) -> Labelled:
    """Return the nodes under a mask [n], or under one mask per replica, [R, n]. No label outside the mask is read."""
    y = y.long()  # classes are positions in a row of logits
    if mask.dim() == 1:
        index = mask.nonzero().squeeze(-1)
        return Labelled(index.to(device), y[index].to(device), None)
    if mask.shape[0] != replicas:
        raise InputError(f"{name} holds {mask.shape[0]} splits for {replicas} seeds: must hold one split per seed")
    counts = mask.sum(1)
    most = int(counts.max())
    nodes = [row.nonzero().squeeze(-1) for row in mask]
    index = torch.stack([torch.cat([row, row[:1].expand(most - row.numel())]) for row in nodes])
    weight = (torch.arange(most) < counts[:, None]) / counts[:, None]
    same = bool((counts == most).all())
    return Labelled(index.to(device), y[index].to(device), None if same else weight.to(device))
