"""The dry run: how many pairs, how large a result, how long, and by which kernel, before anything is computed."""

import time
from dataclasses import dataclass, replace

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from graphpartner.enhance import scipy_blocks
from graphpartner.enhance.choice import Choice, choose
from graphpartner.enhance.features import read_features
from graphpartner.enhance.memory import ENTRY, readable, working_memory
from graphpartner.enhance.ties import Rule
from graphpartner.errors import InputError
from graphpartner.graph.adjacency import adjacency

PAIRS_AT_A_TIME = 2_000_000


@dataclass(frozen=True)
class JoinPlan:
    """What :func:`attribute_graph` would do, estimated from sampled rows.

    ``pairs`` counts ordered pairs within k hops without self pairs, ``kept`` those of them that reach the threshold;
    ``pairs_error`` and ``kept_error`` are one standard error (0 when every row was looked at). ``seconds`` holds for a
    machine that has nothing else to do: what was measured while reading, and what the constants of
    :mod:`graphpartner.enhance.choice` say of the rest.
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
    choice: Choice

    @property
    def kernel(self) -> str:
        """The kernel that would do it."""
        return self.choice.kernel

    def explain(self) -> str:
        """The plan in a few lines for a person."""
        return "\n".join(
            [
                f"{self.num_nodes:,} nodes, {self.sampled_rows:,} rows sampled",
                f"pairs within k hops: {self.pairs:,.0f} ± {self.pairs_error:,.0f}",
                f"pairs kept:          {self.kept:,.0f} ± {self.kept_error:,.0f}",
                f"result {readable(self.output_bytes)}, working memory {readable(self.working_bytes)}, "
                f"about {self.seconds:.2g} s",
                f"kernel: {self.choice.kernel} ({self.choice.reach}), because {self.choice.why}",
            ]
        )


def plan_join(
    x: Tensor,
    edge_index: Tensor,
    k: int = 3,
    threshold: float = 0.4,
    *,
    sample: int = 64,
    seed: int = 0,
    memory: int | None = None,
    device: torch.device | str | None = None,
) -> JoinPlan:
    """Estimate the join of :func:`attribute_graph` from ``sample`` random rows, without doing it."""
    from graphpartner.enhance.join import check_arguments

    check_arguments(k, threshold, None)
    if isinstance(sample, bool) or not isinstance(sample, int) or sample < 1:
        raise InputError(f"sample must be a positive number of rows, got {sample!r}")
    place = torch.device(device) if device is not None else x.device
    start = time.perf_counter()
    features = read_features(x)
    A = adjacency(edge_index, features.num_nodes)
    choice = choose(features, A, k, place, working_memory(memory, place))
    reading = time.perf_counter() - start  # the join begins with the same; on small graphs it is most of its time
    plan = estimate(Rule(features, threshold), A, k, choice, sample, seed)
    return replace(plan, seconds=plan.seconds + reading)


def estimate(rule: Rule, A: sparse.csr_array, k: int, choice: Choice, sample: int, seed: int) -> JoinPlan:
    """The plan for a kernel already chosen."""
    n = rule.features.num_nodes
    rows = np.sort(np.random.default_rng(seed).choice(n, size=min(sample, n), replace=False))
    pairs, kept = _sampled_counts(rule, A, rows, k)
    (total_pairs, pairs_error), (total_kept, kept_error) = _total(pairs, n), _total(kept, n)
    output = int(ENTRY * (total_kept + n) + 8 * (n + 1))
    return JoinPlan(
        num_nodes=n,
        sampled_rows=rows.size,
        pairs=total_pairs,
        pairs_error=pairs_error,
        kept=total_kept,
        kept_error=kept_error,
        output_bytes=output,
        working_bytes=choice.working_bytes + int(8 * total_kept) // (2 if choice.symmetric else 1),
        seconds=choice.seconds(total_pairs, total_kept),
        choice=choice,
    )


def _sampled_counts(rule: Rule, A: sparse.csr_array, rows: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """For each sampled row, how many others are within k hops and how many of those reach the threshold."""
    n = rule.features.num_nodes
    pairs, kept = np.zeros(rows.size), np.zeros(rows.size)
    step = max(1, PAIRS_AT_A_TIME // max(1, n))
    for start in range(0, rows.size, step):
        block = rows[start : start + step]
        near = scipy_blocks.reach_rows(A, block, k).tocoo()
        i, j = block[near.row], near.col
        other = i != j
        of_row, i, j = near.row[other] + start, i[other], j[other]
        pairs += np.bincount(of_row, minlength=rows.size)
        kept += np.bincount(of_row[rule.keep(rule.features.dots(i, j), i, j)], minlength=rows.size)
    return pairs, kept


def _total(counts: np.ndarray, n: int) -> tuple[float, float]:
    """The sum over all rows from a sample without replacement, and its standard error."""
    m = counts.size
    if m == 0:
        return 0.0, 0.0
    spread = counts.std(ddof=1) if 1 < m < n else 0.0
    return float(counts.mean() * n), float(n * spread / np.sqrt(m) * np.sqrt(1 - m / n))
