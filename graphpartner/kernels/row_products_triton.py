"""Row-wise inner products on a GPU, in Triton."""

import triton
import triton.language as tl
from torch import Tensor

ROWS, WARPS = 16, 4  # rows of one program


@triton.jit(do_not_specialize=["rows", "replicas"])
def _products(
    H, G, dots, own, other, rows, replicas, h_replica, h_row, g_replica, g_row, WIDTH: tl.constexpr,
    LANES: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    place = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)  # row-major over [n, R]
    i, r = place // replicas, place % replicas
    lane = tl.arange(0, LANES)
    mask = (place < rows * replicas)[:, None] & (lane < WIDTH)[None, :]
    h = tl.load(H + (i * h_row + r * h_replica)[:, None] + lane[None, :], mask=mask, other=0)
    g = tl.load(G + (i * g_row + r * g_replica)[:, None] + lane[None, :], mask=mask, other=0)
    target = r * rows + i
    tl.store(dots + target, tl.sum(h * g, 1), mask=place < rows * replicas)
    tl.store(own + target, tl.sum(h * h, 1), mask=place < rows * replicas)
    tl.store(other + target, tl.sum(g * g, 1), mask=place < rows * replicas)


@triton.jit(do_not_specialize=["rows", "replicas"])
def _gradient(
    H, G, dots, own, other, by_h, by_g, rows, replicas, h_replica, h_row, g_replica, g_row, WIDTH: tl.constexpr,
    LANES: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    place = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    i, r = place // replicas, place % replicas
    lane = tl.arange(0, LANES)
    inside = place < rows * replicas
    mask = inside[:, None] & (lane < WIDTH)[None, :]
    h = tl.load(H + (i * h_row + r * h_replica)[:, None] + lane[None, :], mask=mask, other=0)
    g = tl.load(G + (i * g_row + r * g_replica)[:, None] + lane[None, :], mask=mask, other=0)
    source = r * rows + i
    a = tl.load(dots + source, mask=inside, other=0)[:, None]
    b = 2 * tl.load(own + source, mask=inside, other=0)[:, None]
    c = 2 * tl.load(other + source, mask=inside, other=0)[:, None]
    out = (place * WIDTH)[:, None] + lane[None, :]
    tl.store(by_h + out, a * g + b * h, mask=mask)
    tl.store(by_g + out, a * h + c * g, mask=mask)


def row_products(H: Tensor, G: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return ⟨h_i, g_i⟩, ⟨h_i, h_i⟩ and ⟨g_i, g_i⟩ for H and G [..., n, h]."""
    h, g = _three(H), _three(G)
    replicas, rows, width = h.shape
    dots, own, other = (H.new_empty(H.shape[:-1]) for _ in range(3))
    _products[(triton.cdiv(rows * replicas, ROWS),)](
        h, g, dots, own, other, rows, replicas, h.stride(0), h.stride(1), g.stride(0), g.stride(1), width,
        triton.next_power_of_2(width), ROWS, num_warps=WARPS,
    )  # fmt: skip
    return dots, own, other


def row_products_gradient(H: Tensor, G: Tensor, dots: Tensor, own: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
    """Return the gradients by H and G, in memory [n, R, h]."""
    h, g = _three(H), _three(G)
    replicas, rows, width = h.shape
    by_h, by_g = (H.new_empty(rows, replicas, width) for _ in range(2))
    weights = (part.contiguous() for part in (dots, own, other))
    _gradient[(triton.cdiv(rows * replicas, ROWS),)](
        h, g, *weights, by_h, by_g, rows, replicas, h.stride(0), h.stride(1), g.stride(0), g.stride(1), width,
        triton.next_power_of_2(width), ROWS, num_warps=WARPS,
    )  # fmt: skip
    return by_h.transpose(0, 1).reshape(H.shape), by_g.transpose(0, 1).reshape(G.shape)


def _three(H: Tensor) -> Tensor:
    """Return H as [R, n, h], contiguous in the last dimension."""
    H = H if H.dim() == 3 else H[None]
    return H if H.stride(2) == 1 else H.contiguous()
