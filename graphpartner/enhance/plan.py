"""The dry run of an enhancement: number of pairs, size of the result, time and kernel, before anything is computed.

The kernel of the join (Eq. 7) is chosen by cost, from the sizes of the graph and a few constants that were measured on
two cores; only their ratios matter for the choice.
"""

import math
import time
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from graphpartner.enhance import dense_join, scipy_join
from graphpartner.enhance.features import Features, read_features
from graphpartner.enhance.rule import Rule
from graphpartner.graph.adjacency import adjacency, is_symmetric
from graphpartner.system.device import free_memory
from graphpartner.system.errors import InputError
from graphpartner.system.parallel import HAS_NUMBA
from graphpartner.system.progress import format_bytes

Kernel = Literal["binary", "weighted", "dense", "scipy"]

ENTRY_BYTES = 12  # of one entry of the result: an int64 column and a float32 cosine
PAIRS_AT_A_TIME = 2_000_000  # of sampled rows


@dataclass(frozen=True)
class KernelChoice:
    """A kernel of the join, how it finds the nodes within k hops, and its cost in seconds and bytes."""

    kernel: Kernel
    reach: Literal["bitsets", "walks", "products"]
    symmetric: bool
    fixed: float
    per_pair: float
    per_kept: float
    working_bytes: int
    why: str

    def seconds(self, pairs: float, kept: float) -> float:
        """Return the time for a number of pairs within k hops and a number of pairs kept."""
        return self.fixed + self.per_pair * pairs + self.per_kept * kept


@dataclass(frozen=True)
class EnhancementPlan:
    """What :func:`attribute_graph` would do, estimated from sampled rows.

    ``pairs`` counts ordered pairs within k hops without self pairs, ``kept`` those that reach the threshold;
    ``pairs_error`` and ``kept_error`` are one standard error, 0 if every row was sampled. ``seconds`` assumes an idle
    machine: the measured time of reading the features and edges, plus the estimated time of the join.
    """

    num_nodes: int
    sampled_rows: int
    pairs: float
    pairs_error: float
    kept: float
    kept_error: float
    output_bytes: int
    working_bytes: int
    seconds: float
    choice: KernelChoice

    @property
    def kernel(self) -> Kernel:
        """The kernel that would be used."""
        return self.choice.kernel

    def explain(self) -> str:
        """Return the plan as a few lines of text."""
        size, working = format_bytes(self.output_bytes), format_bytes(self.working_bytes)
        return (
            f"{self.num_nodes:,} nodes, {self.sampled_rows:,} rows sampled\n"
            f"pairs within k hops: {self.pairs:,.0f} ± {self.pairs_error:,.0f}\n"
            f"pairs kept:          {self.kept:,.0f} ± {self.kept_error:,.0f}\n"
            f"result {size}, working memory {working}, about {self.seconds:.2g} s\n"
            f"kernel: {self.kernel} ({self.choice.reach}), because {self.choice.why}"
        )


def plan_enhancement(
    x: Tensor,
    edge_index: Tensor,
    k: int = 3,
    threshold: float = 0.4,
    *,
    sample: int = 64,
    seed: int = 0,
    memory: int | None = None,
    device: torch.device | str | None = None,
) -> EnhancementPlan:
    """Estimate the join of :func:`attribute_graph` from ``sample`` random rows, without computing it."""
    check_arguments(k, threshold, None)
    if isinstance(sample, bool) or not isinstance(sample, int) or sample < 1:
        raise InputError(f"sample = {sample!r}: must be a number of rows, 1 or more")
    place = torch.device(device) if device is not None else x.device
    start = time.perf_counter()
    features = read_features(x)
    A = adjacency(edge_index, features.num_nodes)
    choice = choose_kernel(features, A, k, place, working_memory(memory, place))
    reading = time.perf_counter() - start  # the join begins with the same; on small graphs it is most of its time
    plan = estimate(Rule(features, threshold), A, k, choice, sample, seed)
    return replace(plan, seconds=plan.seconds + reading)


def estimate(rule: Rule, A: sparse.csr_array, k: int, choice: KernelChoice, sample: int, seed: int) -> EnhancementPlan:
    """Return the plan for a given kernel."""
    n = rule.features.num_nodes
    rows = np.sort(np.random.default_rng(seed).choice(n, size=min(sample, n), replace=False))
    pairs, kept = _sampled_counts(rule, A, rows, k)
    (total_pairs, pairs_error), (total_kept, kept_error) = _total(pairs, n), _total(kept, n)
    return EnhancementPlan(
        num_nodes=n,
        sampled_rows=rows.size,
        pairs=total_pairs,
        pairs_error=pairs_error,
        kept=total_kept,
        kept_error=kept_error,
        output_bytes=int(ENTRY_BYTES * (total_kept + n) + 8 * (n + 1)),
        working_bytes=choice.working_bytes + int(8 * total_kept) // (2 if choice.symmetric else 1),
        seconds=choice.seconds(total_pairs, total_kept),
        choice=choice,
    )


def _sampled_counts(rule: Rule, A: sparse.csr_array, rows: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return, per sampled row, the number of others within k hops and of those that reach the threshold."""
    n = rule.features.num_nodes
    pairs, kept = np.zeros(rows.size), np.zeros(rows.size)
    step = max(1, PAIRS_AT_A_TIME // max(1, n))
    for start in range(0, rows.size, step):
        block = rows[start : start + step]
        near = scipy_join.reach_rows(A, block, k).tocoo()
        i, j = block[near.row], near.col
        other = i != j
        of_row, i, j = near.row[other] + start, i[other], j[other]
        pairs += np.bincount(of_row, minlength=rows.size)
        kept += np.bincount(of_row[rule.keep(rule.features.dots(i, j), i, j)], minlength=rows.size)
    return pairs, kept


def _total(counts: np.ndarray, n: int) -> tuple[float, float]:
    """Return the sum over all n rows, estimated from a sample without replacement, and its standard error."""
    m = counts.size
    if m == 0:
        return 0.0, 0.0
    spread = counts.std(ddof=1) if 1 < m < n else 0.0
    return float(counts.mean() * n), float(n * spread / np.sqrt(m) * np.sqrt(1 - m / n))


# Costs in seconds on one thread
WORD = 0.4e-9  # per word of AND + popcount
PAIR = 3.0e-9  # per candidate pair, whatever follows
PROBE = 1.6e-9  # per feature of a weighted row that is read
OUTPUT = 10e-9  # per kept pair
UNION = 0.8e-9  # per word of a union of bitsets that fit the last-level cache
UNION_FAR = 2.5e-9  # and of bitsets that do not
CACHE = 2**24  # bytes: half of the last-level cache, since other programs use it too
SCAN = 5e-9  # per word of a bitset, to find its ones
STEP = 2.5e-9  # per edge of a walk
UNORDERED = 10e-9  # per pair found by a walk, whose rows are read in no order
MULTIPLY = {  # per multiplication and addition of a dense product
    ("cpu", torch.float32): 2.5e-11,
    ("cpu", torch.float64): 5e-11,
    ("cuda", torch.float32): 5e-14,
    ("cuda", torch.float64): 5e-14,
}
DENSE_PAIR = {"cpu": 20e-9, "cuda": 2e-11}  # per cell of a dense block: screen and selection
SPARSE_MULTIPLY = 3e-9  # per multiplication of a sparse product in SciPy
MAX_ROW_SIZES = 4096  # the binary kernel has a table over pairs of distinct row sizes


def choose_kernel(
    features: Features, A: sparse.csr_array, k: int, device: torch.device, memory: int, *, full_rows: bool = False
) -> KernelChoice:
    """Return the cheapest kernel that fits in memory; ``full_rows`` rules out computing the pairs j > i alone."""
    n = features.num_nodes
    dense = _dense(features, A, k, device, memory)
    if device.type == "cuda":
        return dense
    options = [dense] if dense_join.dense_bytes(features) <= memory // 2 else []
    if not HAS_NUMBA:
        options.append(_scipy(features, memory))
    else:
        if features.kind == "binary" and np.unique(np.diff(features.matrix.indptr)).size <= MAX_ROW_SIZES:
            options.append(_numba("binary", features, A, k, memory, full_rows))
        options.append(_numba("weighted", features, A, k, memory, full_rows))
    pairs = float(min(n * n, _walks(A, k).sum()))  # an upper bound of those within k hops
    return min(options, key=lambda option: option.seconds(pairs, 0.1 * pairs))


def _walks(A: sparse.csr_array, k: int) -> np.ndarray:
    """Return, per node, the number of walks of at most k steps that end in it: no fewer than nodes within k hops."""
    walks = np.ones(A.shape[0])
    for _ in range(k):
        walks = np.minimum(walks + A @ walks, 1e18)
    return walks


def _numba(
    kernel: Literal["binary", "weighted"], features: Features, A: sparse.csr_array, k: int, memory: int, full: bool
) -> KernelChoice:
    n, threads = features.num_nodes, max(1, torch.get_num_threads())
    symmetric = not full and is_symmetric(A)
    words = -(-n // 64)
    bit_bytes = 8 * n * words * (1 if k <= 3 else 2)
    walks = float(_walks(A, k).sum())
    union_seconds = (A.nnz + n) * words * (UNION if bit_bytes < CACHE else UNION_FAR) * max(1, k - 2)
    walk_seconds = min(STEP * walks, STEP * n * A.nnz) + UNORDERED * min(walks, n * n) / 2
    bitsets = k >= 2 and bit_bytes <= memory // 2 and union_seconds < walk_seconds
    per_row = features.matrix.nnz / max(1, n)
    if kernel == "binary":
        cost = PAIR + WORD * min(1 + features.num_features // 64, 24)  # longer rows are ruled out by their signature
        rows_bytes = 8 * n * (1 + features.num_features // 64)
        why = "the rows are binary: AND and popcount decide in whole numbers"
    else:
        cost = PAIR + PROBE * (16 + 0.5 * per_row)
        rows_bytes = int(features.matrix.nnz * 22)
        why = "the rows are sparse and weighted: probes stop when the rest cannot reach the threshold"
    half = 0.5 if symmetric else 1.0
    scratch = threads * (16 * n + 16 * features.num_features)
    return KernelChoice(
        kernel=kernel,
        reach="bitsets" if bitsets else "walks",
        symmetric=symmetric,
        fixed=union_seconds / threads + SCAN * n * words if bitsets else min(STEP * walks, STEP * n * A.nnz) / threads,
        per_pair=half * cost / threads,
        per_kept=OUTPUT / threads,
        working_bytes=rows_bytes + scratch + (bit_bytes if bitsets else 0),
        why=why,
    )


def _dense(features: Features, A: sparse.csr_array, k: int, device: torch.device, memory: int) -> KernelChoice:
    n, d = features.num_nodes, features.num_features
    place = "cuda" if device.type == "cuda" else "cpu"
    multiply = MULTIPLY[place, dense_join.product_dtype(features)]
    held = dense_join.dense_bytes(features)
    rows = dense_join.rows_within(max(1, memory - held), features)
    cells = float(n) * n
    return KernelChoice(
        kernel="dense",
        reach="products",
        symmetric=False,
        fixed=cells * (d * multiply + DENSE_PAIR[place]) + k * (A.nnz + n) * n * multiply * 20,
        per_pair=0.0,
        per_kept=OUTPUT if place == "cpu" else 0.0,
        working_bytes=held + rows * (dense_join.BYTES_PER_PAIR * n + 8 * d),
        why="on CUDA everything is a blocked product" if place == "cuda" else "the rows are dense",
    )


def _scipy(features: Features, memory: int) -> KernelChoice:
    n = features.num_nodes
    column_sizes = np.bincount(features.matrix.indices, minlength=features.num_features).astype(np.float64)
    return KernelChoice(
        kernel="scipy",
        reach="products",
        symmetric=False,
        fixed=SPARSE_MULTIPLY * float(np.square(column_sizes).sum()),
        per_pair=10 * SPARSE_MULTIPLY,
        per_kept=10 * SPARSE_MULTIPLY,
        working_bytes=scipy_join.rows_within(memory, n) * n * scipy_join.BYTES_PER_PAIR,
        why="numba is not installed and the rows are sparse",
    )


def working_memory(memory: int | None, device: torch.device) -> int:
    """Return ``memory`` if it is given and valid, otherwise a quarter of the free bytes."""
    if memory is None:
        return free_memory(device) // 4
    if isinstance(memory, bool) or not isinstance(memory, int) or memory <= 0:
        raise InputError(f"memory = {memory!r}: must be a number of bytes, 1 or more")
    return memory


def output_memory(memory: int, device: torch.device) -> int:
    """Return the largest allowed size of the result: a quarter of the free bytes, or ``memory`` if that is more."""
    return max(memory, free_memory(device) // 4)


def check_arguments(k: int, threshold: float, top: int | None) -> None:
    """Raise :class:`InputError` for an invalid k, threshold or top."""
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 0:
        raise InputError(f"k = {k!r}: must be a whole number of hops, 0 or more")
    valid = isinstance(threshold, (int, float, np.floating)) and not isinstance(threshold, bool)
    if not valid or math.isnan(threshold) or not 0 < threshold <= 1:
        raise InputError(f"threshold = {threshold!r}: must be a cosine, 0 < threshold ≤ 1")
    if top is not None and (isinstance(top, bool) or not isinstance(top, (int, np.integer)) or top < 0):
        raise InputError(f"top = {top!r}: must be a number of pairs per row, 0 or more")
