"""Which pairs of nodes are near, which are remote: breadth-first search from many nodes at once.

One bit says whether a source has reached a node, and 64 sources share a machine word. A hop takes, for every node, the
bitwise or of its neighbours' words. All distances of 20,000 nodes take 50 MB a level and seconds, where n × n
distances would take gigabytes.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from graphpartner.errors import InputError
from graphpartner.graph.adjacency import adjacency
from graphpartner.smoothness.checks import check_edges

EXACT_UP_TO = 20_000  # nodes
SAMPLED_ROWS = 1_024  # above that
BLOCK = 1 << 22  # entries of one block of rows
WORD = 64


@dataclass(frozen=True)
class HopPairs:
    """For some nodes (``rows``), every node within ``near`` hops and every node within ``remote`` − 1 hops.

    Made by `hop_pairs`, and good for any number of embeddings on the same graph.
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
        """Blocks of (rows, reached within ``near``, reached within ``remote`` − 1), the last two [n, rows] booleans.

        A node is within 0 hops of itself, so the pair of a node with itself is in both.
        """
        step = max(1, BLOCK // (max(1, self.num_nodes) * WORD))
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
        sample: the number of rows to draw; by default all of them up to 20,000 nodes and 1,024 above.
        seed: of the draw.
    """
    if num_nodes < 1:
        raise InputError(f"num_nodes is {num_nodes}; it should be at least 1.")
    if not 1 <= near < remote:
        raise InputError(f"near is {near} and remote is {remote}; they should be 1 ≤ near < remote.")
    if sample is not None and sample < 1:
        raise InputError(f"sample is {sample}; it should be at least 1.")
    edges = check_edges(edge_index, num_nodes)
    A = adjacency(torch.cat([edges, edges.flip(0)], dim=1), num_nodes) + sparse.eye_array(num_nodes)
    size = sample if sample is not None else (num_nodes if num_nodes <= EXACT_UP_TO else SAMPLED_ROWS)
    rows = np.arange(num_nodes)
    if size < num_nodes:
        rows = np.sort(np.random.default_rng(seed).choice(num_nodes, size, replace=False))
    near_words, within_words = _search(sparse.csr_array(A), rows, near, remote - 1)
    return HopPairs(num_nodes, near, remote, torch.from_numpy(rows), near_words, within_words)


def _search(A: sparse.csr_array, rows: np.ndarray, near: int, within: int) -> tuple[np.ndarray, np.ndarray]:
    """The words after ``near`` and after ``within`` hops; A has its diagonal, so no row is empty and reach grows."""
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
    """Words [w, n] as booleans [n, 64 w]."""
    little = np.ascontiguousarray(words.T).astype("<u8", copy=False).view(np.uint8)  # [n, 8 w]
    shifts = torch.arange(8, dtype=torch.uint8, device=device)
    bits = (torch.from_numpy(little).to(device)[:, :, None] >> shifts) & 1
    return bits.reshape(words.shape[1], -1).bool()
