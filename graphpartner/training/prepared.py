"""What all replicas of a batch share: the graph as matrices, and who is labelled."""

from dataclasses import dataclass

import torch
from torch import Tensor

from graphpartner.enhance.join import attribute_graph
from graphpartner.enhance.mixture import enhanced_adjacency
from graphpartner.graph.adjacency import csr, neighbor_mean, row_normalized
from graphpartner.graph.record import GraphRecord
from graphpartner.kernels.hop_features import HopFeatures
from graphpartner.kernels.spmm import SparseMatrix
from graphpartner.model.propagation import Propagation
from graphpartner.system.device import fits_on
from graphpartner.system.errors import InputError
from graphpartner.training.settings import Settings

# Features with fewer non-zeros than this share are multiplied as a sparse matrix. On a CPU both ways take as long at
# about this share; a GPU prefers it for longer, since there every replica would write down a dropped copy.
SPARSE_BELOW = {"cpu": 0.35, "cuda": 0.6}


@dataclass(frozen=True)
class Labelled:
    """Some nodes and their classes, [m], or [R, m] where each replica has its own split."""

    index: Tensor
    target: Tensor
    weight: Tensor | None
    """None: all alike. [R, m]: rows are filled up with weight 0 where a replica has fewer nodes than another."""

    def of(self, replicas: Tensor) -> "Labelled":
        """The rows of these replicas."""
        if self.index.dim() == 1:
            return self
        return Labelled(
            self.index[replicas], self.target[replicas], None if self.weight is None else self.weight[replicas]
        )


@dataclass(frozen=True)
class PreparedGraph:
    """A graph, ready for training on a device."""

    X: SparseMatrix | Tensor | HopFeatures
    propagate: Propagation
    neighbors: SparseMatrix | None
    num_nodes: int
    num_classes: int


def restrict_to_labelled(
    problem: PreparedGraph, train: Labelled, val: Labelled
) -> tuple[PreparedGraph, Labelled, Labelled]:
    """The same for these nodes only, for a model that looks at no edge: no other row need be multiplied.

    Args:
        problem: with features of the nodes themselves.
        train: nodes to learn from, the same for all replicas.
        val: nodes to judge by, likewise.
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
    """Enhance the graph (Eqs. 7, 8) and lay out its matrices for so many replicas at a time. Knows no label."""
    n = data.num_nodes
    attribute = None
    if settings.beta < 1:
        attribute = attribute_graph(data.x, data.edge_index, settings.k, settings.threshold, device=device)
    mixed_there = attribute is not None and fits_on(attribute, device)
    edges = data.edge_index.to(device) if mixed_there else data.edge_index
    A_en = enhanced_adjacency(attribute, edges, n, settings.beta, data.get("edge_weight"))
    neighbors = None
    if settings.positives == "neighbors":
        neighbors = SparseMatrix(neighbor_mean(data.edge_index, n, data.get("edge_weight"))).to(device)
    columns = replicas * settings.hidden_channels
    if fits_on(A_en, device):
        propagate = Propagation(A_en.to(device), settings.num_steps, columns=columns)
    else:
        propagate = Propagation(A_en.cpu(), settings.num_steps, plan="blocks")
    return PreparedGraph(
        feature_matrix(data.x, settings.features, device), propagate, neighbors, n, count_classes(data)
    )


def feature_matrix(x: Tensor, form: str, device: torch.device) -> SparseMatrix | Tensor:
    """X in the form the settings ask for, sparse where that is faster."""
    csr = x.to(device, torch.float32).to_sparse_csr()
    if form == "row":
        csr = row_normalized(csr)
    dense = csr.values().numel() >= SPARSE_BELOW[device.type] * csr.shape[0] * csr.shape[1]
    return csr.to_dense() if dense else SparseMatrix(csr)


def count_classes(data: GraphRecord) -> int:
    """C: what the graph says (``data.num_classes``), or one more than the largest class seen in training."""
    told = data.get("num_classes")
    if told is not None:
        return int(told)
    known = torch.as_tensor(data.train_mask | data.val_mask).reshape(-1, data.num_nodes).any(0)
    return int(data.y[known].max()) + 1


def labelled(mask: Tensor, y: Tensor, replicas: int, name: str, device: torch.device) -> Labelled:
    """The nodes under a mask [n], or under one mask a replica, [R, n]. No label outside the mask is read."""
    y = y.long()  # classes are places in a row of logits
    if mask.dim() == 1:
        index = mask.nonzero().squeeze(-1)
        return Labelled(index.to(device), y[index].to(device), None)
    if mask.shape[0] != replicas:
        raise InputError(f"{name} holds {mask.shape[0]} splits for {replicas} seeds: must hold one split a seed")
    counts = mask.sum(1)
    most = int(counts.max())
    index = torch.stack([_filled(row.nonzero().squeeze(-1), most) for row in mask])
    weight = (torch.arange(most) < counts[:, None]) / counts[:, None]
    same = bool((counts == most).all())
    return Labelled(index.to(device), y[index].to(device), None if same else weight.to(device))


def _filled(index: Tensor, length: int) -> Tensor:
    return torch.cat([index, index[:1].expand(length - index.numel())])
