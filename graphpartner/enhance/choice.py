"""Which kernel, by cost: a few measured constants and the sizes of the graph, nothing that has to be computed first.

The constants were measured on two cores; only their ratios matter for the choice.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from scipy import sparse

from graphpartner.compiled import HAS_NUMBA
from graphpartner.enhance import dense_blocks, scipy_blocks
from graphpartner.enhance.features import Features

Kernel = Literal["popcount", "suffix", "dense", "scipy"]

WORD = 0.4e-9  # seconds for AND + popcount of one word, one thread
PAIR = 3.0e-9  # per candidate pair, whatever follows
PROBE = 1.6e-9  # per feature of a weighted row that is looked at
OUTPUT = 10e-9  # per kept pair
UNION = 0.8e-9  # per word of a union of bitsets that the last-level cache holds
UNION_FAR = 2.5e-9  # and of bitsets that it does not hold
CACHE = 2**24  # of what the last-level cache holds, a half: other programs use it, too
SCAN = 5e-9  # per word of a bitset, to find its ones
STEP = 2.5e-9  # per edge of a walk
UNORDERED = 10e-9  # per pair found by a walk: rows are read in no order
MULTIPLY = {  # per multiplication and addition of a dense product
    ("cpu", torch.float32): 2.5e-11,
    ("cpu", torch.float64): 5e-11,
    ("cuda", torch.float32): 5e-14,
    ("cuda", torch.float64): 5e-14,
}
DENSE_PAIR = {"cpu": 20e-9, "cuda": 2e-11}  # per cell of a dense block: screen and selection
SPARSE_MULTIPLY = 3e-9  # per multiplication of a sparse product in SciPy
MOST_SIZES = 4096  # of the popcount kernel's table over row sizes


@dataclass(frozen=True)
class Choice:
    """A kernel, how it finds who is near, and what it costs."""

    kernel: Kernel
    reach: str
    symmetric: bool
    fixed: float
    per_pair: float
    per_kept: float
    working_bytes: int
    why: str

    def seconds(self, pairs: float, kept: float) -> float:
        """The time for this many pairs within k hops, this many of them kept."""
        return self.fixed + self.per_pair * pairs + self.per_kept * kept


def choose(
    features: Features,
    A: sparse.csr_array,
    k: int,
    device: torch.device,
    memory: int,
    *,
    full_rows: bool = False,
    numba: bool | None = None,
) -> Choice:
    """The cheapest kernel that fits; ``full_rows`` forbids the ones that leave half of each row to be mirrored."""
    n = features.num_nodes
    pairs = float(min(n * n, _walks(A, k).sum()))  # no more than this are within k hops
    options = _options(features, A, k, device, memory, full_rows, HAS_NUMBA if numba is None else numba)
    if len(options) == 1:
        return options[0]
    return min(options, key=lambda option: option.seconds(pairs, 0.1 * pairs))


def _options(
    features: Features, A: sparse.csr_array, k: int, device: torch.device, memory: int, full_rows: bool, numba: bool
) -> list[Choice]:
    dense = _dense(features, A, k, device, memory)
    if device.type == "cuda":
        return [dense]
    options = [dense] if dense_blocks.dense_bytes(features) <= memory // 2 else []
    if not numba:
        return [*options, _scipy(features, A, k, memory)]
    if features.kind == "binary" and np.unique(np.diff(features.matrix.indptr)).size <= MOST_SIZES:
        options.append(_numba("popcount", features, A, k, memory, full_rows))
    return [*options, _numba("suffix", features, A, k, memory, full_rows)]


def is_symmetric(A: sparse.csr_array) -> bool:
    """Does every edge have its reverse?"""
    T = A.T.tocsr()  # canonical, as A is
    return bool(np.array_equal(A.indptr, T.indptr) and np.array_equal(A.indices, T.indices))


def _walks(A: sparse.csr_array, k: int) -> np.ndarray:
    """How many walks of at most k steps, waits included, end in each node: no fewer than the nodes they start from."""
    walks = np.ones(A.shape[0])
    for _ in range(k):
        walks = np.minimum(walks + A @ walks, 1e18)
    return walks


def _numba(
    kernel: Literal["popcount", "suffix"], features: Features, A: sparse.csr_array, k: int, memory: int, full: bool
) -> Choice:
    n, threads = features.num_nodes, max(1, torch.get_num_threads())
    symmetric = not full and is_symmetric(A)
    words = -(-n // 64)
    bit_bytes = 8 * n * words * (1 if k <= 3 else 2)
    walks = float(_walks(A, k).sum())
    union_seconds = (A.nnz + n) * words * (UNION if bit_bytes < CACHE else UNION_FAR) * max(1, k - 2)
    walk_seconds = min(STEP * walks, STEP * n * A.nnz) + UNORDERED * min(walks, n * n) / 2
    bitsets = k >= 2 and bit_bytes <= memory // 2 and union_seconds < walk_seconds
    per_row = features.matrix.nnz / max(1, n)
    if kernel == "popcount":
        cost = PAIR + WORD * min(1 + features.num_features // 64, 24)  # longer rows are ruled out by their signature
        rows_bytes = 8 * n * (1 + features.num_features // 64)
        why = "the rows are binary: AND and popcount decide in whole numbers"
    else:
        cost = PAIR + PROBE * (16 + 0.5 * per_row)
        rows_bytes = int(features.matrix.nnz * 22)
        why = "the rows are sparse and weighted: probes stop when the rest cannot reach the threshold"
    half = 0.5 if symmetric else 1.0
    scratch = threads * (16 * n + 16 * features.num_features)
    return Choice(
        kernel=kernel,
        reach="bitsets" if bitsets else "walks",
        symmetric=symmetric,
        fixed=union_seconds / threads + SCAN * n * words if bitsets else min(STEP * walks, STEP * n * A.nnz) / threads,
        per_pair=half * cost / threads,
        per_kept=OUTPUT / threads,
        working_bytes=rows_bytes + scratch + (bit_bytes if bitsets else 0),
        why=why,
    )


def _dense(features: Features, A: sparse.csr_array, k: int, device: torch.device, memory: int) -> Choice:
    n, d = features.num_nodes, features.num_features
    place = "cuda" if device.type == "cuda" else "cpu"
    dtype = dense_blocks.product_dtype(features)
    held = dense_blocks.dense_bytes(features)
    rows = dense_blocks.rows_within(max(1, memory - held), features)
    cells = float(n) * n
    return Choice(
        kernel="dense",
        reach="products",
        symmetric=False,
        fixed=cells * (d * MULTIPLY[place, dtype] + DENSE_PAIR[place])
        + k * (A.nnz + n) * n * MULTIPLY[place, dtype] * 20,
        per_pair=0.0,
        per_kept=OUTPUT if place == "cpu" else 0.0,
        working_bytes=held + rows * (dense_blocks.BYTES_PER_PAIR * n + 8 * d),
        why="on CUDA everything is a blocked product" if place == "cuda" else "the rows are dense",
    )


def _scipy(features: Features, A: sparse.csr_array, k: int, memory: int) -> Choice:
    n = features.num_nodes
    rows = scipy_blocks.rows_within(memory, n)
    column_sizes = np.bincount(features.matrix.indices, minlength=features.num_features).astype(np.float64)
    return Choice(
        kernel="scipy",
        reach="products",
        symmetric=False,
        fixed=SPARSE_MULTIPLY * float(np.square(column_sizes).sum()),
        per_pair=10 * SPARSE_MULTIPLY,
        per_kept=10 * SPARSE_MULTIPLY,
        working_bytes=rows * n * scipy_blocks.BYTES_PER_PAIR,
        why="numba is not installed and the rows are sparse",
    )
