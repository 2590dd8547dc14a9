"""How a kernel collects rows of unknown length: arrays that double, columns in order, the self pair in its place."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def room_for(columns, values, total, more):  # type: ignore[no-untyped-def]
    """The same arrays, or longer ones with the same contents, if ``more`` entries after ``total`` do not fit."""
    if total + more <= columns.size:
        return columns, values
    capacity = max(total + more, 2 * columns.size)
    new_columns, new_values = np.empty(capacity, dtype=columns.dtype), np.empty(capacity, dtype=values.dtype)
    new_columns[:total] = columns[:total]
    new_values[:total] = values[:total]
    return new_columns, new_values


@njit(cache=True, nogil=True)
def append_row(row, symmetric, unsorted, found, weight, kept, columns, values, total, counts, start):  # type: ignore[no-untyped-def]
    """Append the kept pairs of one row; a full row also gets its self pair. Returns the new total."""
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
