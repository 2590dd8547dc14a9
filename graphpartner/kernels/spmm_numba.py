"""Sparse × dense products on a CPU, in numba.

The inner loop is Σ_e w_e · row(j_e). As a plain loop it would read and write the sum in memory for every entry, since
the compiler cannot know that the result does not overlap the rows. Here 32 columns at a time (then 8) stay in vector
registers until the last entry is added, which halves the time.

Columns are independent, so each thread takes a block of them through all steps: threads never wait for each other, and
a block of H stays in the cache. Entries are added in their order, so the result does not depend on threads or blocks.
"""

from typing import Any

import numba
import numpy as np
import torch
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic
from torch import Tensor


def _sum_of_lanes(lanes: int) -> Any:
    """Return f(weights, index, first, last, rows, out, column) that sums ``lanes`` columns from ``column`` on."""

    @intrinsic
    def sum_lanes(
        typing: Any, weights: Any, index: Any, first: Any, last: Any, rows: Any, out: Any, column: Any
    ) -> Any:
        signature = types.void(weights, index, types.int64, types.int64, rows, out, types.int64)
        return signature, _generate

    def _generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        def array(place: int) -> Any:
            return context.make_array(signature.args[place])(context, builder, arguments[place])

        number = context.get_data_type(signature.args[4].dtype)
        vector, whole = ir.VectorType(number, lanes), ir.IntType(64)
        weights, index, rows, out = (array(place) for place in (0, 1, 4, 5))
        first, last, column = arguments[2], arguments[3], arguments[6]
        width = builder.extract_value(rows.shape, 1)
        spread = ir.Constant(ir.VectorType(ir.IntType(32), lanes), [0] * lanes)

        def at(pointer: Any, offset: Any) -> Any:
            return builder.bitcast(builder.gep(pointer, [offset]), vector.as_pointer())

        total = cgutils.alloca_once(builder, vector)
        builder.store(ir.Constant(vector, [0.0] * lanes), total)
        with cgutils.for_range_slice(builder, first, last, ir.Constant(whole, 1)) as (entry, _):
            row = builder.load(builder.gep(index.data, [entry]))
            row = builder.zext(row, whole) if row.type.width < 64 else row
            part = builder.load(at(rows.data, builder.add(builder.mul(row, width), column)), align=4)
            weight = builder.load(builder.gep(weights.data, [entry]))
            weight = builder.insert_element(ir.Constant(vector, ir.Undefined), weight, ir.Constant(ir.IntType(32), 0))
            weight = builder.shuffle_vector(weight, ir.Constant(vector, ir.Undefined), spread)
            product = builder.fmul(weight, part, flags=("contract",))
            builder.store(builder.fadd(builder.load(total), product, flags=("contract",)), total)
        builder.store(builder.load(total), at(out.data, column), align=4)
        return context.get_dummy_value()

    return sum_lanes


_sum32, _sum8 = _sum_of_lanes(32), _sum_of_lanes(8)


@numba.njit(nogil=True, cache=True, inline="always")
def weighted_sum(weights: Any, index: Any, first: Any, last: Any, rows: Any, out: Any) -> None:
    """Set out to Σ weights[e] · rows[index[e]], first ≤ e < last; rows [m, c] and out [c] without gaps, index ≥ 0."""
    column, width = np.int64(0), np.int64(out.size)
    while width - column >= 32:
        _sum32(weights, index, np.int64(first), np.int64(last), rows, out, column)
        column += 32
    while width - column >= 8:
        _sum8(weights, index, np.int64(first), np.int64(last), rows, out, column)
        column += 8
    while column < width:
        total = rows.dtype.type(0)
        for entry in range(first, last):
            total += weights[entry] * rows[np.uint64(index[entry]), column]
        out[column] = total
        column += 1


DTYPES = (torch.float32, torch.float64)
# Columns of a block: fewer are too few to vectorise, more do not fit the cache.
NARROW, WIDE = 8, 32
CHUNK = 64  # rows that a thread takes at a time


def spmm_power(csr: Tensor, H: Tensor, steps: int, order: Tensor | None) -> Tensor:
    """Return csr^steps H as :func:`graphpartner.kernels.spmm.spmm_power`, for a contiguous H and steps > 0.

    Rows are gathered and scattered by ``order`` while blocks are copied, which costs nothing.
    """
    out = H.new_empty(csr.shape[0], H.shape[1])
    order = torch.empty(0, dtype=torch.int64) if order is None else order
    arrays = [array.detach().numpy() for array in (csr.crow_indices(), csr.col_indices(), csr.values(), H, out, order)]
    if steps == 1 and not order.numel():
        _product(*arrays[:5])
    else:
        _power(*arrays, steps, _block_width(H.shape[1]))
    return out


def _block_width(columns: int) -> int:
    share = -(-columns // numba.get_num_threads())
    return min(WIDE, -(-share // NARROW) * NARROW)


@numba.njit(nogil=True, cache=True)
def _rows(crow: Any, col: Any, value: Any, source: Any, sink: Any, first: int, last: int) -> None:
    """Compute rows ``first`` to ``last`` of csr @ source."""
    for i in range(first, last):
        weighted_sum(value, col, crow[i], crow[i + 1], source, sink[i])


@numba.njit(parallel=True, nogil=True, cache=True)
def _product(crow: Any, col: Any, value: Any, source: Any, sink: Any) -> None:
    """Set sink to csr @ source, with rows distributed over the threads."""
    n = sink.shape[0]
    for chunk in numba.prange((n + CHUNK - 1) // CHUNK):
        _rows(crow, col, value, source, sink, chunk * CHUNK, min(n, (chunk + 1) * CHUNK))


@numba.njit(parallel=True, nogil=True, cache=True)
def _power(crow: Any, col: Any, value: Any, H: Any, out: Any, order: Any, steps: int, width: int) -> None:
    n, columns = H.shape
    for block in numba.prange((columns + width - 1) // width):
        first, last = block * width, min((block + 1) * width, columns)
        source, sink = np.empty((n, width), H.dtype), np.empty((n, width), H.dtype)
        for i in range(n):
            source[i, : last - first] = H[order[i] if order.size else i, first:last]
            source[i, last - first :] = 0
        for _ in range(steps):
            _rows(crow, col, value, source, sink, 0, n)
            source, sink = sink, source
        for i in range(n):
            out[order[i] if order.size else i, first:last] = source[i, : last - first]
