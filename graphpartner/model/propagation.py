"""Propagation A_en^l H (Eqs. 9 and 12): one operator, and several plans to compute it.

========  ============================================================  =====================================
plan      how                                                           when
========  ============================================================  =====================================
steps     l sparse products, one after the other                        the default
dense     A_en^l computed once as a dense matrix, one product per call  small n, large l, if that is cheaper
blocks    l sparse products, a block of rows at a time                  the matrix does not fit on the device
========  ============================================================  =====================================

Without the contrastive loss, and in every evaluation, the C logit columns are propagated instead of the hidden ones,
since A^l (H W) = (A^l H) W. That is up to the caller (``smooth=False`` in :func:`graphpartner.model.gpnn.forward`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
import torch
from scipy import sparse
from scipy.sparse.csgraph import reverse_cuthill_mckee
from torch import Tensor

from graphpartner.graph.adjacency import csr, to_scipy, to_torch
from graphpartner.kernels.row_products import rows_of
from graphpartner.kernels.spmm import SparseMatrix, fold, spmm_power, unfold
from graphpartner.system.errors import InputError

PlanName = Literal["steps", "dense", "blocks"]

DENSE_POWER_BYTES = 2**31  # the largest dense power of the plan "dense"
REORDER_FROM = 8_000  # nodes; below, 64 columns of H stay in the cache in any order


@dataclass(frozen=True)
class Plan:
    """How A_en^l H is computed, and why."""

    name: PlanName
    reason: str


class Propagation:
    """The operator H ↦ A_en^l H for H [..., n, c], differentiable in H.

    Args:
        matrix: A_en, torch sparse CSR; rows receive.
        num_steps: l.
        plan: ``"steps"``, ``"dense"`` or ``"blocks"``; by default the choice of :func:`choose_plan`.
        columns: expected number of columns, for the choice of the plan.
        block_rows: rows per block of the plan ``"blocks"``.
    """

    def __init__(
        self,
        matrix: Tensor | SparseMatrix,
        num_steps: int,
        plan: PlanName | None = None,
        columns: int = 64,
        block_rows: int = 65_536,
    ) -> None:
        if num_steps < 0:
            raise InputError(f"num_steps = {num_steps}: must be 0 or more")
        if plan is not None and plan not in get_args(PlanName):
            raise InputError(f"plan = {plan!r}: must be one of {', '.join(get_args(PlanName))}")
        self.matrix = matrix if isinstance(matrix, SparseMatrix) else SparseMatrix(matrix)
        self.num_steps = num_steps
        self.block_rows = block_rows
        self.plan = Plan(plan, "given") if plan else choose_plan(self.matrix, num_steps, columns)

    def __call__(self, H: Tensor) -> Tensor:
        """Return A_en^l H."""
        self.matrix.check_fits(H)
        if self.plan.name == "dense" and self.num_steps > 0:
            return unfold(self.power.to(H.dtype) @ fold(H), H.shape)
        return self.steps(H, self.num_steps)

    def steps(self, H: Tensor, count: int) -> Tensor:
        """Return A_en^count H, computed by sparse products."""
        if self.plan.name == "blocks" and count > 0:
            self.matrix.check_fits(H)
            return unfold(_Blocks.apply(fold(H), self, count), H.shape)
        return self.steps_matrix.power(H, count)

    @cached_property
    def steps_matrix(self) -> SparseMatrix:
        """A_en for the plan ``"steps"``: a large one on a CPU has its nodes reordered, see :func:`reordered`."""
        on_cpu = self.matrix.csr.device.type == "cpu"
        return reordered(self.matrix) if on_cpu and self.matrix.shape[0] >= REORDER_FROM else self.matrix

    @cached_property
    def power(self) -> Tensor:
        """A_en^l as a dense matrix: by squaring, in float64, since errors of a power accumulate."""
        return torch.linalg.matrix_power(self.matrix.csr.to_dense().double(), self.num_steps).to(self.matrix.csr.dtype)

    @cached_property
    def blocks(self) -> list[Tensor]:
        """Blocks of ``block_rows`` rows of A_en, on the device of A_en."""
        return row_blocks(self.matrix.csr, self.block_rows)

    @cached_property
    def transposed_blocks(self) -> list[Tensor]:
        """Blocks of rows of A_enᵀ, for the backward pass."""
        return row_blocks(self.matrix.transpose, self.block_rows)

    def explain(self) -> str:
        """Return the plan and the reason for it."""
        n, nnz = self.matrix.shape[0], self.matrix.nnz
        return f"{self.plan.name}: {self.plan.reason} (n = {n:,}, entries = {nnz:,}, l = {self.num_steps})"

    def __repr__(self) -> str:
        return f"{type(self).__name__}(n={self.matrix.shape[0]}, num_steps={self.num_steps}, plan={self.plan.name!r})"


@dataclass(frozen=True)
class ProductCosts:
    """Approximate costs of products on a device in seconds; only their ratios matter for the choice of a plan."""

    sparse: float
    """of one entry of the matrix and one column of H, in a sparse product"""
    row: float
    """of reading and writing one entry of H there"""
    dense: float
    """of one entry of the power and one column of H, in a dense product"""
    step: float
    """of starting a product"""


COSTS = {"cpu": ProductCosts(8e-11, 1e-10, 2.5e-11, 5e-6), "cuda": ProductCosts(3.8e-13, 2e-12, 4.5e-14, 8e-5)}


def choose_plan(matrix: SparseMatrix, num_steps: int, columns: int) -> Plan:
    """Choose the cheaper of l sparse products and one dense product."""
    n, nnz, costs = matrix.shape[0], matrix.nnz, COSTS[matrix.csr.device.type]
    sparse = num_steps * (columns * (costs.sparse * nnz + costs.row * n) + costs.step)
    dense = costs.dense * n * n * columns + costs.row * n * n + costs.step
    if num_steps > 1 and dense < sparse and 4 * n * n <= DENSE_POWER_BYTES:
        return Plan("dense", f"one dense product costs {dense / sparse:.2f} of {num_steps} sparse ones")
    return Plan("steps", f"{num_steps} sparse products cost {sparse / dense:.2f} of one dense one")


class _Blocks(torch.autograd.Function):
    """l sparse steps, with only one block of rows of the matrix on the device of H at a time."""

    @staticmethod
    def forward(ctx: Any, H: Tensor, operator: Propagation, steps: int) -> Tensor:
        ctx.operator, ctx.steps = operator, steps
        return _stream(operator.blocks, H, steps)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return _stream(ctx.operator.transposed_blocks, gradient, ctx.steps), None, None


def _stream(blocks: list[Tensor], H: Tensor, steps: int) -> Tensor:
    for _ in range(steps):
        H = torch.cat([spmm_power(block.to(H.device), H, 1) for block in blocks])
    return H


def row_blocks(matrix: Tensor, rows: int) -> list[Tensor]:
    """Split a torch sparse CSR tensor into blocks of ``rows`` rows."""
    crow, col, value = matrix.crow_indices(), matrix.col_indices(), matrix.values()
    blocks = []
    for start in range(0, matrix.shape[0], rows):
        pointer = crow[start : start + rows + 1]
        entries = slice(int(pointer[0]), int(pointer[-1]))
        size = (pointer.numel() - 1, matrix.shape[1])
        blocks.append(csr(pointer - pointer[0], col[entries], value[entries], size))
    return blocks


def reordered(matrix: SparseMatrix) -> SparseMatrix:
    """Return a square matrix with rows and columns in reverse Cuthill–McKee order, so that neighbours share the cache.

    The order is kept inside the matrix: its products are the same as before.
    """
    A = to_scipy(matrix.csr)
    pattern = sparse.csr_matrix((np.ones(A.nnz, np.int8), A.indices, A.indptr), shape=A.shape)
    order = reverse_cuthill_mckee(sparse.csr_matrix(pattern + pattern.T), symmetric_mode=True).astype(np.int64)
    moved = to_torch(A[order][:, order], matrix.csr.dtype, matrix.csr.device)
    return SparseMatrix(moved, torch.from_numpy(order).to(matrix.csr.device))


def propagate_rows(propagate: Callable[[Tensor], Tensor], index: Tensor) -> Callable[[Tensor], Tensor]:
    """Return the operator H ↦ (A_en^l H)[index] for H [R, n, c] and an index [m], or [R, m].

    With a dense power, only these rows are multiplied, if they take no more memory than all of it.
    """
    if (
        isinstance(propagate, Propagation)
        and propagate.plan.name == "dense"
        and propagate.num_steps > 0
        and index.numel() <= propagate.matrix.shape[0]
    ):
        rows = propagate.power[index]  # [m, n] or [R, m, n]
        return lambda H: rows @ H if index.dim() > 1 else unfold(rows @ fold(H), H.shape)
    return lambda H: rows_of(propagate(H), index)


def propagate_to_depths(propagate: Propagation, depths: Sequence[int]) -> Callable[[Tensor], Tensor]:
    """Return the operator H ↦ (A_en^{l_r} H_r)_r for H [R, n, c] and l = ``depths``, differentiable in H.

    Replicas share one wide product per step and leave it at their depth, so the cost is that of Σ_r l_r steps of one
    replica. Where every depth is that of ``propagate``, it is ``propagate`` itself, whatever its plan.
    """
    if set(depths) == {propagate.num_steps}:
        return propagate
    return lambda H: _advance(propagate, H, depths)


def _advance(propagate: Propagation, H: Tensor, depths: Sequence[int]) -> Tensor:
    done: dict[int, Tensor] = {}
    remaining, steps = list(range(len(depths))), 0
    for depth in sorted(set(depths)):
        H = propagate.steps(H, depth - steps)
        steps = depth
        states = dict(zip(remaining, H, strict=True))
        done |= {replica: states[replica] for replica in remaining if depths[replica] == depth}
        remaining = [replica for replica in remaining if depths[replica] > depth]
        if remaining:
            H = _side_by_side([states[replica] for replica in remaining])
    return _side_by_side([done[replica] for replica in range(len(depths))])


def _side_by_side(replicas: list[Tensor]) -> Tensor:
    """Stack replicas to [R, n, c], in memory [n, R, c], the layout of sparse products."""
    return torch.stack(replicas, 1).transpose(0, 1)
