"""The three eigenvalues of L̃ = I − P that bound an energy: λ₀, λ₁ and λ_max.

L̃ has one eigenvalue zero for each connected component, isolated nodes among them, and no other: components are
counted on the graph, so "non-zero" needs no tolerance. Every eigenvalue lies in [0, 2).
"""

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph
from scipy.sparse import linalg as sparse_linalg
from torch import Tensor

from graphpartner.errors import InputError
from graphpartner.graph.adjacency import adjacency, simple_edges
from graphpartner.smoothness.checks import check_edges

DENSE_UP_TO = 5_000  # nodes


@dataclass(frozen=True)
class LaplacianExtremes:
    """Eigenvalues of L̃ = I − D̃^-½ Ã D̃^-½.

    A value that could not be found is named in ``unknown`` and stands at the end of its range that keeps every bound
    of `graphpartner.smoothness.bounds` valid, if weak: λ₀ = 0, λ₁ = 1, λ_max = 2.
    """

    lambda_0: float  # the smallest above zero
    lambda_1: float  # of those above zero, the one closest to 1
    lambda_max: float
    unknown: tuple[str, ...] = ()

    @property
    def q(self) -> float:
        """max(|1 − λ₀|, |1 − λ_max|): by how much one step shrinks, at most, what is not yet smooth."""
        return max(abs(1.0 - self.lambda_0), abs(1.0 - self.lambda_max))


def laplacian_extremes(edge_index: Tensor, num_nodes: int) -> LaplacianExtremes:
    """λ₀, λ₁ and λ_max of the augmented normalised Laplacian of an undirected graph.

    Up to 5,000 nodes all eigenvalues are computed. Above, λ₀ and λ_max come from Lanczos iterations. λ₁ lies inside
    the spectrum, out of their reach, but it is exactly 1 as soon as two neighbours have all other neighbours in
    common (two equal rows make P singular), which is looked for; without such a pair it is reported as unknown.

    Args:
        edge_index: the edges [2, E]; directions, duplicates and self-loops are ignored.
        num_nodes: n.
    """
    edges = simple_edges(check_edges(edge_index, num_nodes), num_nodes)
    if edges.shape[1] == 0:
        raise InputError("edge_index has no edge between two nodes: the Laplacian is zero, without other eigenvalues.")
    A = sparse.csr_array(adjacency(edges, num_nodes) + sparse.eye_array(num_nodes))
    root = np.sqrt(A.sum(axis=1))
    P = sparse.csr_array(sparse.diags_array(1.0 / root) @ A @ sparse.diags_array(1.0 / root))
    num_components, component = csgraph.connected_components(A, directed=False)
    if num_nodes <= DENSE_UP_TO:
        found = 1.0 - np.linalg.eigvalsh(P.toarray())[::-1][num_components:]
        closest = 1.0 if _has_twins(A) else float(found[np.abs(1.0 - found).argmin()])
        return LaplacianExtremes(float(found[0]), closest, float(found[-1]))
    smooth = sparse.csr_array((root, (np.arange(num_nodes), component)))  # the eigenvectors of eigenvalue zero
    smooth = smooth @ sparse.diags_array(1.0 / sparse_linalg.norm(smooth, axis=0))
    largest, smallest = _second_largest(P, smooth), _one_end(P, "SA")
    extremes = {
        "lambda_0": (None if largest is None else 1.0 - largest, 0.0),
        "lambda_1": (1.0 if _has_twins(A) else None, 1.0),
        "lambda_max": (None if smallest is None else 1.0 - smallest, 2.0),
    }
    values = {name: safe if value is None else value for name, (value, safe) in extremes.items()}
    return LaplacianExtremes(**values, unknown=tuple(name for name, (value, _) in extremes.items() if value is None))


def _second_largest(P: sparse.csr_array, smooth: sparse.csr_array) -> float | None:
    """The largest eigenvalue of P below 1.

    With the smooth vectors taken out they have eigenvalue 0. The others of P never are all negative (their sum is
    Σ 1/d̃_i less the number of components, and no component has a d̃ above its size), so 0 hides none of interest.
    """
    deflated = sparse_linalg.LinearOperator(P.shape, matvec=lambda x: P @ x - smooth @ (smooth.T @ x), dtype=np.float64)
    return _one_end(deflated, "LA")


def _one_end(P: sparse.csr_array | sparse_linalg.LinearOperator, which: str) -> float | None:
    start = np.random.default_rng(0).standard_normal(P.shape[0])
    try:
        found = sparse_linalg.eigsh(P, k=1, which=which, v0=start, ncv=64, tol=1e-9, return_eigenvectors=False)
    except sparse_linalg.ArpackNoConvergence:
        return None
    return float(found[0])


def _has_twins(A: sparse.csr_array) -> bool:
    """Whether two rows of A + I are equal: random sums find candidates, the rows themselves decide."""
    key = np.random.default_rng(0).integers(0, 1 << 62, A.shape[0], dtype=np.uint64)
    digest = np.add.reduceat(key[A.indices], A.indptr[:-1])
    order = np.argsort(digest, kind="stable")
    same = np.flatnonzero(digest[order[1:]] == digest[order[:-1]])
    rows = (np.sort(A.indices[A.indptr[i] : A.indptr[i + 1]]) for k in same for i in order[k : k + 2])
    return any(np.array_equal(first, second) for first, second in zip(rows, rows, strict=True))
