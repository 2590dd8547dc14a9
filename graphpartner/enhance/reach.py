"""The nodes within k hops: the pattern of (A + I)^k, rows receiving, one row at a time and never as a whole.

There are two ways, both in numba. *Bitsets* hold the (k − 1)-hop set of every node as bits, n²/8 bytes, and a row of
the last hop is the union of its neighbours' sets: best where most pairs are near (Photo, Computers). *Walks* search
breadth first from each node with one mark per node: best where neighbourhoods are small, or n²/8 bytes are too many.
"""

from dataclasses import dataclass

import numpy as np
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic
from scipy import sparse

from graphpartner.system.parallel import even_ranges, map_ranges

WORD = 64


@intrinsic
def popcount(typing_context, word):  # type: ignore[no-untyped-def]
    """Return the number of ones in a 64-bit word: one machine instruction."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


@intrinsic
def trailing_zeros(typing_context, word):  # type: ignore[no-untyped-def]
    """Return the position of the lowest one in a 64-bit word that is not zero."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.cttz(arguments[0], cgutils.true_bit)

    return types.uint64(types.uint64), generate


@dataclass(frozen=True)
class Reach:
    """The edges, and the (k − 1)-hop sets as bits; ``bits`` has no rows if walks are used."""

    indptr: np.ndarray
    indices: np.ndarray
    bits: np.ndarray
    k: int


def build_reach(A: sparse.csr_array, k: int, bitsets: bool) -> Reach:
    """Prepare the search of nodes within k hops over A; with bitsets, the (k − 1)-hop sets are computed here."""
    indptr, indices = A.indptr.astype(np.int64), A.indices.astype(np.uint32)
    n = indptr.size - 1
    if not bitsets or k < 2:
        return Reach(indptr, indices, np.empty((0, 0), dtype=np.uint64), k)
    bits = np.zeros((n, -(-n // WORD)), dtype=np.uint64)
    for _ in map_ranges(lambda start, stop: _two_hops(indptr, indices, k > 2, start, stop, bits), even_ranges(n)):
        pass
    for _ in range(3, k):
        wider = np.empty_like(bits)
        source = bits
        for _ in map_ranges(lambda start, stop: _widen(indptr, indices, source, start, stop, wider), even_ranges(n)):  # noqa: B023
            pass
        bits = wider
    return Reach(indptr, indices, bits, k)


@njit(cache=True, nogil=True)
def _two_hops(indptr, indices, two, start, stop, bits):  # type: ignore[no-untyped-def]
    """Set the bits of each row itself, its neighbours and, if ``two``, their neighbours."""
    one = np.uint64(1)
    for row in range(start, stop):
        bits[row, row >> 6] |= one << np.uint64(row & 63)
        for edge in range(indptr[row], indptr[row + 1]):
            near = indices[edge]
            bits[row, near >> 6] |= one << np.uint64(near & 63)
            if two:
                for next_edge in range(indptr[near], indptr[near + 1]):
                    far = indices[next_edge]
                    bits[row, far >> 6] |= one << np.uint64(far & 63)


@njit(cache=True, nogil=True)
def _widen(indptr, indices, bits, start, stop, wider):  # type: ignore[no-untyped-def]
    """Add one hop: the union of a row's own set and those of its neighbours."""
    for row in range(start, stop):
        wider[row] = bits[row]
        for edge in range(indptr[row], indptr[row + 1]):
            near = bits[indices[edge]]
            for word in range(near.size):
                wider[row, word] |= near[word]


@njit(cache=True, nogil=True)
def candidates(row, after, indptr, indices, bits, k, marks, union, found):  # type: ignore[no-untyped-def]
    """Write the nodes j > ``after``, j ≠ row, that reach ``row`` within k hops to ``found``; return their number.

    ``marks`` (n integers, none equal to row + 1 before) is the scratch of walks, ``union`` (n/64 words) of bitsets.
    Bitsets return the nodes in order, walks do not.
    """
    if bits.shape[0] > 0:
        return _candidates_of_bits(row, after, indptr, indices, bits, union, found)
    marks[row] = row + 1
    found[0] = row
    level_start, count = np.uint64(0), np.uint64(1)
    for _ in range(k):
        level_end = count
        for position in range(level_start, level_end):
            node = found[position]
            for edge in range(indptr[node], indptr[node + 1]):
                near = indices[edge]
                if marks[near] != row + 1:
                    marks[near] = row + 1
                    found[count] = near
                    count += np.uint64(1)
        level_start = level_end
    kept = np.uint64(0)
    for position in range(np.uint64(1), count):
        node = found[position]
        found[kept] = node
        kept += np.uint64(np.int64(node) > after)
    return np.int64(kept)


@njit(cache=True, nogil=True)
def _candidates_of_bits(row, after, indptr, indices, bits, union, found):  # type: ignore[no-untyped-def]
    first = (after + 1) >> 6
    words = union.size
    union[first:] = bits[row, first:]
    for edge in range(indptr[row], indptr[row + 1]):
        near = bits[indices[edge]]
        for word in range(first, words):
            union[word] |= near[word]
    one = np.uint64(1)
    if first < words:
        union[first] &= ~((one << np.uint64((after + 1) & 63)) - one)
    if (row >> 6) >= first:
        union[row >> 6] &= ~(one << np.uint64(row & 63))
    count = np.uint64(0)
    for word in range(first, words):
        rest = union[word]
        while rest != 0:
            found[count] = np.uint64(word << 6) + trailing_zeros(rest)
            count += one
            rest &= rest - one
    return np.int64(count)
