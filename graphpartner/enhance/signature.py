"""Binary rows of many features: one 64-byte line a node rules most pairs out before the rows themselves are read.

A line holds the row folded to 448 bits (feature f sets bit f mod 448), its collisions e = ‖x‖² − number of bits set,
and the rank of its size. Every shared feature sets a shared bit, and a bit stands for more than one shared feature only
where both rows have collisions, so

    |x_i ∩ x_j| ≤ popcount(fold_i AND fold_j) + min(e_i, e_j):

an upper bound in whole numbers, and one cache line instead of a row of d/8 bytes.
"""

import numpy as np
from numba import njit

from graphpartner.enhance.features import Features
from graphpartner.enhance.reach import popcount
from graphpartner.enhance.threads import even_ranges, in_order

FOLD = 7  # words of folded bits; the eighth word of the line holds rank and collisions
LINE = 8
U = np.uint64


def worthwhile(features: Features) -> bool:
    """Rows longer than a line, and sparse enough that folding keeps them apart."""
    mean = features.matrix.nnz / max(1, features.num_nodes)
    return features.num_features > 2 * 64 * LINE and mean < 64 * FOLD / 4


def fold(features: Features, rank: np.ndarray) -> np.ndarray:
    """The lines of all nodes, one after the other."""
    X = features.matrix
    lines = np.zeros(LINE * features.num_nodes, dtype=np.uint64)
    for _ in in_order(lambda a, b: _fold(X.indptr, X.indices, rank, a, b, lines), even_ranges(features.num_nodes)):
        pass
    return lines


@njit(cache=True, nogil=True)
def _fold(indptr, indices, rank, start, stop, lines):  # type: ignore[no-untyped-def]
    for row in range(start, stop):
        for entry in range(indptr[row], indptr[row + 1]):
            bit = indices[entry] % (64 * FOLD)
            lines[row * LINE + (bit >> 6)] |= U(1) << U(bit & 63)
        collisions = U(indptr[row + 1] - indptr[row])
        for word in range(FOLD):
            collisions -= popcount(lines[row * LINE + word])
        lines[row * LINE + FOLD] = (U(rank[row]) << U(32)) | collisions


@njit(cache=True, nogil=True)
def rule_out(row, near, found, lines, need):  # type: ignore[no-untyped-def]
    """Keep of the first ``near`` nodes in ``found`` those that may share enough with ``row``; return how many."""
    own = U(row) * U(LINE)
    a, b, c, d = lines[own], lines[own + U(1)], lines[own + U(2)], lines[own + U(3)]
    e, f, g = lines[own + U(4)], lines[own + U(5)], lines[own + U(6)]
    own_collisions = lines[own + U(7)] & U(0xFFFFFFFF)
    kept = U(0)
    for position in range(near):
        j = found[position]
        at = U(j) * U(LINE)
        shared = popcount(a & lines[at]) + popcount(b & lines[at + U(1)])
        shared += popcount(c & lines[at + U(2)]) + popcount(d & lines[at + U(3)])
        shared += popcount(e & lines[at + U(4)]) + popcount(f & lines[at + U(5)]) + popcount(g & lines[at + U(6)])
        last = lines[at + U(7)]
        most = shared + min(own_collisions, last & U(0xFFFFFFFF))
        found[kept] = j
        kept += U(np.int64(most) >= need[last >> U(32)])
    return np.int64(kept)
