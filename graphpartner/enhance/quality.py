"""The edges that enhancement adds: their quality (the paper's Table 3), and what to expect of them before training."""

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from torch import Tensor

from graphpartner.enhance.features import read_features
from graphpartner.enhance.plan import EnhancementPlan, plan_enhancement
from graphpartner.enhance.rule import Rule
from graphpartner.enhance.scipy_join import reach_rows
from graphpartner.graph.adjacency import adjacency, simple_edges, to_scipy
from graphpartner.graph.checks import check_graph
from graphpartner.graph.record import GraphRecord
from graphpartner.graph.statistics import GraphStatistics, graph_statistics
from graphpartner.system.errors import InputError
from graphpartner.system.progress import format_bytes, format_duration

FEW_PAIRS = 30  # pairs with two known labels below which a rate means little


@dataclass(frozen=True)
class EdgeQuality:
    """Original edges compared with newly connected pairs, both as ordered pairs without self pairs.

    Rates are the share of pairs with the same label, among the pairs judged, whose two labels are known. Similarities
    are mean cosines over all pairs, 0 where a node has no features. A mean over no pair is NaN.
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
    """Share of nodes whose row of the attribute graph is only their self pair."""


def edge_quality(
    x: Tensor, edge_index: Tensor, y: Tensor, attribute: Tensor, mask: Tensor | None = None
) -> EdgeQuality:
    """Compare the pairs of an attribute graph with the original edges by labels and features (Table 3).

    Args:
        x: feature rows, as given to :func:`attribute_graph`.
        edge_index: the original edges; duplicates and self-loops are ignored.
        y: labels, −1 where unknown.
        attribute: the result of :func:`attribute_graph`.
        mask: boolean; only labels of nodes where it is true are used, for instance those of training nodes.
    """
    features = read_features(x)
    n = features.num_nodes
    if tuple(attribute.shape) != (n, n):
        raise InputError(f"attribute has shape {list(attribute.shape)}: must be [{n}, {n}]")
    labels = y.detach().cpu().numpy().reshape(-1)
    if labels.size != n:
        raise InputError(f"y holds {labels.size} labels for {n} nodes: must hold one label per node")
    known = labels >= 0
    if mask is not None:
        chosen = mask.detach().cpu().numpy().reshape(-1)
        if chosen.dtype != np.bool_ or chosen.size != n:
            raise InputError(f"mask holds {chosen.size} values of type {mask.dtype}: must hold {n} booleans")
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
    """Share of pairs that join two nodes of one class, and the number of pairs judged."""

    rate: float
    judged: int


def new_pair_rate(
    x: Tensor, edge_index: Tensor, y: Tensor, mask: Tensor, k: int = 3, threshold: float = 0.4
) -> PairRate:
    """Return the same-label rate of the pairs that enhancement would add between the nodes of a mask.

    Only their rows are joined and only their labels are read: this is cheap before training, and unbiased if the mask
    holds the training nodes.
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
    """Return the pairs of the attribute graph that are neither edges nor self pairs."""
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
    """Return the share of pairs with the same label among those with two known labels, and their number."""
    judged = known[i] & known[j]
    return _mean((labels[i] == labels[j])[judged]), int(judged.sum())


def _mean(values: np.ndarray) -> float:
    return float(values.mean(dtype=np.float64)) if values.size else float("nan")


@dataclass(frozen=True)
class Inspection:
    """A graph before training, as :func:`inspect_graph` sees it: of labels, only those of training nodes are used."""

    k: int
    threshold: float
    statistics: GraphStatistics
    homophily: float | None
    """Share of edges between training nodes that join the same class; None without such an edge."""
    homophily_edges: int
    """Number of those edges."""
    plan: EnhancementPlan
    new_pairs: PairRate
    """Same-label rate of the pairs that enhancement would add, among training nodes."""
    chance: float
    """Same-label rate of random pairs of training nodes."""
    advice: list[str]

    def facts(self) -> list[tuple[str, str]]:
        """Return names and values as text."""
        counts, plan = self.statistics, self.plan
        density = f"{counts.feature_density:.2%} of them not zero, {counts.num_empty:,} nodes with none"
        homophily = "no edge joins two training nodes"
        if self.homophily is not None:
            homophily = f"{self.homophily:.0%} of the {self.homophily_edges:,} edges between training nodes"
        return [
            ("nodes", f"{counts.num_nodes:,}, {counts.num_isolated:,} without an edge"),
            ("edges", f"{counts.num_edges:,} undirected"),
            ("features", f"{counts.num_features:,}, {density}"),
            ("classes", f"{counts.num_classes}, {counts.num_unlabelled:,} nodes without a label"),
            ("homophily", homophily),
            ("enhancement", f"{plan.pairs:,.0f} ± {plan.pairs_error:,.0f} pairs within {self.k} hops"),
            ("  keeps", f"{plan.kept:,.0f} ± {plan.kept_error:,.0f} of them, of cosine {self.threshold:g} or more"),
            ("  size", f"{format_bytes(plan.output_bytes)}, working memory {format_bytes(plan.working_bytes)}"),
            ("  time", f"about {format_duration(plan.seconds)}"),
            ("  kernel", f"{plan.kernel}: {plan.choice.why}"),
        ]

    def asdict(self) -> dict[str, Any]:
        """Return a dictionary for a JSON file, in which a rate of no pairs is None: JSON has no NaN."""
        rate = self.new_pairs.rate if self.new_pairs.judged else None
        return asdict(self) | {"new_pairs": {"rate": rate, "judged": self.new_pairs.judged}}


def inspect_graph(data: GraphRecord, train_mask: Tensor, k: int = 3, threshold: float = 0.4) -> Inspection:
    """Return the statistics of a graph, the plan of its enhancement, and advice.

    Args:
        data: the graph; of ``data.y`` only training labels are used for rates.
        train_mask: [n], the training nodes.
        k: maximum number of hops of the enhancement.
        threshold: its minimum cosine.
    """
    check_graph(data, require=("y",))
    statistics = graph_statistics(data, train_mask)
    plan = plan_enhancement(data.x, data.edge_index, k, threshold)
    pairs = new_pair_rate(data.x, data.edge_index, data.y, train_mask, k, threshold)
    share = data.y[train_mask].bincount().double() / int(train_mask.sum())
    chance = float((share**2).sum())
    source, target = simple_edges(data.edge_index, data.num_nodes)
    return Inspection(
        k=k,
        threshold=threshold,
        statistics=statistics,
        homophily=statistics.edge_homophily,
        homophily_edges=int((train_mask[source] & train_mask[target]).sum()) // 2,
        plan=plan,
        new_pairs=pairs,
        chance=chance,
        advice=advise(statistics, plan, pairs, chance),
    )


def advise(statistics: GraphStatistics, plan: EnhancementPlan, pairs: PairRate, chance: float) -> list[str]:
    """Return sentences about what to expect and which settings follow."""
    advice = []
    if statistics.num_isolated:
        advice.append(
            f"{_no(statistics.num_isolated, 'edge')}: there both branches see nothing but the node's own features, "
            "and neither depth nor enhancement changes that."
        )
    if statistics.num_empty:
        advice.append(
            f"{_no(statistics.num_empty, 'features')}: only neighbours can tell a class there, and where there are "
            "none, nothing can."
        )
    size = f"Enhancement would keep about {plan.kept:,.0f} pairs ({format_bytes(plan.output_bytes)})"
    if pairs.judged < FEW_PAIRS:
        advice.append(
            f"{size}; only {pairs.judged} new ones join two training nodes, too few to judge them by label: "
            "compare beta = 1 (off) with beta below 1 on validation accuracy."
        )
    elif pairs.rate < 0.5:
        advice.append(
            f"{size}, and would add mostly wrong-label edges: of {pairs.judged:,} new pairs between training nodes "
            f"only {pairs.rate:.0%} join the same class (by chance {chance:.0%}); set beta to 1, or close to it."
        )
    else:
        advice.append(
            f"{size}; of {pairs.judged:,} new pairs between training nodes {pairs.rate:.0%} join the same class "
            f"(by chance {chance:.0%}): beta below 1 should help, or at least not hurt."
        )
    if plan.kept > 20 * 2 * max(1, statistics.num_edges):
        advice.append(
            f"That is {plan.kept / (2 * max(1, statistics.num_edges)):,.0f} times the edges there are, and every "
            "propagation step pays for it: raise threshold, or set beta to 1."
        )
    return advice


def _no(count: int, what: str) -> str:
    return f"1 node has no {what}" if count == 1 else f"{count:,} nodes have no {what}"
