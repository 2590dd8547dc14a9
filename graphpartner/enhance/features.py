"""The rows x_i of X in the form the join works on: sparse, checked, and classified as binary, integer or real."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from graphpartner.system.errors import InputError
from graphpartner.system.parallel import HAS_NUMBA

Kind = Literal["binary", "integer", "real"]

EXACT = 2.0**53  # integers up to here are exact in float64
EXTREME = 2.0**200  # beyond this, products of squared norms may leave the range of float64


@dataclass(frozen=True)
class Features:
    """Feature rows in CSR form with their squared norms ``n_i = ‖x_i‖²``.

    ``kind`` determines how a pair at the threshold is decided (see :mod:`graphpartner.enhance.rule`) and which
    kernels may be used: ``binary`` rows hold only ones, ``integer`` rows whole numbers, ``real`` rows anything.
    """

    matrix: sparse.csr_array
    squared: np.ndarray
    kind: Kind

    @property
    def num_nodes(self) -> int:
        """Number of rows."""
        return int(self.matrix.shape[0])

    @property
    def num_features(self) -> int:
        """Number of columns."""
        return int(self.matrix.shape[1])

    def dots(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """Return ⟨x_i, x_j⟩ in float64 for a list of pairs."""
        if HAS_NUMBA:
            from graphpartner.enhance.features_numba import pair_dots

            return pair_dots(self.matrix, i, j)
        result = np.empty(i.size)
        step = 1 + 4_000_000 * self.num_nodes // (1 + self.matrix.nnz)
        for start in range(0, i.size, step):
            block = slice(start, start + step)
            left, right = self.matrix[i[block]].astype(np.float64), self.matrix[j[block]].astype(np.float64)
            result[block] = left.multiply(right).sum(axis=1)
        return result

    def cosines(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """Return w_ij = ⟨x_i, x_j⟩ / (‖x_i‖ ‖x_j‖) in float64, 0 where a row is zero."""
        scale = np.sqrt(self.squared[i] * self.squared[j])
        return np.divide(self.dots(i, j), scale, out=np.zeros(i.size), where=scale > 0)


def read_features(x: Tensor) -> Features:
    """Check ``x`` (dense or torch sparse CSR) and convert it to :class:`Features`."""
    if not isinstance(x, Tensor) or x.dim() != 2:
        found = f"has shape {list(x.shape)}" if isinstance(x, Tensor) else f"is of type {type(x).__name__}"
        raise InputError(f"x {found}: must be a tensor of shape [nodes, features]")
    if x.is_complex():
        raise InputError(f"x has type {x.dtype}: must hold real numbers")
    x = x.detach()
    matrix = _from_sparse(x) if x.layout != torch.strided else _from_dense(x)
    if not np.isfinite(matrix.data).all():
        raise InputError("x holds NaN or infinite values: must be finite")
    kind = _kind(matrix.data)
    if kind == "real":
        matrix = _rescale_extremes(matrix)
    return Features(matrix, _squared_norms(matrix), kind)


def _numeric(x: Tensor) -> Tensor:
    """Move to the CPU; float32 stays float32, everything else becomes float64."""
    return x.cpu() if x.dtype == torch.float32 else x.cpu().to(torch.float64)


def _from_sparse(x: Tensor) -> sparse.csr_array:
    x = x.coalesce().to_sparse_csr() if x.layout == torch.sparse_coo else x.to_sparse_csr()
    columns, starts = x.col_indices().cpu().numpy(), x.crow_indices().cpu().numpy()
    parts = (_numeric(x.values()).numpy(), columns.astype(np.int32), starts.astype(np.int32))
    matrix = sparse.csr_array(parts, shape=tuple(x.shape), copy=True)
    matrix.sum_duplicates()  # also sorts the columns
    matrix.eliminate_zeros()
    return matrix


def _from_dense(x: Tensor) -> sparse.csr_array:
    """Return the non-zeros of a dense matrix, found without a mask of its full size (Coauthor CS: 125 MB)."""
    if x.is_cuda:  # finding the non-zeros there is faster than copying the whole matrix
        return _from_sparse(x.to_sparse_csr())
    dense = _numeric(x).contiguous().numpy()
    if HAS_NUMBA:
        from graphpartner.enhance.features_numba import nonzeros

        return sparse.csr_array(nonzeros(dense), shape=dense.shape)
    step = 1 + 4_000_000 // max(1, dense.shape[1])
    blocks = [sparse.csr_array(dense[start : start + step]) for start in range(0, dense.shape[0], step)]
    return sparse.csr_array(sparse.vstack(blocks, format="csr")) if blocks else sparse.csr_array(dense)


def _kind(values: np.ndarray) -> Kind:
    if (values == 1).all():
        return "binary"
    if not (values[:1024] == np.rint(values[:1024])).all():  # real rows show it early
        return "real"
    whole = (values == np.rint(values)).all() and np.abs(values).max(initial=0) <= EXACT
    return "integer" if whole else "real"


def _squared_norms(matrix: sparse.csr_array) -> np.ndarray:
    data = matrix.data.astype(np.float64)
    np.square(data, out=data)
    rows = sparse.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)
    return np.asarray(rows.sum(axis=1), dtype=np.float64)


def _rescale_extremes(matrix: sparse.csr_array) -> sparse.csr_array:
    """Scale rows of enormous or tiny numbers by a power of two: cosines do not change, squares stay in range."""
    if matrix.dtype == np.float32:  # its whole range is harmless
        return matrix
    if np.abs(matrix.data).max(initial=0.0) < EXTREME and np.abs(matrix.data).min(initial=1.0) > 1 / EXTREME:
        return matrix
    row_largest = abs(matrix).max(axis=1).toarray().ravel()
    exponent = np.frexp(row_largest)[1]
    data = np.ldexp(matrix.data.astype(np.float64), -np.repeat(exponent, np.diff(matrix.indptr)))
    return sparse.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)
