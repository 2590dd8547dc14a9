"""Who should talk to whom? The k-hop cosine join, the enhanced propagation matrix, edge quality."""

from graphpartner.enhance.join import attribute_graph
from graphpartner.enhance.mixture import enhanced_adjacency
from graphpartner.enhance.plan import JoinPlan, plan_join
from graphpartner.enhance.quality import EdgeQuality, edge_quality
from graphpartner.enhance.transform import Enhance

__all__ = [
    "EdgeQuality",
    "Enhance",
    "JoinPlan",
    "attribute_graph",
    "edge_quality",
    "enhanced_adjacency",
    "plan_join",
]
