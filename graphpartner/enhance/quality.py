"""Are the new edges better than the old ones? Same-label rate and mean cosine of both (the paper's Table 3)."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import sparse
from torch import Tensor

from graphpartner.enhance.features import read_features
from graphpartner.enhance.rule import Rule
from graphpartner.enhance.scipy_join import reach_rows
from graphpartner.graph.adjacency import adjacency, to_scipy
from graphpartner.system.errors import InputError


@dataclass(frozen=True)
class EdgeQuality:
    """Original edges beside newly connected pairs, over ordered pairs, self pairs left out.

    Rates are the share of pairs with the same label, among pairs whose two labels are known; similarities are mean
    cosines over all of them, a node without features counting 0. A mean over nothing is NaN.
    """

    original_rate: float
    original_similarity: float
    new_rate: float
    new_similarity: float
    num_original: int
    num_kept: int
    num_new: int
    num_original_judged: int
    num_new_judged: int
    alone_share: float
    """The share of nodes whose row of the attribute graph is nothing but their self pair."""


def edge_quality(
    x: Tensor, edge_index: Tensor, y: Tensor, attribute: Tensor, mask: Tensor | None = None
) -> EdgeQuality:
    """Judge the attribute graph by labels and features.

    Args:
        x: feature rows, as given to :func:`attribute_graph`.
        edge_index: the original edges; duplicates and self-loops do not count.
        y: labels, −1 where unknown.
        attribute: the result of :func:`attribute_graph`.
        mask: boolean; only pairs of nodes where it is true are judged by label, so that, for instance, no label
            outside the training set is looked at.
    """
    features = read_features(x)
    n = features.num_nodes
    if tuple(attribute.shape) != (n, n):
        raise InputError(f"attribute must have shape [{n}, {n}], got {list(attribute.shape)}")
    labels = y.detach().cpu().numpy().reshape(-1)
    if labels.size != n:
        raise InputError(f"y must hold one label a node, {n}, got {labels.size}")
    known = labels >= 0
    if mask is not None:
        chosen = mask.detach().cpu().numpy().reshape(-1)
        if chosen.dtype != np.bool_ or chosen.size != n:
            raise InputError(f"mask must hold {n} booleans, got {chosen.size} of {mask.dtype}")
        known = known & chosen

    A = adjacency(edge_index, n).tocoo()
    original_rate, original_judged = _rate(A.row, A.col, labels, known)
    kept = to_scipy(attribute)
    new = _without(kept, A)
    new_rate, new_judged = _rate(new.row, new.col, labels, known)
    others = np.diff(kept.indptr) - (kept.diagonal() != 0)
    return EdgeQuality(
        original_rate=original_rate,
        original_similarity=_mean(features.cosines(A.row, A.col)),
        new_rate=new_rate,
        new_similarity=_mean(new.data),
        num_original=int(A.nnz),
        num_kept=int(others.sum()),
        num_new=int(new.nnz),
        num_original_judged=original_judged,
        num_new_judged=new_judged,
        alone_share=_mean(others == 0),
    )


class PairRate(NamedTuple):
    """How often pairs join two nodes of one class, and how many pairs say so."""

    rate: float
    judged: int


def new_pair_rate(
    x: Tensor, edge_index: Tensor, y: Tensor, mask: Tensor, k: int = 3, threshold: float = 0.4
) -> PairRate:
    """The same-label rate of the pairs that enhancement would add between the nodes of a mask.

    Only those rows are joined, and only labels under the mask are read: cheap enough for a look before training, and
    honest if the mask holds the training nodes.
    """
    features = read_features(x)
    rule, A = Rule(features, float(threshold)), adjacency(edge_index, features.num_nodes)
    nodes = np.flatnonzero(mask.cpu().numpy() & (y.cpu().numpy() >= 0))
    near = reach_rows(A, nodes, k)[:, nodes].tocoo()
    i, j = nodes[near.row], nodes[near.col]
    keep = (i != j) & rule.keep(features.dots(i, j), i, j)
    keep &= ~np.asarray(A[i, j], dtype=bool).reshape(-1)
    labels = y.cpu().numpy()
    return PairRate(_mean((labels[i] == labels[j])[keep]), int(keep.sum()))


def _without(kept: sparse.csr_array, A: sparse.coo_array) -> sparse.coo_array:
    """The pairs of the attribute graph that are neither edges nor self pairs."""
    n = kept.shape[0]
    rows = np.repeat(np.arange(n), np.diff(kept.indptr))
    new = rows != kept.indices
    key = rows * n + kept.indices  # ascending, as rows and their columns are
    edge = A.row.astype(np.int64) * n + A.col
    at = np.minimum(np.searchsorted(key, edge), max(0, key.size - 1))
    if key.size:
        new[at[key[at] == edge]] = False
    return sparse.coo_array((kept.data[new], (rows[new], kept.indices[new])), shape=kept.shape)


def _rate(i: np.ndarray, j: np.ndarray, labels: np.ndarray, known: np.ndarray) -> tuple[float, int]:
    """The share of pairs with the same label among those with two known labels, and how many those are."""
    judged = known[i] & known[j]
    return _mean((labels[i] == labels[j])[judged]), int(judged.sum())


def _mean(values: np.ndarray) -> float:
    return float(values.mean(dtype=np.float64)) if values.size else float("nan")
