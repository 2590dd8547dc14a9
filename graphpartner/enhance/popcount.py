"""The join of binary rows: features packed to bits, AND + popcount, decided in whole numbers."""

from collections.abc import Callable

import numpy as np
from numba import njit

from graphpartner.enhance.blocks import Block
from graphpartner.enhance.features import Features
from graphpartner.enhance.grow import append_row, room_for
from graphpartner.enhance.reach import Reach, candidates, popcount
from graphpartner.enhance.ties import least_common

NEVER = np.int32(2**31 - 1)
MOST_SIZES = 4096  # a table of this many row sizes squared takes 64 MB


def row_sizes(features: Features) -> np.ndarray:
    """The different numbers of features that rows have: the popcount kernel holds a table over pairs of them."""
    return np.unique(np.diff(features.matrix.indptr))


def prepare(features: Features, threshold: float, reach: Reach, symmetric: bool) -> Callable[[int, int], Block]:
    """The join of rows start…stop as a function; only j > i where the pattern is symmetric."""
    X = features.matrix
    n = features.num_nodes
    packed = np.zeros((n, max(1, -(-features.num_features // 64))), dtype=np.uint64)
    _pack(X.indptr, X.indices, packed)
    sizes, rank = np.unique(np.diff(X.indptr), return_inverse=True)
    least = least_common(sizes, threshold)
    # no two rows have more in common than the smaller of them holds
    least[least > np.minimum.outer(sizes, sizes)] = NEVER
    least[sizes == 0] = NEVER
    least[:, sizes == 0] = NEVER
    size = np.diff(X.indptr).astype(np.float64)
    rank = rank.astype(np.int32)

    def join(start: int, stop: int) -> Block:
        counts, columns, values = _join(
            start, stop, symmetric, reach.indptr, reach.indices, reach.bits, reach.k, packed, rank, least, size
        )
        return Block(start, counts, columns, values)

    return join


@njit(cache=True, nogil=True)
def _pack(indptr, indices, packed):  # type: ignore[no-untyped-def]
    one = np.uint64(1)
    for row in range(packed.shape[0]):
        for entry in range(indptr[row], indptr[row + 1]):
            column = indices[entry]
            packed[row, column >> 6] |= one << np.uint64(column & 63)


@njit(cache=True, nogil=True)
def _join(start, stop, symmetric, indptr, indices, bits, k, packed, rank, least, size):  # type: ignore[no-untyped-def]
    n, words = packed.shape
    marks = np.zeros(0 if bits.shape[0] else n, dtype=np.int32)
    union = np.empty(bits.shape[1], dtype=np.uint64)
    found = np.empty(n + 1, dtype=np.int32)
    weight = np.empty(n + 1, dtype=np.float32)
    counts = np.empty(stop - start, dtype=np.int64)
    columns, values = np.empty(1024, dtype=np.int32), np.empty(1024, dtype=np.float32)
    total = 0
    for row in range(start, stop):
        after = row if symmetric else -1
        near = candidates(row, after, indptr, indices, bits, k, marks, union, found)
        own = packed[row]
        need = least[rank[row]]
        kept = 0
        for position in range(near):
            j = found[position]
            enough = need[rank[j]]
            if enough == NEVER:
                continue
            other = packed[j]
            common = np.uint64(0)
            for word in range(words):
                common += popcount(own[word] & other[word])
            if np.int64(common) >= enough:
                found[kept] = j
                weight[kept] = np.float64(common) / np.sqrt(size[row] * size[j])
                kept += 1
        columns, values = room_for(columns, values, total, kept + 1)
        total = append_row(
            row, symmetric, bits.shape[0] == 0, found, weight, kept, columns, values, total, counts, start
        )
    return counts, columns[:total].copy(), values[:total].copy()
