"""The join by sparse products of SciPy in float64, a block of rows at a time.

It serves where numba is not installed, and is the reference that the speed of the other kernels is compared with.
"""

from collections.abc import Iterator

import numpy as np
from scipy import sparse

from graphpartner.enhance.blocks import Block
from graphpartner.enhance.rule import Rule
from graphpartner.system.parallel import ranges

BYTES_PER_PAIR = 96  # of a row of X Xᵀ with the temporaries of its product and selection


def scipy_join(rule: Rule, A: sparse.csr_array, k: int, rows: int) -> Iterator[Block]:
    """Yield the rows of the attribute graph (Eq. 7) in blocks of ``rows``."""
    features = rule.features
    n = features.num_nodes
    X = features.matrix.astype(np.float64)
    XT = X.T.tocsr()
    for start, stop in ranges(n, rows):
        near = reach_rows(A, np.arange(start, stop), k)
        products = (X[start:stop] @ XT).multiply(near).tocoo()
        i, j = products.row + start, products.col
        keep = rule.keep(products.data, i, j) & (i != j)
        i, j, dot = i[keep], j[keep], products.data[keep]
        cosine = dot / np.sqrt(features.squared[i] * features.squared[j])
        own = np.arange(start, stop)
        entries = (np.append(cosine, np.ones(own.size)), (np.append(i, own) - start, np.append(j, own)))
        block = sparse.coo_array(entries, shape=(stop - start, n)).tocsr()
        block.sort_indices()
        yield Block(start, np.diff(block.indptr), block.indices, block.data.astype(np.float32))


def reach_rows(A: sparse.csr_array, rows: np.ndarray, k: int) -> sparse.csr_array:
    """Return the pattern of the given rows of (A + I)^k."""
    n = A.shape[0]
    near = sparse.csr_array((np.ones(rows.size), rows, np.arange(rows.size + 1)), shape=(rows.size, n))
    for _ in range(k):
        near = near + near @ A
        near.data[:] = 1.0
    return near


def rows_within(memory: int, num_nodes: int) -> int:
    """Return the number of rows per block whose products fit ``memory`` bytes."""
    return max(1, min(1024, memory // (BYTES_PER_PAIR * max(1, num_nodes))))
