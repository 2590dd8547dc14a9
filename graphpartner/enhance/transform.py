"""Graph enhancement as a PyTorch Geometric transform."""

from torch_geometric.data import Data
from torch_geometric.transforms import BaseTransform

from graphpartner.enhance.join import attribute_graph
from graphpartner.enhance.mixture import check_beta, enhanced_adjacency
from graphpartner.enhance.plan import check_arguments


class Enhance(BaseTransform):  # type: ignore[misc]
    r"""Set ``data.adj_t`` to the enhanced propagation matrix A_en (Eq. 8), as a torch sparse CSR tensor.

    Rows receive, so one step of propagation is ``data.adj_t @ H``. If ``data.edge_weight`` is present, it weighs the
    topology. With ``beta=1`` A_en is the normalised adjacency and no join is computed.

    Args:
        k: maximum number of hops (Eq. 7).
        threshold: minimum cosine (Eq. 7).
        beta: weight of the topology, 0 ≤ β ≤ 1 (Eq. 8).
        memory: bytes of working memory for the join; by default a quarter of what is free.
    """

    def __init__(self, k: int = 3, threshold: float = 0.4, beta: float = 0.7, memory: int | None = None) -> None:
        check_arguments(k, threshold, None)
        check_beta(beta)
        self.k = k
        self.threshold = threshold
        self.beta = beta
        self.memory = memory

    def forward(self, data: Data) -> Data:
        """Add ``adj_t`` to a shallow copy made by BaseTransform: the caller's data does not change."""
        attribute = None
        if self.beta != 1:
            attribute = attribute_graph(data.x, data.edge_index, self.k, self.threshold, memory=self.memory)
        edge_weight = data.edge_weight if "edge_weight" in data else None
        data.adj_t = enhanced_adjacency(attribute, data.edge_index, data.num_nodes, self.beta, edge_weight)
        return data

    def __repr__(self) -> str:
        return f"{type(self).__name__}(k={self.k}, threshold={self.threshold}, beta={self.beta})"
