"""MAD and MADGap: the mean cosine distance of remote pairs of nodes, less that of near pairs.

    D_ij = 1 − ⟨h_i, h_j⟩ / (‖h_i‖ ‖h_j‖),   MAD(S) = mean over rows i of the mean of D_ij over j with (i, j) ∈ S
    MADGap = MAD(≥ ``remote`` hops or no path) − MAD(1 … ``near`` hops)

After Chen et al., "Measuring and Relieving the Over-smoothing Problem for Graph Neural Networks from the Topological
View" (AAAI 2020). Pairs of a node with itself and pairs with a zero vector are left out, and a row without any pair
does not count. A value is NaN where no row counts, as in a graph without remote pairs.

With unit rows u, Σ_{j∈S_i} D_ij = |S_i| − ⟨u_i, Σ_{j∈S_i} u_j⟩, so a block of rows takes one product of a 0/1 matrix
with all embeddings side by side, and no n × n matrix of distances is kept.
"""

import warnings
from dataclasses import dataclass

import torch
from torch import Tensor

from graphpartner.errors import InputError
from graphpartner.smoothness.checks import check_edges, check_embedding
from graphpartner.smoothness.hop_pairs import EXACT_UP_TO, HopPairs, hop_pairs

BLOCK = 1 << 22  # numbers gathered at once


@dataclass(frozen=True)
class MadGap:
    """A MADGap with what it was made of; tensors are float64 of shape [...], one value an embedding."""

    remote: Tensor  # MAD of the remote pairs
    near: Tensor  # MAD of the near pairs
    remote_rows: Tensor  # how many rows had a remote pair
    near_rows: Tensor
    exact: bool  # False: over a sample of the rows

    @property
    def gap(self) -> Tensor:
        """MAD(remote) − MAD(near)."""
        return self.remote - self.near


def mad(embedding: Tensor, pairs: Tensor) -> Tensor:
    """Mean average distance over a set of ordered pairs of nodes.

    Args:
        embedding: H, of shape [..., n, d]; leading dimensions are separate embeddings.
        pairs: node indices [2, M]: rows i above, columns j below; a pair given twice counts once.

    Returns:
        MAD in float64, of shape [...]; NaN where no pair is left. Without gradient.
    """
    check_embedding(embedding)
    num_nodes = embedding.shape[-2]
    try:
        row, column = check_edges(pairs, num_nodes).to(embedding.device)
    except InputError as error:
        raise InputError(str(error).replace("edge_index", "pairs").replace("edges]", "pairs]")) from None
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
    """MADGap of an embedding: MAD(pairs at ≥ ``remote`` hops or without a path) − MAD(pairs at 1 … ``near`` hops).

    Exact up to 20,000 nodes. Above, 1,024 rows are drawn and a warning says so, unless ``sample`` asks for a number.
    For the two parts and the number of rows, or to search the graph once for embeddings of several widths, see
    `mad_gap_details`.

    Args:
        embedding: H, of shape [..., n, d]; several embeddings, such as depths, share one search of the graph.
        edge_index: the edges [2, E]; directions, duplicates and self-loops are ignored.
        near: the largest distance, in hops, of a near pair.
        remote: the smallest distance of a remote pair.
        sample: the number of rows to draw, for a graph of any size.
        seed: of the draw.

    Returns:
        MADGap in float64, of shape [...] (a scalar for one embedding); NaN without remote or near pairs.
    """
    check_embedding(embedding)
    num_nodes = embedding.shape[-2]
    pairs = hop_pairs(edge_index, num_nodes, near, remote, sample=sample, seed=seed)
    if sample is None and not pairs.exact:
        warnings.warn(
            f"mad_gap is estimated from {pairs.rows.numel():,} of {num_nodes:,} rows (exact up to {EXACT_UP_TO:,}).",
            stacklevel=2,
        )
    return mad_gap_details(embedding, pairs).gap


@torch.no_grad()
def mad_gap_details(embedding: Tensor, pairs: HopPairs) -> MadGap:
    """MAD of the remote and of the near pairs, over rows found by `hop_pairs`; computed where the embedding lies.

    Args:
        embedding: H, of shape [..., n, d].
        pairs: from `hop_pairs`, of the same graph.
    """
    check_embedding(embedding)
    num_nodes = embedding.shape[-2]
    if num_nodes != pairs.num_nodes:
        raise InputError(f"embedding has {num_nodes} nodes, but pairs was made for {pairs.num_nodes}.")
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
    """Rows of length one [R, n, d] and 1 for each row that is not zero [R, n], as float64 without gradient."""
    rows = embedding.detach().double().reshape(-1, *embedding.shape[-2:])
    largest = rows.abs().amax(dim=2, keepdim=True) if rows.shape[2] else rows.sum(dim=2, keepdim=True)
    valid = largest != 0  # NaN stays, and shows in the result
    scaled = rows / torch.where(valid, largest, 1.0)  # squares of tiny numbers would vanish
    length = torch.where(valid, scaled.norm(dim=2, keepdim=True), 1.0)
    return scaled / length, valid.squeeze(2).double()


def _mean_of_rows(distance: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
    """From sums and counts of rows [R, rows]: the mean over rows of the row means, and how many rows had a pair."""
    filled = count > 0
    means = torch.where(filled, distance / count.clamp_min(1.0), 0.0)
    rows = filled.sum(dim=1)
    return means.sum(dim=1) / rows, rows
