"""Σ_e w_e · row(j_e) on a CPU: the inner loop of every sparse product. Imported only where numba is installed.

Written as a plain loop, the sum is read from memory and written back for every entry, since the compiler cannot know
that the result does not overlap the rows. Here 32 columns at a time (then 8) are kept in vector registers until the
last entry was added: half the time. Entries are added in their order, so a sum does not depend on threads or blocks.
"""

from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic


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
