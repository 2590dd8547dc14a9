"""The join of binary rows: features packed to bits, AND + popcount, decided in whole numbers.

If rows are long, one signature of 64 bytes per node rules most pairs out before the rows themselves are read. It holds
the row folded to 448 bits (feature f sets bit f mod 448), its collisions e = ‖x‖² − number of bits set, and the rank of
its size. Every shared feature sets a shared bit, and a bit stands for several shared features only where both rows have
collisions, so

    |x_i ∩ x_j| ≤ popcount(fold_i AND fold_j) + min(e_i, e_j):

an upper bound in whole numbers, from one cache line instead of a row of d/8 bytes.
"""

from collections.abc import Callable

import numpy as np
from numba import njit

from graphpartner.enhance.blocks import Block
from graphpartner.enhance.blocks_numba import append_row, room_for
from graphpartner.enhance.features import Features
from graphpartner.enhance.reach import Reach, candidates, popcount
from graphpartner.enhance.rule import Rule, least_common
from graphpartner.system.parallel import even_ranges, map_ranges

FOLD = 7  # words of folded bits; the eighth word of the signature holds rank and collisions
LINE = 8
NEVER = np.int32(2**31 - 1)  # more common features than any two rows have
U = np.uint64  # an unsigned index spares numba the test for a negative one, a third of the time of these loops


def binary_join(rule: Rule, reach: Reach, symmetric: bool) -> Callable[[int, int], Block]:
    """Return a function (start, stop) that joins these rows; if ``symmetric``, only with j > i."""
    features = rule.features
    X = features.matrix
    n = features.num_nodes
    words = max(1, -(-features.num_features // 64))
    packed = np.zeros(n * words, dtype=np.uint64)
    for _ in map_ranges(lambda start, stop: _pack(X.indptr, X.indices, start, stop, words, packed), even_ranges(n)):
        pass
    sizes, rank = np.unique(np.diff(X.indptr), return_inverse=True)
    least = least_common(sizes, rule.threshold)
    # no two rows have more in common than the smaller one has
    least[least > np.minimum.outer(sizes, sizes)] = NEVER
    least[sizes == 0] = NEVER
    least[:, sizes == 0] = NEVER
    size = np.diff(X.indptr).astype(np.float64)
    rank = rank.astype(np.uint32)
    lines = _signatures(features, rank) if _signatures_pay(features) else np.empty(0, dtype=np.uint64)

    def join(start: int, stop: int) -> Block:
        near = (reach.indptr, reach.indices, reach.bits, reach.k)
        rows = (packed, U(words), rank, least, size, lines)
        counts, columns, values = _join(start, stop, symmetric, *near, *rows)
        return Block(start, counts, columns, values)

    return join


def _signatures_pay(features: Features) -> bool:
    """Return whether rows are longer than a signature, and sparse enough that folding keeps them apart."""
    mean = features.matrix.nnz / max(1, features.num_nodes)
    return features.num_features > 2 * 64 * LINE and mean < 64 * FOLD / 4


def _signatures(features: Features, rank: np.ndarray) -> np.ndarray:
    """Return the signatures of all nodes, one after the other."""
    X = features.matrix
    lines = np.zeros(LINE * features.num_nodes, dtype=np.uint64)
    for _ in map_ranges(lambda a, b: _fold(X.indptr, X.indices, rank, a, b, lines), even_ranges(features.num_nodes)):
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
def _rule_out(row, near, found, lines, need):  # type: ignore[no-untyped-def]
    """Keep those of the first ``near`` nodes in ``found`` that may share enough with ``row``; return their number."""
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


@njit(cache=True, nogil=True)
def _pack(indptr, indices, start, stop, words, packed):  # type: ignore[no-untyped-def]
    for row in range(start, stop):
        for entry in range(indptr[row], indptr[row + 1]):
            column = indices[entry]
            packed[row * words + (column >> 6)] |= U(1) << U(column & 63)


@njit(cache=True, nogil=True)
def _join(start, stop, symmetric, indptr, indices, bits, k, packed, words, rank, least, size, lines):  # type: ignore[no-untyped-def]
    n = rank.size
    marks = np.zeros(0 if bits.shape[0] else n, dtype=np.int32)
    union = np.empty(bits.shape[1], dtype=np.uint64)
    found = np.empty(n + 1, dtype=np.uint32)
    common = np.empty(n + 1, dtype=np.int32)
    weight = np.empty(n + 1, dtype=np.float32)
    counts = np.empty(stop - start, dtype=np.int64)
    columns, values = np.empty(1024, dtype=np.int32), np.empty(1024, dtype=np.float32)
    total = 0
    for row in range(start, stop):
        after = row if symmetric else -1
        near = candidates(row, after, indptr, indices, bits, k, marks, union, found)
        need = least[rank[row]]
        if lines.size:
            near = _rule_out(row, near, found, lines, need)
        own = U(row) * words
        kept = U(0)
        for position in range(near):
            j = found[position]
            other = U(j) * words
            shared = U(0)
            for word in range(words):
                shared += popcount(packed[own + U(word)] & packed[other + U(word)])
            # always written, and kept by counting: a branch here would be guessed wrong every third time
            found[kept] = j
            common[kept] = shared
            kept += U(np.int64(shared) >= need[rank[j]])
        for position in range(kept):
            weight[position] = common[position] / np.sqrt(size[row] * size[found[position]])
        columns, values = room_for(columns, values, total, np.int64(kept) + 1)
        total = append_row(
            row, symmetric, bits.shape[0] == 0, found, weight, np.int64(kept), columns, values, total, counts, start
        )
    return counts, columns[:total].copy(), values[:total].copy()
