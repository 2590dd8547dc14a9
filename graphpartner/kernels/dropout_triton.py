"""Dropout by counter-based draws on a GPU, in Triton; X̃ W is computed without storing X̃.

Hidden states lie in memory as [n, R, h], weights as [R, d, h].
"""

import triton
import triton.language as tl
from torch import Tensor

# Entries of a sparse row fetched at once, and by how many warps: the fastest on an H200
MANY_ROWS = {"ENTRIES": 32, "num_warps": 1}
FEW_ROWS = {"ENTRIES": 128, "num_warps": 4}
FEW = 7_000  # rows of all replicas: with one warp each, fewer would leave most of the GPU idle


@triton.jit
def random_bits(counter, key0, key1):
    """Return the hash of :func:`graphpartner.kernels.draws.bits` for every entry."""
    x = counter.to(tl.uint32) ^ key0.to(tl.uint32, bitcast=True)
    x = x ^ (x >> 16)
    x = x * 0x7FEB352D
    x = x ^ (x >> 15)
    x = (x + key1.to(tl.uint32, bitcast=True)) * 0x846CA68B
    x = x ^ (x >> 16)
    return x.to(tl.int32, bitcast=True)


@triton.jit(do_not_specialize=["replicas", "total"])
def _dropped(
    H, key, below, scale, out, replicas, total, stride_replica, stride_row, WIDTH: tl.constexpr, BLOCK: tl.constexpr
):
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = place < total
    column = place % WIDTH
    replica = (place // WIDTH) % replicas
    row = place // (WIDTH * replicas)
    key0 = tl.load(key + 2 * replica, mask=inside, other=0)
    key1 = tl.load(key + 2 * replica + 1, mask=inside, other=0)
    drawn = random_bits(row * WIDTH + column, key0, key1)
    kept = inside & (drawn < tl.load(below + replica, mask=inside, other=0))
    value = tl.load(H + replica * stride_replica + row * stride_row + column, mask=kept, other=0)
    factor = tl.load(scale + replica, mask=inside, other=0)
    tl.store(out + place, value * factor, mask=inside)


@triton.jit(do_not_specialize=["replicas", "columns"])
def _dropped_product(
    crow, col, value, W, key, below, scale, out, replicas, columns, WIDTH: tl.constexpr, LANES: tl.constexpr,
    ENTRIES: tl.constexpr,
):  # fmt: skip
    i, r = tl.program_id(0), tl.program_id(1)
    lane = tl.arange(0, LANES)
    key0, key1 = tl.load(key + 2 * r), tl.load(key + 2 * r + 1)
    limit, factor = tl.load(below + r), tl.load(scale + r)
    weights = W + r.to(tl.int64) * columns * WIDTH
    total = tl.zeros([LANES], tl.float32)
    end = tl.load(crow + i + 1)
    for start in range(tl.load(crow + i), end, ENTRIES):
        entry = start + tl.arange(0, ENTRIES)
        inside = entry < end
        j = tl.load(col + entry, mask=inside, other=0)
        kept = inside & (random_bits(i.to(tl.int64) * columns + j, key0, key1) < limit)
        weight = tl.load(value + entry, mask=kept, other=0) * factor
        rows = tl.load(
            weights + j[:, None] * WIDTH + lane[None, :], mask=kept[:, None] & (lane < WIDTH)[None, :], other=0
        )
        total += tl.sum(rows * weight[:, None], 0)
    tl.store(out + (i.to(tl.int64) * replicas + r) * WIDTH + lane, total, mask=lane < WIDTH)


@triton.jit(do_not_specialize=["replicas", "columns"])
def _dropped_gradient(
    crow, col, value, G, key, below, scale, out, replicas, columns, stride_replica, stride_row,
    WIDTH: tl.constexpr, LANES: tl.constexpr, ENTRIES: tl.constexpr,
):  # fmt: skip
    j, r = tl.program_id(0), tl.program_id(1)
    lane = tl.arange(0, LANES)
    key0, key1 = tl.load(key + 2 * r), tl.load(key + 2 * r + 1)
    limit, factor = tl.load(below + r), tl.load(scale + r)
    gradients = G + r.to(tl.int64) * stride_replica
    total = tl.zeros([LANES], tl.float32)
    end = tl.load(crow + j + 1)
    for start in range(tl.load(crow + j), end, ENTRIES):
        entry = start + tl.arange(0, ENTRIES)
        inside = entry < end
        i = tl.load(col + entry, mask=inside, other=0).to(tl.int64)
        kept = inside & (random_bits(i * columns + j, key0, key1) < limit)
        weight = tl.load(value + entry, mask=kept, other=0) * factor
        rows = tl.load(
            gradients + i[:, None] * stride_row + lane[None, :], mask=kept[:, None] & (lane < WIDTH)[None, :], other=0
        )
        total += tl.sum(rows * weight[:, None], 0)
    tl.store(out + (r.to(tl.int64) * columns + j) * WIDTH + lane, total, mask=lane < WIDTH)


def dropped(H: Tensor, key: Tensor, below: Tensor, scale: Tensor) -> Tensor:
    """Return H [R, n, h] with dropped entries at zero and the others scaled, in memory [n, R, h]."""
    replicas, n, width = H.shape
    if H.stride(2) != 1:
        H = H.contiguous()
    out = H.new_empty(n, replicas, width)
    block = 1024
    grid = (triton.cdiv(out.numel(), block),)
    _dropped[grid](H, key, below, scale, out, replicas, out.numel(), H.stride(0), H.stride(1), width, block)
    return out.transpose(0, 1)


def dropped_product(csr: Tensor, W: Tensor, key: Tensor, below: Tensor, scale: Tensor) -> Tensor:
    """Return X̃ W for X in CSR and W [R, d, h]: [R, n, h], in memory [n, R, h]."""
    (replicas, columns, width), n = W.shape, csr.shape[0]
    out = W.new_empty(n, replicas, width)
    _dropped_product[(n, replicas)](
        *_parts(csr), W.contiguous(), key, below, scale, out, replicas, columns, width, triton.next_power_of_2(width),
        **MANY_ROWS,
    )  # fmt: skip
    return out.transpose(0, 1)


def dropped_product_gradient(transpose: Tensor, G: Tensor, key: Tensor, below: Tensor, scale: Tensor) -> Tensor:
    """Return X̃ᵀ G for Xᵀ in CSR and G [R, n, h]: [R, d, h]."""
    replicas, _, width = G.shape
    columns = transpose.shape[0]
    if G.stride(2) != 1:
        G = G.contiguous()
    out = G.new_empty(replicas, columns, width)
    _dropped_gradient[(columns, replicas)](
        *_parts(transpose), G, key, below, scale, out, replicas, columns, G.stride(0), G.stride(1), width,
        triton.next_power_of_2(width),
        **(FEW_ROWS if columns * replicas < FEW else MANY_ROWS),
    )  # fmt: skip
    return out


def _parts(csr: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return csr.crow_indices(), csr.col_indices(), csr.values()
