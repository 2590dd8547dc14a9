"""MAD and MADGap: the mean cosine distance of remote pairs of nodes, less that of near pairs.

    D_ij = 1 − ⟨h_i, h_j⟩ / (‖h_i‖ ‖h_j‖),   MAD(S) = mean over rows i of the mean of D_ij over j with (i, j) ∈ S
    MADGap = MAD(≥ ``remote`` hops or no path) − MAD(1 … ``near`` hops)

After Chen et al., "Measuring and Relieving the Over-smoothing Problem for Graph Neural Networks from the Topological
View" (AAAI 2020). Pairs of a node with itself and pairs with a zero vector are left out, and so are rows without any
pair. A value is NaN if no row is left, as in a graph without remote pairs.

Near and remote pairs are found by breadth-first search from many nodes at once. One bit records whether a source has
reached a node, and 64 sources share a machine word: a hop is, for every node, the bitwise or of its neighbours' words.
All distances of 20,000 nodes take seconds and 50 MB per level, where n × n distances would take gigabytes.

With unit rows u, Σ_{j∈S_i} D_ij = |S_i| − ⟨u_i, Σ_{j∈S_i} u_j⟩, so a block of rows takes one product of a 0/1 matrix
with all embeddings side by side, and no n × n matrix of distances is stored.
"""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from graphpartner.graph.adjacency import with_loops
from graphpartner.graph.checks import check_edges, check_embedding
from graphpartner.system.errors import InputError

EXACT_UP_TO = 20_000  # nodes
SAMPLED_ROWS = 1_024  # above that
SEARCH_BLOCK = 1 << 22  # entries of one block of rows
BLOCK = 1 << 22  # numbers gathered at once
WORD = 64  # bits


@dataclass(frozen=True)
class HopPairs:
    """For some nodes (``rows``), every node within ``near`` hops and every node within ``remote`` − 1 hops.

    Made by `hop_pairs`, for any number of embeddings on the same graph.
    """

    num_nodes: int
    near: int
    remote: int
    rows: Tensor  # sources, ascending
    near_words: np.ndarray  # [words, n]: bit b of word w is source 64 w + b
    within_words: np.ndarray

    @property
    def exact(self) -> bool:
        """Whether every node is among the rows."""
        return self.rows.numel() == self.num_nodes

    def blocks(self, device: torch.device | str = "cpu") -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Yield blocks of (rows, reached within ``near``, reached within ``remote`` − 1), the last two bool [n, rows].

        A node is within 0 hops of itself, so the pair of a node with itself is in both.
        """
        step = max(1, SEARCH_BLOCK // (max(1, self.num_nodes) * WORD))
        for start in range(0, len(self.near_words), step):
            rows = self.rows[start * WORD : (start + step) * WORD]
            levels = (words[start : start + step] for words in (self.near_words, self.within_words))
            near, within = (_unpack(words, device)[:, : rows.numel()] for words in levels)
            yield rows.to(device), near, within


def hop_pairs(
    edge_index: Tensor, num_nodes: int, near: int = 3, remote: int = 8, *, sample: int | None = None, seed: int = 0
) -> HopPairs:
    """Search the undirected graph from every node, or from a sample of them.

    Args:
        edge_index: the edges [2, E]; directions, duplicates and self-loops are ignored.
        num_nodes: n.
        near: pairs at 1 … ``near`` hops are near.
        remote: pairs at ``remote`` hops or more, or without any path, are remote.
        sample: number of rows to draw; by default all of them up to 20,000 nodes and 1,024 above.
        seed: seed of the draw.
    """
    if num_nodes < 1:
        raise InputError(f"num_nodes = {num_nodes}: must be at least 1")
    if not 1 <= near < remote:
        raise InputError(f"near = {near}, remote = {remote}: must be 1 ≤ near < remote")
    if sample is not None and sample < 1:
        raise InputError(f"sample = {sample}: must be at least 1")
    check_edges(edge_index, num_nodes)
    A = with_loops(torch.cat([edge_index, edge_index.flip(0)], dim=1), num_nodes)
    size = sample if sample is not None else (num_nodes if num_nodes <= EXACT_UP_TO else SAMPLED_ROWS)
    rows = np.arange(num_nodes)
    if size < num_nodes:
        rows = np.sort(np.random.default_rng(seed).choice(num_nodes, size, replace=False))
    near_words, within_words = _search(A, rows, near, remote - 1)
    return HopPairs(num_nodes, near, remote, torch.from_numpy(rows), near_words, within_words)


def _search(A: sparse.csr_array, rows: np.ndarray, near: int, within: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the words after ``near`` and ``within`` hops; A has a full diagonal, so reach only grows."""
    num_nodes = A.shape[0]
    neighbors, starts = A.indices, A.indptr[:-1]
    near_words, within_words = (np.zeros((-(-rows.size // WORD), num_nodes), dtype=np.uint64) for _ in range(2))
    for word in range(len(near_words)):
        sources = rows[word * WORD : (word + 1) * WORD]
        reached = np.zeros(num_nodes, dtype=np.uint64)
        reached[sources] = np.uint64(1) << np.arange(sources.size, dtype=np.uint64)
        for hop in range(1, within + 1):
            before, reached = reached, np.bitwise_or.reduceat(reached.take(neighbors), starts)
            if hop == near:
                near_words[word] = reached
            if hop >= near and np.array_equal(before, reached):
                break
        within_words[word] = reached
    return near_words, within_words


def _unpack(words: np.ndarray, device: torch.device | str) -> Tensor:
    """Return words [w, n] as booleans [n, 64 w]."""
    little = np.ascontiguousarray(words.T).astype("<u8", copy=False).view(np.uint8)  # [n, 8 w]
    shifts = torch.arange(8, dtype=torch.uint8, device=device)
    bits = (torch.from_numpy(little).to(device)[:, :, None] >> shifts) & 1
    return bits.reshape(words.shape[1], -1).bool()


@dataclass(frozen=True)
class MadGap:
    """A MADGap and its two parts; tensors are float64 of shape [...], one value per embedding."""

    remote: Tensor  # MAD of the remote pairs
    near: Tensor  # MAD of the near pairs
    remote_rows: Tensor  # number of rows with a remote pair
    near_rows: Tensor
    exact: bool  # False: from a sample of the rows

    @property
    def gap(self) -> Tensor:
        """MAD(remote) − MAD(near)."""
        return self.remote - self.near


def mad(embedding: Tensor, pairs: Tensor) -> Tensor:
    """Compute the mean average distance (MAD) over a set of ordered pairs of nodes.

    Args:
        embedding: H, of shape [..., n, d]; leading dimensions are separate embeddings.
        pairs: node indices [2, E]: rows i above, columns j below; a pair given twice counts once.

    Returns:
        MAD in float64, of shape [...]; NaN where no pair is left. Without gradient.
    """
    check_embedding(embedding)
    num_nodes = embedding.shape[-2]
    check_edges(pairs, num_nodes, name="pairs")
    row, column = pairs.long().to(embedding.device)
    key = torch.unique(row * num_nodes + column)
    row, column = key // num_nodes, key % num_nodes
    unit, valid = _unit_rows(embedding)
    distance, count = (unit.new_zeros(unit.shape[0], num_nodes) for _ in range(2))
    apart = row != column
    block = max(1, BLOCK // max(1, unit.shape[0] * unit.shape[2]))
    for i, j in zip(row[apart].split(block), column[apart].split(block), strict=True):
        both = valid[:, i] * valid[:, j]
        distance.index_add_(1, i, (1.0 - (unit[:, i] * unit[:, j]).sum(dim=2)) * both)
        count.index_add_(1, i, both)
    return _mean_of_rows(distance, count)[0].reshape(embedding.shape[:-2])


def mad_gap(
    embedding: Tensor, edge_index: Tensor, near: int = 3, remote: int = 8, *, sample: int | None = None, seed: int = 0
) -> Tensor:
    """Compute MADGap: MAD(pairs at ≥ ``remote`` hops or without a path) − MAD(pairs at 1 … ``near`` hops).

    Exact up to 20,000 nodes. Above, 1,024 rows are drawn, with a warning unless ``sample`` is given. For the two parts
    and the numbers of rows, or to search the graph once for embeddings of several widths, see `mad_gap_details`.

    Args:
        embedding: H, of shape [..., n, d]; several embeddings, such as depths, share one search of the graph.
        edge_index: the edges [2, E]; directions, duplicates and self-loops are ignored.
        near: the largest distance, in hops, of a near pair.
        remote: the smallest distance of a remote pair.
        sample: number of rows to draw, for a graph of any size.
        seed: seed of the draw.

    Returns:
        MADGap in float64, of shape [...] (a scalar for one embedding); NaN without remote or near pairs.
    """
    check_embedding(embedding)
    num_nodes = embedding.shape[-2]
    pairs = hop_pairs(edge_index, num_nodes, near, remote, sample=sample, seed=seed)
    if sample is None and not pairs.exact:
        warnings.warn(
            f"mad_gap is estimated from {pairs.rows.numel():,} of {num_nodes:,} rows (exact up to {EXACT_UP_TO:,})",
            stacklevel=2,
        )
    return mad_gap_details(embedding, pairs).gap


@torch.no_grad()
def mad_gap_details(embedding: Tensor, pairs: HopPairs) -> MadGap:
    """Compute MAD of the remote and of the near pairs of `hop_pairs`, on the device of the embedding.

    Args:
        embedding: H, of shape [..., n, d].
        pairs: the result of `hop_pairs` on the same graph.
    """
    check_embedding(embedding)
    num_nodes = embedding.shape[-2]
    if num_nodes != pairs.num_nodes:
        raise InputError(f"embedding has {num_nodes} nodes: must be {pairs.num_nodes}, as in pairs")
    unit, valid = _unit_rows(embedding)
    replicas, _, columns = unit.shape
    wide = torch.cat([unit, valid[:, :, None]], dim=2).transpose(0, 1).reshape(num_nodes, -1)  # [n, R (d + 1)]
    everyone = wide.sum(dim=0).view(replicas, columns + 1)
    distance, count = (
        {part: unit.new_zeros(replicas, pairs.rows.numel()) for part in ("near", "remote")} for _ in range(2)
    )
    done = 0
    for rows, near, within in pairs.blocks(unit.device):
        own = wide[rows].view(-1, replicas, columns + 1)
        sums = {
            "near": (near.double().T @ wide).view_as(own) - own,  # without the node itself
            "remote": everyone - (within.double().T @ wide).view_as(own),
        }
        here = slice(done, done + rows.numel())
        for part, total in sums.items():
            count[part][:, here] = (total[..., -1].round() * own[..., -1]).T
            distance[part][:, here] = count[part][:, here] - (own[..., :-1] * total[..., :-1]).sum(dim=2).T
        done += rows.numel()
    shape = embedding.shape[:-2]
    remote_mad, remote_rows = (value.reshape(shape) for value in _mean_of_rows(distance["remote"], count["remote"]))
    near_mad, near_rows = (value.reshape(shape) for value in _mean_of_rows(distance["near"], count["near"]))
    return MadGap(remote_mad, near_mad, remote_rows, near_rows, pairs.exact)


def _unit_rows(embedding: Tensor) -> tuple[Tensor, Tensor]:
    """Return unit rows [R, n, d] and, per row, 1 or 0 for a zero row [R, n]; float64, without gradient."""
    rows = embedding.detach().double().reshape(-1, *embedding.shape[-2:])
    largest = rows.abs().amax(dim=2, keepdim=True) if rows.shape[2] else rows.sum(dim=2, keepdim=True)
    valid = largest != 0  # NaN stays, and shows in the result
    scaled = rows / torch.where(valid, largest, 1.0)  # squares of tiny numbers would vanish
    length = torch.where(valid, scaled.norm(dim=2, keepdim=True), 1.0)
    return scaled / length, valid.squeeze(2).double()


def _mean_of_rows(distance: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
    """Return the mean of the row means, from sums and counts [R, rows], and the number of rows with a pair."""
    filled = count > 0
    means = torch.where(filled, distance / count.clamp_min(1.0), 0.0)
    rows = filled.sum(dim=1)
    return means.sum(dim=1) / rows, rows
