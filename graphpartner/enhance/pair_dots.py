"""Two small loops over sparse rows: the non-zeros of a dense matrix, and products of listed pairs."""

import numpy as np
from numba import njit

from graphpartner.enhance.threads import even_ranges, in_order


@njit(cache=True, nogil=True)
def _count_nonzeros(dense, start, stop, counts):  # type: ignore[no-untyped-def]
    for row in range(start, stop):
        count = 0
        for column in range(dense.shape[1]):
            count += dense[row, column] != 0
        counts[row] = count


@njit(cache=True, nogil=True)
def _take_nonzeros(dense, start, stop, indptr, indices, data):  # type: ignore[no-untyped-def]
    for row in range(start, stop):
        at = indptr[row]
        for column in range(dense.shape[1]):
            value = dense[row, column]
            if value != 0:
                indices[at] = column
                data[at] = value
                at += 1


def nonzeros(dense: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(values, columns, row starts) of a dense matrix's CSR form."""
    n = dense.shape[0]
    counts = np.empty(n, dtype=np.int64)
    for _ in in_order(lambda start, stop: _count_nonzeros(dense, start, stop, counts), even_ranges(n)):
        pass
    indptr = np.concatenate([[0], np.cumsum(counts)])
    index_type = np.int32 if max(indptr[-1], dense.shape[1]) < 2**31 else np.int64
    indices, data = np.empty(indptr[-1], dtype=index_type), np.empty(indptr[-1], dtype=dense.dtype)
    for _ in in_order(lambda start, stop: _take_nonzeros(dense, start, stop, indptr, indices, data), even_ranges(n)):
        pass
    return data, indices, indptr.astype(index_type)


@njit(cache=True, nogil=True)
def _pair_dots(indptr, indices, data, i, j, start, stop, result):  # type: ignore[no-untyped-def]
    for pair in range(start, stop):
        left, left_end = indptr[i[pair]], indptr[i[pair] + 1]
        right, right_end = indptr[j[pair]], indptr[j[pair] + 1]
        total = 0.0
        while left < left_end and right < right_end:
            if indices[left] == indices[right]:
                total += np.float64(data[left]) * np.float64(data[right])
                left += 1
                right += 1
            elif indices[left] < indices[right]:
                left += 1
            else:
                right += 1
        result[pair] = total


def pair_dots(indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, i: np.ndarray, j: np.ndarray) -> np.ndarray:
    """⟨x_i, x_j⟩ in float64 for listed pairs of rows with sorted columns."""
    i, j = i.astype(np.int64), j.astype(np.int64)
    result = np.empty(i.size)
    for _ in in_order(
        lambda start, stop: _pair_dots(indptr, indices, data, i, j, start, stop, result), even_ranges(i.size)
    ):
        pass
    return result
