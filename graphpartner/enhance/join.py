"""The front door of the k-hop cosine join: A_attr of Eq. 7."""

from collections.abc import Callable, Iterable, Iterator

import torch
from scipy import sparse
from torch import Tensor

from graphpartner.enhance import dense_join, scipy_join
from graphpartner.enhance.blocks import Block, join_blocks, largest_of_each_row, mirrored
from graphpartner.enhance.features import read_features
from graphpartner.enhance.plan import (
    ENTRY,
    KernelChoice,
    check_arguments,
    choose_kernel,
    estimate,
    output_memory,
    working_memory,
)
from graphpartner.enhance.rule import Rule
from graphpartner.graph.adjacency import adjacency, csr
from graphpartner.graph.checks import check_edges
from graphpartner.system.errors import InputError
from graphpartner.system.parallel import map_ranges, num_threads, ranges
from graphpartner.system.progress import Progress, format_bytes, silent

SAMPLE = 64  # rows looked at before a join whose result might not fit


def attribute_graph(
    x: Tensor,
    edge_index: Tensor,
    k: int = 3,
    threshold: float = 0.4,
    *,
    memory: int | None = None,
    top: int | None = None,
    progress: Progress = silent,
    device: torch.device | str | None = None,
) -> Tensor:
    r"""The attribute graph A_attr (Eq. 7): cosines of nodes within k hops that reach a threshold.

    .. math::
        a_{ij} = \frac{x_i \cdot x_j}{\|x_i\| \|x_j\|} \quad
        \text{if } j \text{ reaches } i \text{ within } k \text{ steps and } a_{ij} \ge t

    Rows receive, as in :mod:`graphpartner.graph.adjacency`. Every node keeps its self pair with weight 1; a node
    without features keeps nothing else. Edge weights, duplicates and self-loops do not matter. Pairs exactly at the
    threshold are kept, decided as :mod:`graphpartner.enhance.rule` says.

    Args:
        x: feature rows, dense or torch sparse CSR.
        edge_index: edges, sources above targets, shape [2, E].
        k: how many hops away a node may be.
        threshold: the least cosine t, 0 < t ≤ 1.
        memory: bytes of working memory beside the result; by default a quarter of what is free. The result itself may
            take a quarter of what is free, or ``memory`` where that is more.
        top: keep at most this many pairs of each row, the largest, besides the self pair; of equals the smaller column.
        progress: called with (rows done, rows).
        device: where to compute and return the result; by default where ``x`` is.

    Returns:
        A torch sparse CSR tensor of float32 cosines, columns sorted, not normalised.

    Raises:
        InputError: an argument is not valid, or the result would be too large.
    """
    check_arguments(k, threshold, top)
    features = read_features(x)
    check_edges(edge_index, features.num_nodes)
    place = torch.device(device) if device is not None else x.device
    allowed = working_memory(memory, place)
    A = adjacency(edge_index, features.num_nodes)
    choice = choose_kernel(features, A, k, place, allowed, full_rows=top is not None)
    rule = Rule(features, float(threshold))
    limit = output_memory(allowed, place)
    check_output(rule, A, k, choice, top, limit)
    return run_join(rule, A, k, choice, memory=allowed, limit=limit, top=top, progress=progress, device=place)


def check_output(rule: Rule, A: sparse.csr_array, k: int, choice: KernelChoice, top: int | None, limit: int) -> None:
    """Raise :class:`InputError` if sampled rows say that the result would not fit."""
    n = rule.features.num_nodes
    per_row = n if top is None else min(n, top + 1)
    if ENTRY * n * per_row <= limit:
        return
    size = estimate(rule, A, k, choice, SAMPLE, seed=0).output_bytes
    if top is not None:
        size = min(size, ENTRY * n * per_row)
    if size > limit:
        raise InputError(_too_large(size, limit, rule.threshold))


def _too_large(size: float, limit: int, threshold: float) -> str:
    return (
        f"the attribute graph at threshold {threshold} would take about {format_bytes(size)}, "
        f"{format_bytes(limit)} are allowed: keep the largest of each row with top=, raise threshold, "
        "or allow more with memory="
    )


def run_join(
    rule: Rule,
    A: sparse.csr_array,
    k: int,
    choice: KernelChoice,
    *,
    memory: int,
    limit: int,
    top: int | None = None,
    progress: Progress = silent,
    device: torch.device | None = None,
) -> Tensor:
    """The join by a chosen kernel."""
    n = rule.features.num_nodes
    place = device if device is not None else torch.device("cpu")

    def watch(blocks: Iterable[Block]) -> Iterator[Block]:
        """Tell progress, and stop a result that grows beyond what sampling promised."""
        done, size = 0, 0.0
        for block in blocks:
            done += block.counts.size
            size += ENTRY * block.columns.size * (2 if choice.symmetric else 1)
            if size > 1.5 * limit:
                raise InputError(_too_large(size * n / done, limit, rule.threshold))
            progress(done, n)
            yield block

    if choice.kernel == "dense":
        return _run_dense(rule, A, k, memory, limit, top, progress, place)
    if choice.kernel == "scipy":
        rows = scipy_join.rows_within(memory, n)
        blocks: Iterable[Block] = (_prune(block, top) for block in scipy_join.scipy_join(rule, A, k, rows))
    else:
        task = _numba_task(rule, A, k, choice)
        blocks = map_ranges(lambda start, stop: _prune(task(start, stop), top), ranges(n, _rows_of_task(n)))
    starts, columns, values = (mirrored if choice.symmetric else join_blocks)(watch(blocks), n)
    crow, col, value = (torch.from_numpy(part).to(place) for part in (starts, columns, values))
    return csr(crow, col, value, (n, n))


def _rows_of_task(n: int) -> int:
    """Enough tasks to keep the threads evenly busy, few enough that their scratch is cheap."""
    return max(16, min(1024, n // (16 * num_threads())))


def _numba_task(rule: Rule, A: sparse.csr_array, k: int, choice: KernelChoice) -> Callable[[int, int], Block]:
    from graphpartner.enhance import binary_join, weighted_join
    from graphpartner.enhance.reach import build_reach

    reach = build_reach(A, k, choice.reach == "bitsets")
    if choice.kernel == "popcount":
        return binary_join.prepare(rule.features, rule.threshold, reach, choice.symmetric)
    return weighted_join.prepare(rule.features, rule, reach, choice.symmetric)


def _prune(block: Block, top: int | None) -> Block:
    if top is None:
        return block
    rows, columns, values = (torch.from_numpy(part) for part in (block.rows, block.columns, block.values))
    return block.only(largest_of_each_row(rows, columns, values, top).numpy())


def _run_dense(
    rule: Rule,
    A: sparse.csr_array,
    k: int,
    memory: int,
    limit: int,
    top: int | None,
    progress: Progress,
    device: torch.device,
) -> Tensor:
    n = rule.features.num_nodes
    rows = dense_join.rows_within(max(1, memory - dense_join.dense_bytes(rule.features)), rule.features)
    parts: list[dense_join.TorchBlock] = []
    done, size = 0, 0.0
    for part in dense_join.dense_join(rule, A, k, rows, device, top):
        parts.append(part)
        done += part.counts.numel()
        size += ENTRY * part.columns.numel()
        if size > 1.5 * limit:
            raise InputError(_too_large(size * n / done, limit, rule.threshold))
        progress(done, n)
    return dense_join.joined(parts, n, device)
