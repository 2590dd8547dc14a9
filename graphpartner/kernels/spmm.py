"""Powers of a sparse matrix times a dense one, M^l H, differentiable in H.

The transpose is stored for the backward pass: PyTorch's own CSR product sorts it anew every time, which makes backward
far slower than forward.
"""

from functools import cached_property
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from graphpartner.graph.adjacency import csr
from graphpartner.kernels.table import Kernels
from graphpartner.system.errors import InputError


def spmm_power(csr: Tensor, H: Tensor, steps: int, order: Tensor | None = None) -> Tensor:
    """Return csr^steps H for a torch sparse CSR tensor and H [m, c]; the matrix must be square for steps > 1.

    Row and column i of the matrix stand for row ``order[i]`` of H; None stands for row i.
    """
    H = H.contiguous()
    if steps and (loops := Kernels.on(H.device).spmm) is not None and H.dtype in loops.DTYPES:
        return loops.spmm_power(csr, H, steps, order)
    if order is not None:
        H = H[order]
    for _ in range(steps):
        H = csr @ H
    return H if order is None else torch.empty_like(H).index_copy_(0, order, H)


class SparseMatrix:
    """M, a constant torch sparse CSR matrix of shape [n, m].

    ``M @ H`` takes H of shape [..., m, c] and returns [..., n, c]; leading (replica) dimensions are folded into
    columns, so that a hundred replicas cost one wide product.

    Args:
        matrix: M, with rows and columns in the order given by ``order``.
        order: for a square M, the row of H that each row and column stands for, see :func:`spmm_power`.
    """

    def __init__(self, matrix: Tensor, order: Tensor | None = None) -> None:
        self.csr = with_int32_indices(matrix)
        self.order = order

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return self.csr.shape[0], self.csr.shape[1]

    @property
    def nnz(self) -> int:
        """Number of stored entries."""
        return self.csr.values().numel()

    @cached_property
    def transpose(self) -> Tensor:
        """Mᵀ in CSR form: the CSC form of M with rows and columns exchanged."""
        csc = self.csr.to_sparse_csc()
        return csr(csc.ccol_indices(), csc.row_indices(), csc.values(), (self.shape[1], self.shape[0]))

    def __matmul__(self, H: Tensor) -> Tensor:
        return self.power(H, 1)

    def power(self, H: Tensor, steps: int) -> Tensor:
        """Return M^steps H, one product after the other."""
        self.check_fits(H)
        if steps == 0:
            return H
        return _Power.apply(H, self, steps)

    def rows(self, which: Tensor) -> "SparseMatrix":
        """Return M[which]."""
        start, counts = self.csr.crow_indices()[which], self.csr.crow_indices().diff()[which]
        crow = F.pad(counts.cumsum(0), (1, 0))
        stored = torch.arange(int(crow[-1]), device=which.device) + (start - crow[:-1]).repeat_interleave(counts)
        columns, values = self.csr.col_indices()[stored], self.csr.values()[stored]
        return SparseMatrix(csr(crow.to(columns.dtype), columns, values, (which.numel(), self.shape[1])))

    def check_fits(self, H: Tensor) -> None:
        """Raise an InputError where M H is not defined: compiled loops would read beyond the end of H."""
        if H.shape[-2] != self.shape[1]:
            rows, shape = self.shape[1], list(self.shape)
            raise InputError(f"H has shape {list(H.shape)}: must have {rows} rows to follow a matrix of shape {shape}")

    def to(self, device: torch.device | str | None = None, dtype: torch.dtype | None = None) -> "SparseMatrix":
        """Move the matrix to a device, or convert its values to a dtype."""
        order = None if self.order is None else self.order.to(device=device)
        return SparseMatrix(self.csr.to(device=device, dtype=dtype), order)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.shape[0]}x{self.shape[1]}, nnz={self.nnz})"


def with_int32_indices(matrix: Tensor) -> Tensor:
    """Return the matrix with 32-bit indices if they suffice: half the traffic, and no conversion inside MKL."""
    if matrix.col_indices().dtype == torch.int32 or max(*matrix.shape, matrix.values().numel()) >= 2**31:
        return matrix
    return csr(matrix.crow_indices().int(), matrix.col_indices().int(), matrix.values(), matrix.shape)


class _Power(torch.autograd.Function):
    """H ↦ M^l H; its gradient is G ↦ (Mᵀ)^l G, for which no tensor has to be saved."""

    @staticmethod
    def forward(ctx: Any, H: Tensor, matrix: SparseMatrix, steps: int) -> Tensor:
        ctx.matrix, ctx.steps = matrix, steps
        return unfold(spmm_power(matrix.csr, fold(H), steps, matrix.order), H.shape)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        product = spmm_power(ctx.matrix.transpose, fold(gradient), ctx.steps, ctx.matrix.order)
        return unfold(product, gradient.shape), None, None


def fold(H: Tensor) -> Tensor:
    """Return H [..., n, c] as [n, …·c]: replicas become columns. A view if H lies in memory as [n, …, c]."""
    if H.dim() == 2:
        return H
    return H.reshape(-1, *H.shape[-2:]).transpose(0, 1).reshape(H.shape[-2], -1)


def unfold(folded: Tensor, shape: torch.Size) -> Tensor:
    """Return [n, …·c] as [..., n, c], a view: the inverse of :func:`fold` for an H of this shape (n may differ)."""
    if len(shape) == 2:
        return folded
    rows = folded.shape[0]
    return folded.reshape(rows, -1, shape[-1]).transpose(0, 1).reshape(*shape[:-2], rows, shape[-1])
