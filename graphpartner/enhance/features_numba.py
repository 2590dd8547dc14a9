"""Loops over feature rows: the non-zeros of a dense matrix, and inner products of listed pairs."""

import numpy as np
from numba import njit
from scipy import sparse

from graphpartner.system.parallel import even_ranges, map_ranges

U = np.uint64  # an unsigned index spares numba the test for a negative one


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
    """Return (values, columns, row starts) of the CSR form of a dense matrix."""
    n = dense.shape[0]
    counts = np.empty(n, dtype=np.int64)
    for _ in map_ranges(lambda start, stop: _count_nonzeros(dense, start, stop, counts), even_ranges(n)):
        pass
    indptr = np.concatenate([[0], np.cumsum(counts)])
    index_type = np.int32 if max(indptr[-1], dense.shape[1]) < 2**31 else np.int64
    indices, data = np.empty(indptr[-1], dtype=index_type), np.empty(indptr[-1], dtype=dense.dtype)
    for _ in map_ranges(lambda start, stop: _take_nonzeros(dense, start, stop, indptr, indices, data), even_ranges(n)):
        pass
    return data, indices, indptr.astype(index_type)


@njit(cache=True, nogil=True)
def _pair_dots(indptr, indices, data, num_features, i, j, start, stop, result):  # type: ignore[no-untyped-def]
    spread = np.zeros(num_features)  # x_i as a dense row, until a pair has another i
    begin, end = 0, 0
    for pair in range(start, stop):
        if pair == start or i[pair] != i[pair - 1]:
            for entry in range(begin, end):
                spread[indices[entry]] = 0.0
            begin, end = indptr[i[pair]], indptr[i[pair] + U(1)]
            for entry in range(begin, end):
                spread[indices[entry]] = data[entry]
        total = 0.0
        for entry in range(indptr[j[pair]], indptr[j[pair] + U(1)]):
            total += spread[indices[entry]] * np.float64(data[entry])
        result[pair] = total


def pair_dots(X: sparse.csr_array, i: np.ndarray, j: np.ndarray) -> np.ndarray:
    """Return ⟨x_i, x_j⟩ in float64 for listed pairs of rows; fastest where pairs of one i follow each other."""
    i, j = i.astype(np.uint64), j.astype(np.uint64)
    rows = (X.indptr.astype(np.int64), X.indices.astype(np.uint32, copy=False), X.data, X.shape[1])
    result = np.empty(i.size)
    for _ in map_ranges(lambda start, stop: _pair_dots(*rows, i, j, start, stop, result), even_ranges(i.size)):
        pass
    return result
