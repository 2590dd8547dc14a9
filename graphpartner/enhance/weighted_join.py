"""The join of weighted rows: sparse probes that stop as soon as the rest cannot reach the threshold.

With x_i as a dense row, ⟨x_i, x_j⟩ is summed over the features of x_j in chunks of 16. After each chunk the rest is at
most ‖rest of x_i‖ ‖rest of x_j‖ (by Cauchy–Schwarz, also for negative values); if even that stays below t, the pair is
dropped. Features are sorted by their mean squared weight, so that the sum is nearly complete after a chunk or two.
Bounds are float32 with a margin for rounding; pairs that pass are computed again in float64.
"""

from collections.abc import Callable

import numpy as np
from numba import njit
from scipy import sparse

from graphpartner.enhance.blocks import Block
from graphpartner.enhance.blocks_numba import append_row, room_for
from graphpartner.enhance.features import Features
from graphpartner.enhance.reach import Reach, candidates
from graphpartner.enhance.rule import TOLERANCE, Rule

CHUNK = 16
U = np.uint64  # an unsigned index spares numba the test for a negative one, half of the time of these loops
MAX_STEPS = 8192  # resolution of ‖rest of x_i‖ over the features


def weighted_join(rule: Rule, reach: Reach, symmetric: bool) -> Callable[[int, int], Block]:
    """Return a function (start, stop) that joins these rows; if ``symmetric``, only with j > i."""
    features = rule.features
    X = _heaviest_first(features)
    norm = np.sqrt(features.squared)
    lengths = np.diff(X.indptr)
    chunks = -(-lengths // CHUNK)
    first_chunk = np.concatenate([[0], np.cumsum(chunks)])
    index_type = np.uint16 if features.num_features < 2**16 else np.uint32
    shift = 0
    while (features.num_features >> shift) > MAX_STEPS:
        shift += 1
    index = np.zeros(first_chunk[-1] * CHUNK, dtype=index_type)
    unit = np.zeros(first_chunk[-1] * CHUNK, dtype=np.float32)
    after_chunk = np.zeros(first_chunk[-1], dtype=np.uint32)  # index of ‖rest of x_i‖ after each chunk
    rest = np.zeros(first_chunk[-1], dtype=np.float32)
    _chunk(X.indptr, X.indices, X.data, norm, first_chunk, shift, index, unit, after_chunk, rest)
    first_chunk = first_chunk.astype(np.uint64)
    x_indptr, x_indices = X.indptr.astype(np.uint64), X.indices.view(np.uint32)
    margin = (int(lengths.max(initial=0)) + 32) * 1.2e-7 + 1e-6
    if rule.exact:
        floor = rule.threshold - rule.margin  # pairs at the threshold are decided afterwards, in whole numbers
        near = rule.threshold + rule.margin
    else:
        floor, near = rule.threshold * (1 - TOLERANCE), 0.0
    bound = np.float32(rule.threshold - margin)

    def join(start: int, stop: int) -> Block:
        counts, columns, values, ties = _join(
            start, stop, symmetric, reach.indptr, reach.indices, reach.bits, reach.k, features.num_features,
            x_indptr, x_indices, X.data, features.squared, norm, first_chunk, index, unit, after_chunk, rest, shift,
            bound, floor, near,
        )  # fmt: skip
        block = Block(start, counts, columns, values)
        return _settle(block, rule) if ties else block

    return join


def _settle(block: Block, rule: Rule) -> Block:
    """Decide the pairs around t exactly; their float32 cosines show which these may be."""
    around = np.abs(block.values - rule.threshold) <= 1e-6 * max(1.0, rule.threshold) + rule.margin
    rows = block.rows
    where = np.flatnonzero(around & (rows != block.columns))
    i, j = rows[where], block.columns[where]
    keep = np.ones(block.columns.size, dtype=bool)
    keep[where] = rule.keep(rule.features.dots(i, j), i, j)
    return block.only(keep)


def _heaviest_first(features: Features) -> sparse.csr_array:
    """Reorder the columns by their mean squared weight in unit rows, and sort each row accordingly."""
    X = features.matrix
    scale = np.divide(1.0, features.squared, out=np.zeros_like(features.squared), where=features.squared > 0)
    squares = np.square(X.data, dtype=np.float64) * np.repeat(scale, np.diff(X.indptr))
    weight = np.bincount(X.indices, weights=squares, minlength=features.num_features)
    rank = np.empty(features.num_features, dtype=X.indices.dtype)
    rank[np.argsort(-weight, kind="stable")] = np.arange(features.num_features)
    reordered = sparse.csr_array((X.data, rank[X.indices], X.indptr), shape=X.shape)
    return reordered.tocsc().tocsr()  # two transpositions sort in linear time


@njit(cache=True, nogil=True)
def _chunk(indptr, indices, data, norm, first_chunk, shift, index, unit, after_chunk, rest):  # type: ignore[no-untyped-def]
    """Write unit rows in chunks of 16, padded with zeros, and for each chunk its end and the norm of the rest."""
    for row in range(norm.size):
        begin, end = indptr[row], indptr[row + 1]
        to = first_chunk[row] * CHUNK
        for entry in range(begin, end):
            index[to + entry - begin] = indices[entry]
            unit[to + entry - begin] = data[entry] / norm[row]
        left = 0.0
        for chunk in range(first_chunk[row + 1] - 1, first_chunk[row] - 1, -1):
            offset = chunk - first_chunk[row]
            after_chunk[chunk] = (indices[min(begin + (offset + 1) * CHUNK, end) - 1] + 1) >> shift
            rest[chunk] = np.sqrt(left)
            for lane in range(CHUNK):
                left += np.float64(unit[chunk * CHUNK + lane]) ** 2


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _sum_chunk(spread, index, unit, at):  # type: ignore[no-untyped-def]
    total = np.float32(0.0)
    for lane in range(CHUNK):
        total += spread[index[at + U(lane)]] * unit[at + U(lane)]
    return total


@njit(cache=True, nogil=True)
def _join(  # type: ignore[no-untyped-def]
    start, stop, symmetric, indptr, indices, bits, k, num_features,
    x_indptr, x_indices, x_data, squared, norm, first_chunk, index, unit, after_chunk, rest, shift,
    bound, floor, near,
):  # fmt: skip
    n = squared.size
    marks = np.zeros(0 if bits.shape[0] else n, dtype=np.int32)
    union = np.empty(bits.shape[1], dtype=np.uint64)
    found = np.empty(n + 1, dtype=np.uint32)
    weight = np.empty(n + 1, dtype=np.float32)
    spread = np.zeros(max(1, num_features), dtype=np.float32)
    spread_exact = np.zeros(max(1, num_features), dtype=np.float64)
    left_over = np.zeros((num_features >> shift) + 2, dtype=np.float32)
    counts = np.empty(stop - start, dtype=np.int64)
    columns, values = np.empty(1024, dtype=np.int32), np.empty(1024, dtype=np.float32)
    total, ties = 0, 0
    for row in range(start, stop):
        begin, end = np.int64(x_indptr[row]), np.int64(x_indptr[row + 1])
        after = row if symmetric else -1
        count = 0
        if end > begin:
            count = candidates(row, after, indptr, indices, bits, k, marks, union, found)
        if count > 0:
            # left_over[s] = ‖x_i restricted to features ≥ s · 2^shift‖ / ‖x_i‖
            step = left_over.size - 1
            squares = 0.0
            for entry in range(end - 1, begin - 1, -1):
                feature = x_indices[entry]
                value = np.float64(x_data[entry])
                left = np.float32(np.sqrt(squares) / norm[row])
                while step > np.int64(feature >> shift):
                    left_over[step] = left
                    step -= 1
                spread[feature] = value / norm[row]
                spread_exact[feature] = value
                squares += value * value
            left_over[: step + 1] = np.float32(np.sqrt(squares) / norm[row])
        kept = 0
        for position in range(count):
            j = U(found[position])
            first, end_chunk = first_chunk[j], first_chunk[j + U(1)]
            alive = end_chunk > first
            acc = np.float32(0.0)
            for chunk in range(first, end_chunk):
                acc += _sum_chunk(spread, index, unit, chunk * U(CHUNK))
                if acc + rest[chunk] * left_over[after_chunk[chunk]] < bound:
                    alive = False
                    break
            if not alive:
                continue
            dot = 0.0
            for entry in range(x_indptr[j], x_indptr[j + U(1)]):
                dot += spread_exact[x_indices[entry]] * np.float64(x_data[entry])
            cosine = dot / np.sqrt(squared[row] * squared[j])
            if cosine >= floor:
                found[kept] = j
                weight[kept] = cosine
                kept += 1
                ties += cosine < near
        if count > 0:
            for entry in range(begin, end):
                spread[x_indices[entry]] = 0.0
                spread_exact[x_indices[entry]] = 0.0
        columns, values = room_for(columns, values, total, kept + 1)
        total = append_row(
            row, symmetric, bits.shape[0] == 0, found, weight, kept, columns, values, total, counts, start
        )
    return counts, columns[:total].copy(), values[:total].copy(), ties
