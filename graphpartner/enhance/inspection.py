"""A look at a graph before training: what it counts, what enhancement would cost, and plain advice."""

import dataclasses
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from graphpartner.enhance.plan import JoinPlan, plan_join
from graphpartner.enhance.quality import PairRate, new_pair_rate
from graphpartner.graph.adjacency import simple_edges
from graphpartner.graph.checks import check_graph
from graphpartner.graph.record import GraphRecord
from graphpartner.graph.statistics import GraphStatistics, graph_statistics
from graphpartner.system.progress import format_bytes, format_duration

FEW_PAIRS = 30  # fewer judged pairs say too little about a rate


@dataclass(frozen=True)
class Inspection:
    """What :func:`inspect_graph` found; labels outside the training nodes were not looked at."""

    k: int
    threshold: float
    statistics: GraphStatistics
    homophily: float | None
    """Share of edges between training nodes that join the same class; None without such an edge."""
    homophily_edges: int
    """How many edges that share is taken of."""
    plan: JoinPlan
    new_pairs: PairRate
    """Same-label rate of the pairs that enhancement would add, among training nodes."""
    chance: float
    """The rate that random pairs of training nodes would have."""
    advice: list[str]

    def facts(self) -> list[tuple[str, str]]:
        """Names and values for a person."""
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
        """For a JSON file, which knows no NaN: a rate of no pairs is None."""
        rate = self.new_pairs.rate if self.new_pairs.judged else None
        return dataclasses.asdict(self) | {"new_pairs": {"rate": rate, "judged": self.new_pairs.judged}}


def inspect_graph(data: GraphRecord, train_mask: Tensor, k: int = 3, threshold: float = 0.4) -> Inspection:
    """Look at a graph: statistics, the plan of its enhancement, and advice.

    Args:
        data: the graph; of ``data.y`` only training labels are used for rates.
        train_mask: [n], the training nodes.
        k: hops of the enhancement.
        threshold: its least cosine.
    """
    check_graph(data, require=("y",))
    statistics = graph_statistics(data, train_mask)
    plan = plan_join(data.x, data.edge_index, k, threshold)
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


def advise(statistics: GraphStatistics, plan: JoinPlan, pairs: PairRate, chance: float) -> list[str]:
    """Plain sentences about what to expect, and which settings follow."""
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
