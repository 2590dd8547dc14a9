"""Σ_e w_e · row(j_e) on a CPU: the inner loop of every sparse product. Imported only where numba is installed.

Written as a plain loop, the sum is read from memory and written back for every entry, since the compiler cannot know
that the result does not overlap the rows. Here 32 columns at a time (then 8) are kept in vector registers until the
last entry was added: half the time. Entries are added in their order, so a sum does not depend on threads or blocks.

Sparse × dense products on a CPU, in numba. Imported only where numba is installed.

Columns do not depend on each other, so every thread takes a block of them through all steps: the threads never wait
for each other, and a block of H stays in the cache. Every sum runs in the order of its row's entries, so the result
does not depend on the number of threads.
"""

from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic
from torch import Tensor


def _sum_of_lanes(lanes: int) -> Any:
    """A function (weights, index, first, last, rows, out, column) that sums ``lanes`` columns from ``column`` on."""

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
    """Out = Σ weights[e] · rows[index[e]] for first ≤ e < last; rows [m, c] and out [c] without gaps, index ≥ 0."""
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


# Columns of a block: fewer leave too little to vectorise, more leave the cache.
NARROW, WIDE = 8, 32
CHUNK = 64  # rows that a thread takes at a time


def spmm_power(csr: Tensor, H: Tensor, steps: int, order: Tensor) -> Tensor:
    """csr^steps H for a torch sparse CSR tensor, a contiguous H [m, c] and steps > 0.

    Row i of the matrix stands for row ``order[i]`` of H and of the result (an empty order: for row i); the rows are
    gathered and scattered while the blocks are copied anyway.
    """
    out = H.new_empty(csr.shape[0], H.shape[1])
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
    """Rows ``first`` to ``last`` of csr @ source."""
    for i in range(first, last):
        weighted_sum(value, col, crow[i], crow[i + 1], source, sink[i])


@numba.njit(parallel=True, nogil=True, cache=True)
def _product(crow: Any, col: Any, value: Any, source: Any, sink: Any) -> None:
    """Sink = csr @ source, rows shared out among the threads."""
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
