"""Loops over blocks: collecting rows of unknown length, and mirroring the pairs j > i by counting.

A kernel collects rows in arrays that double when full, with sorted columns and the self pair in its place. When pairs
are mirrored, each thread fills the rows of its own tile.
"""

import numpy as np
from numba import njit

from graphpartner.system.parallel import even_ranges, map_ranges, num_threads, ranges

TILE = 2048  # rows whose ends are written to in turn, and fit the cache

U = np.uint64  # an unsigned index spares numba the test for a negative one
Upper = tuple[int, np.ndarray, np.ndarray, np.ndarray]  # first row, counts, columns, values


@njit(cache=True, nogil=True)
def count_columns(columns, below):  # type: ignore[no-untyped-def]
    """Add the number of occurrences of each column to ``below``."""
    for column in columns:
        below[U(column)] += 1


@njit(cache=True, nogil=True)
def _copy_upper(first, counts, upper_columns, upper_values, starts, below, columns, values):  # type: ignore[no-untyped-def]
    """Copy the self pair and the pairs j > i of every row of a block."""
    at = U(0)
    for offset in range(counts.size):
        row = first + offset
        to = U(starts[row] + below[row])
        columns[to] = row
        values[to] = 1.0
        for _ in range(counts[offset]):
            to += U(1)
            columns[to] = upper_columns[at]
            values[to] = upper_values[at]
            at += U(1)


@njit(cache=True, nogil=True)
def _copy_lower(first, counts, upper_columns, upper_values, low, high, ends, columns, values):  # type: ignore[no-untyped-def]
    """Copy every pair (i, j) of a block with low ≤ j < high as (j, i); rows are in order, hence columns too."""
    end = 0
    for offset in range(counts.size):
        begin, end = end, end + counts[offset]
        if begin == end or upper_columns[end - 1] < low or upper_columns[begin] >= high:
            continue
        left, right = begin, end
        while left < right:
            middle = (left + right) // 2
            if upper_columns[middle] < low:
                left = middle + 1
            else:
                right = middle
        while left < end and upper_columns[left] < high:
            row = U(upper_columns[left])
            to = U(ends[row])
            columns[to] = first + offset
            values[to] = upper_values[left]
            ends[row] = to + U(1)
            left += 1


def mirror(parts: list[Upper], starts: np.ndarray, below: np.ndarray, columns: np.ndarray, values: np.ndarray) -> None:
    """Fill ``columns`` and ``values``, whose rows begin at ``starts`` and hold ``below`` pairs j < i each."""
    n = below.size
    ends = starts[:-1].copy()

    def upper(begin: int, stop: int) -> None:
        for part in parts[begin:stop]:
            _copy_upper(*part, starts, below, columns, values)

    def lower(low: int, high: int) -> None:
        for part in parts:
            if part[0] < high:
                _copy_lower(*part, low, high, ends, columns, values)

    for _ in map_ranges(upper, even_ranges(len(parts))):
        pass
    tile = max(TILE, n // 64) if n > TILE * num_threads() else max(1, -(-n // num_threads()))
    for _ in map_ranges(lower, ranges(n, tile)):
        pass


@njit(cache=True, nogil=True)
def room_for(columns, values, total, more):  # type: ignore[no-untyped-def]
    """Return the arrays, or longer copies if ``more`` entries after the first ``total`` do not fit."""
    if total + more <= columns.size:
        return columns, values
    capacity = max(total + more, 2 * columns.size)
    new_columns, new_values = np.empty(capacity, dtype=columns.dtype), np.empty(capacity, dtype=values.dtype)
    new_columns[:total] = columns[:total]
    new_values[:total] = values[:total]
    return new_columns, new_values


@njit(cache=True, nogil=True)
def append_row(row, symmetric, unsorted, found, weight, kept, columns, values, total, counts, start):  # type: ignore[no-untyped-def]
    """Append the kept pairs of one row, with its self pair if it is a full row; return the new total."""
    if not symmetric:
        position = kept
        if not unsorted:
            while position > 0 and found[position - 1] > row:
                found[position] = found[position - 1]
                weight[position] = weight[position - 1]
                position -= 1
        found[position] = row
        weight[position] = 1.0
        kept += 1
    if unsorted:
        order = np.argsort(found[:kept])
        for position in range(kept):
            columns[total + position] = found[order[position]]
            values[total + position] = weight[order[position]]
    else:
        columns[total : total + kept] = found[:kept]
        values[total : total + kept] = weight[:kept]
    counts[row - start] = kept
    return total + kept
