"""Baselines without features: the majority class, and label propagation along the edges."""

from collections.abc import Sequence

import torch
from torch import Tensor

from graphpartner.graph.adjacency import normalized_adjacency
from graphpartner.kernels.spmm import spmm_power

STEPS = 50
ALPHAS = (0.5, 0.8, 0.95)
TINY = 1e-12
RESERVE = 0.2  # by the likelihood of held-out labels on the six graphs; half or twice as much is as good


def majority_class(y: Tensor, train: Tensor, num_classes: int) -> Tensor:
    """Return the class shares of the training nodes, [C]."""
    return torch.bincount(y[train], minlength=num_classes).float() / max(1, train.numel())


class LabelPropagation:
    r"""Label propagation along the edges, with known labels fixed.

    .. math::
        F \leftarrow \alpha P F + (1 - \alpha) Y, \qquad F_i \leftarrow Y_i \text{ for every training node } i

    with P the normalised adjacency (Eq. 1). A class whose labels do not reach a node is not impossible, and few labels
    count for less: with :math:`\pi` the class shares in training,

    .. math::
        p_i = \frac{F_i + \kappa \pi}{\sum_c F_{ic} + \kappa},

    where κ is ``RESERVE`` times the share of training nodes times the geometric mean of :math:`\sum_c F_{ic}` over the
    other nodes that labels reach. With few labels, this sum fades so steeply with distance that it does not measure
    confidence, and κ vanishes.

    Args:
        edge_index: edges, sources above targets.
        num_nodes: number of nodes.
        edge_weight: weights of the edges.
        steps: number of iterations.
    """

    def __init__(
        self, edge_index: Tensor, num_nodes: int, edge_weight: Tensor | None = None, steps: int = STEPS
    ) -> None:
        self.P = normalized_adjacency(edge_index, num_nodes, edge_weight)
        self.steps = steps

    def __call__(self, y: Tensor, train: Tensor, num_classes: int, alpha: float = 0.8) -> Tensor:
        """Return probabilities [n, C] from the labels of the training nodes, given by their index."""
        known = torch.zeros(y.numel(), num_classes)
        known[train, y[train]] = 1
        spread = known
        for _ in range(self.steps):
            spread = alpha * spmm_power(self.P, spread, 1) + (1 - alpha) * known
            spread[train] = known[train]
        total = spread.sum(1, keepdim=True)
        elsewhere = torch.ones(y.numel(), dtype=torch.bool)
        elsewhere[train] = False
        reached = total[elsewhere].squeeze(1)
        reached = reached[reached > TINY]
        share = train.numel() / max(1, y.numel())
        reserve = RESERVE * share * float(reached.log().mean().exp()) if reached.numel() else 1.0
        probabilities = (spread + reserve * majority_class(y, train, num_classes)) / (total + reserve)
        probabilities[train] = known[train]
        return probabilities

    def choose(
        self, y: Tensor, train: Tensor, val: Tensor, num_classes: int, alphas: Sequence[float] = ALPHAS
    ) -> tuple[float, Tensor]:
        """Return the α with the highest validation accuracy, the smaller one on a tie, and its probabilities."""
        results = [(alpha, self(y, train, num_classes, alpha)) for alpha in alphas]
        right = [int((probabilities[val].argmax(1) == y[val]).sum()) for _, probabilities in results]
        return results[right.index(max(right))]
