"""An order of the nodes that keeps neighbours close, so that what a product needs is still in the cache."""

import numpy as np
import torch
from scipy import sparse
from scipy.sparse.csgraph import reverse_cuthill_mckee
from torch import Tensor

from graphpartner.graph.adjacency import to_scipy, to_torch
from graphpartner.model.sparse import SparseMatrix

# Below this many nodes 64 columns of H stay in the cache in any order.
PAYS_FROM = 8_000


def in_close_order(matrix: SparseMatrix) -> SparseMatrix:
    """The same square matrix with rows and columns in reverse Cuthill–McKee order of its pattern.

    Products take and give rows as before: the order is kept inside.
    """
    A = to_scipy(matrix.csr)
    pattern = sparse.csr_matrix((np.ones(A.nnz, np.int8), A.indices, A.indptr), shape=A.shape)
    order = reverse_cuthill_mckee(sparse.csr_matrix(pattern + pattern.T), symmetric_mode=True).astype(np.int64)
    moved = to_torch(A[order][:, order], matrix.csr.dtype, matrix.csr.device)
    return SparseMatrix(moved, _on(order, matrix.csr))


def _on(order: np.ndarray, like: Tensor) -> Tensor:
    return torch.from_numpy(order).to(like.device)
