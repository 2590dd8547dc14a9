"""A benchmark graph as NumPy arrays in one canonical form, whatever file it came from.

Two files hold the same graph exactly if their canonical arrays have the same digest: a file that was only compressed
again still passes, and one in which a single label was changed does not.
"""

import hashlib
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from graphpartner.graph.adjacency import simple_edges
from graphpartner.graph.record import GraphRecord

OUT_OF_SPLIT, TRAIN, VAL, TEST = 0, 1, 2, 3


@dataclass(frozen=True)
class GraphArrays:
    """Features, edges, labels and, where published, a split; made by :func:`canonical`.

    Attributes:
        features: [n, d] float32, CSR, columns sorted within each row, no stored zeros.
        edges: [2, E] int64, both directions, as :func:`~graphpartner.graph.adjacency.simple_edges` returns them.
        labels: [n] int64, −1 for a node without a label.
        split: [n] int8, each OUT_OF_SPLIT, TRAIN, VAL or TEST; None where no split was published.
    """

    features: sparse.csr_array
    edges: NDArray[np.int64]
    labels: NDArray[np.int64]
    split: NDArray[np.int8] | None = None

    def digest(self) -> str:
        """Return the sha256 of all arrays with their names and shapes, as little-endian bytes of fixed widths."""
        arrays: dict[str, tuple[str, ArrayLike]] = {
            "shape": ("<i8", self.features.shape),
            "indptr": ("<i8", self.features.indptr),
            "indices": ("<i8", self.features.indices),
            "values": ("<f4", self.features.data),
            "edges": ("<i8", self.edges),
            "labels": ("<i8", self.labels),
        }
        if self.split is not None:
            arrays["split"] = ("<i1", self.split)
        digest = hashlib.sha256()
        for name, (dtype, values) in arrays.items():
            array = np.ascontiguousarray(values, dtype=dtype)
            digest.update(f"{name} {dtype} {array.shape}\n".encode())
            digest.update(array.data)
        return digest.hexdigest()

    def to_record(self) -> GraphRecord:
        """Return the graph as tensors: dense ``x``, ``edge_index``, ``y``, and three masks if there is a split."""
        data = GraphRecord(
            x=torch.from_numpy(self.features.toarray()),
            edge_index=torch.tensor(self.edges),
            y=torch.tensor(self.labels),
        )
        if self.split is not None:
            split = torch.tensor(self.split)
            data.train_mask, data.val_mask, data.test_mask = split == TRAIN, split == VAL, split == TEST
        return data


def canonical(
    features: sparse.sparray, edges: ArrayLike, labels: ArrayLike, split: ArrayLike | None = None
) -> GraphArrays:
    """Bring a graph into its canonical form: edges undirected, sorted and simple, features without stored zeros.

    Args:
        features: [n, d], any SciPy sparse array.
        edges: [2, E], source and target, in one or both directions.
        labels: [n], −1 for a node without a label.
        split: [n], or None.
    """
    features = sparse.csr_array(features, dtype=np.float32, copy=True)
    features.sum_duplicates()
    features.eliminate_zeros()
    edge_index = torch.from_numpy(np.array(edges, dtype=np.int64))
    return GraphArrays(
        features=features,
        edges=simple_edges(edge_index, features.shape[0]).numpy(),
        labels=np.array(labels, dtype=np.int64),
        split=None if split is None else np.array(split, dtype=np.int8),
    )
