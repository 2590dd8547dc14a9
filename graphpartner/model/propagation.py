"""A_en^l H, Eqs. 9 and 12: one operator, several plans that compute the same thing.

========  ============================================================  =====================================
plan      how                                                           when
========  ============================================================  =====================================
steps     l sparse products, one after the other                        the default
dense     A_en^l computed once as a dense matrix, one product per call  small n, large l, a device that likes it
blocks    l sparse products, a block of rows at a time                  the matrix does not fit on the device
========  ============================================================  =====================================

Where the contrastive loss is off, and in every evaluation, the C logit columns travel instead of the hidden ones,
since A^l (H W) = (A^l H) W: that choice is the caller's (``smooth=False`` in :func:`graphpartner.model.gpnn.forward`),
any plan serves it.

A_en^l H where every replica has its own l, as in curves over depth.

An order of the nodes that keeps neighbours close, so that what a product needs is still in the cache.
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

DENSE_POWER_BYTES = 2**31


@dataclass(frozen=True)
class Rates:
    """Seconds that a device takes, roughly: what decides between plans is how they compare, not what they are."""

    sparse: float
    """for one entry of the matrix and one column of H, in a sparse product"""
    row: float
    """for reading and writing one entry of H there"""
    dense: float
    """for one entry of the power and one column of H, in a dense product"""
    step: float
    """for starting a product"""


RATES = {"cpu": Rates(8e-11, 1e-10, 2.5e-11, 5e-6), "cuda": Rates(3.8e-13, 2e-12, 4.5e-14, 8e-5)}


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
        plan: ``"steps"``, ``"dense"`` or ``"blocks"``; chosen by :func:`choose_plan` if not given.
        columns: how many columns are expected, for the choice of the plan.
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
            raise InputError(f"num_steps = {num_steps}: the number of propagation steps must be 0 or more")
        if plan is not None and plan not in get_args(PlanName):
            raise InputError(f"plan = {plan!r}: must be one of {', '.join(get_args(PlanName))}")
        self.matrix = matrix if isinstance(matrix, SparseMatrix) else SparseMatrix(matrix)
        self.num_steps = num_steps
        self.block_rows = block_rows
        self.plan = Plan(plan, "asked for") if plan else choose_plan(self.matrix, num_steps, columns)

    def __call__(self, H: Tensor) -> Tensor:
        """A_en^l H."""
        self.matrix.check_fits(H)
        if self.plan.name == "dense" and self.num_steps > 0:
            return unfold(self.power.to(H.dtype) @ fold(H), H.shape)
        return self.steps(H, self.num_steps)

    def steps(self, H: Tensor, count: int) -> Tensor:
        """A_en^count H by so many sparse products, whatever l is."""
        if self.plan.name == "blocks" and count > 0:
            self.matrix.check_fits(H)
            return unfold(_Blocks.apply(fold(H), self, count), H.shape)
        return self.steps_matrix.power(H, count)

    @cached_property
    def steps_matrix(self) -> SparseMatrix:
        """A_en for the plan ``"steps"``: on a CPU, if it is large, in an order that keeps neighbours close."""
        on_cpu = self.matrix.csr.device.type == "cpu"
        return reordered(self.matrix) if on_cpu and self.matrix.shape[0] >= REORDER_FROM else self.matrix

    @cached_property
    def power(self) -> Tensor:
        """A_en^l as a dense matrix: by squaring, in float64, since errors of a power add up."""
        return torch.linalg.matrix_power(self.matrix.csr.to_dense().double(), self.num_steps).to(self.matrix.csr.dtype)

    @cached_property
    def blocks(self) -> list[Tensor]:
        """The rows of A_en, ``block_rows`` at a time, where A_en lies."""
        return row_blocks(self.matrix.csr, self.block_rows)

    @cached_property
    def transposed_blocks(self) -> list[Tensor]:
        """The rows of A_enᵀ, for the backward pass."""
        return row_blocks(self.matrix.transpose, self.block_rows)

    def explain(self) -> str:
        """Which plan was chosen, and why."""
        n, nnz = self.matrix.shape[0], self.matrix.nnz
        return f"{self.plan.name}: {self.plan.reason} (n = {n:,}, entries = {nnz:,}, l = {self.num_steps})"

    def __repr__(self) -> str:
        return f"{type(self).__name__}(n={self.matrix.shape[0]}, num_steps={self.num_steps}, plan={self.plan.name!r})"


def propagate_rows(propagate: Callable[[Tensor], Tensor], index: Tensor) -> Callable[[Tensor], Tensor]:
    """The operator H ↦ (A_en^l H)[index] for H [R, n, c] and an index [m], or [R, m].

    Only these rows of a dense power are multiplied, where they take no more memory than all of it.
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


class _Blocks(torch.autograd.Function):
    """The same as l sparse steps, with only one block of rows of the matrix on H's device at a time."""

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
    """A torch sparse CSR tensor, cut into blocks of ``rows`` rows."""
    crow, col, value = matrix.crow_indices(), matrix.col_indices(), matrix.values()
    blocks = []
    for start in range(0, matrix.shape[0], rows):
        pointer = crow[start : start + rows + 1]
        entries = slice(int(pointer[0]), int(pointer[-1]))
        size = (pointer.numel() - 1, matrix.shape[1])
        blocks.append(csr(pointer - pointer[0], col[entries], value[entries], size))
    return blocks


def choose_plan(matrix: SparseMatrix, num_steps: int, columns: int) -> Plan:
    """Pick the cheaper of l sparse products and one dense product, by operations and a rate for each."""
    n, nnz, rates = matrix.shape[0], matrix.nnz, RATES[matrix.csr.device.type]
    sparse = num_steps * (columns * (rates.sparse * nnz + rates.row * n) + rates.step)
    dense = rates.dense * n * n * columns + rates.row * n * n + rates.step
    if num_steps > 1 and dense < sparse and 4 * n * n <= DENSE_POWER_BYTES:
        return Plan("dense", f"one dense product costs {dense / sparse:.2f} of {num_steps} sparse ones")
    return Plan("steps", f"{num_steps} sparse products cost {sparse / dense:.2f} of one dense one")


def propagate_to_depths(propagate: Propagation, depths: Sequence[int]) -> Callable[[Tensor], Tensor]:
    """The operator H ↦ (A_en^{l_r} H_r)_r for H [R, n, c] and l = ``depths``, differentiable in H.

    All replicas travel together in one wide product a step, and who has arrived leaves, so the cost is that of Σ_r l_r
    steps of one replica. Where every l is that of ``propagate``, it is ``propagate`` itself, whatever its plan.
    """
    if set(depths) == {propagate.num_steps}:
        return propagate
    return lambda H: _advance(propagate, H, depths)


def _advance(propagate: Propagation, H: Tensor, depths: Sequence[int]) -> Tensor:
    arrived: dict[int, Tensor] = {}
    travelling, walked = list(range(len(depths))), 0
    for depth in sorted(set(depths)):
        H = propagate.steps(H, depth - walked)
        walked = depth
        places = dict(zip(travelling, H, strict=True))
        arrived |= {replica: places[replica] for replica in travelling if depths[replica] == depth}
        travelling = [replica for replica in travelling if depths[replica] > depth]
        if travelling:
            H = _side_by_side([places[replica] for replica in travelling])
    return _side_by_side([arrived[replica] for replica in range(len(depths))])


def _side_by_side(replicas: list[Tensor]) -> Tensor:
    """[R, n, c], in memory [n, R, c], as sparse products want it."""
    return torch.stack(replicas, 1).transpose(0, 1)


# Below this many nodes 64 columns of H stay in the cache in any order.
REORDER_FROM = 8_000


def reordered(matrix: SparseMatrix) -> SparseMatrix:
    """The same square matrix with rows and columns in reverse Cuthill–McKee order of its pattern.

    Products take and give rows as before: the order is kept inside.
    """
    A = to_scipy(matrix.csr)
    pattern = sparse.csr_matrix((np.ones(A.nnz, np.int8), A.indices, A.indptr), shape=A.shape)
    order = reverse_cuthill_mckee(sparse.csr_matrix(pattern + pattern.T), symmetric_mode=True).astype(np.int64)
    moved = to_torch(A[order][:, order], matrix.csr.dtype, matrix.csr.device)
    return SparseMatrix(moved, _on(order, matrix.csr))


def _on(order: np.ndarray, like: Tensor) -> Tensor:
    return torch.from_numpy(order).to(like.device)
