"""The losses of Eqs. 15 to 18, the objective of Eq. 19, and two losses beyond the paper.

Leading (replica) dimensions are kept: a loss of tensors [..., n, c] has shape [...]. Beyond the paper are the agreement
of several dropped-out views, as in GRAND, and distillation from teachers.
"""

from typing import Literal, NamedTuple, get_args

import torch
from torch import Tensor

from graphpartner.graph.adjacency import neighbor_mean
from graphpartner.kernels.divergence import mean_divergence
from graphpartner.kernels.row_products import cosine_score, inverse_root, row_products, rows_of
from graphpartner.kernels.spmm import SparseMatrix
from graphpartner.model.gpnn import GPNNOutput
from graphpartner.system.errors import InputError

Score = Literal["inner", "cosine", "softmax"]

RAMP_EPOCHS = 100  # over which the weight of the agreement loss grows to its full size


def cross_entropy(logits: Tensor, index: Tensor, target: Tensor, weight: Tensor | None = None) -> Tensor:
    """Return Eq. 15 as a mean over labelled nodes: L_ce = −1/n_l Σ_i ln O[i, y_i].

    The paper has a sum; a mean only rescales λ_rt, λ_cs and the weight decay.

    Args:
        logits: [..., n, C], before the softmax of Eq. 14.
        index: labelled nodes, [m], or [..., m] if they differ between replicas.
        target: their classes, of the same shape.
        weight: weights of the same shape that sum to 1 over m; by default equal.
    """
    return nll(rows_of(logits, index).log_softmax(-1), target, weight)


def nll(log_p: Tensor, target: Tensor, weight: Tensor | None = None) -> Tensor:
    """Return −Σ_i w_i log p_i[y_i], [...], of log-probabilities [..., m, C]; w_i = 1/m if no weight is given."""
    target = target.expand(log_p.shape[:-1])
    each = -log_p.gather(-1, target[..., None]).squeeze(-1)
    return each.mean(-1) if weight is None else (each * weight).sum(-1)


def rectification_loss(mlp_logits: Tensor, gcn_logits: Tensor, temperature: float | Tensor = 2.0) -> Tensor:
    """Return Eq. 16: L_rt = T²/(nC) Σ_ij p_ij (ln p_ij − ln q_ij).

    p = softmax(H^φ1 / T) belongs to the MLP partner, q = softmax(H^φ2 / T) to the graph branch. T is a number, or a
    tensor [..., 1, 1] if it differs between replicas.
    """
    _check_alike("mlp_logits", mlp_logits, "gcn_logits", gcn_logits)
    if not isinstance(temperature, Tensor) and not temperature > 0:
        raise InputError(f"temperature = {temperature}: must be greater than 0")
    T = torch.as_tensor(temperature, dtype=mlp_logits.dtype, device=mlp_logits.device)
    T = T.expand(*mlp_logits.shape[:-2], 1, 1)[..., 0, 0]
    return mean_divergence(mlp_logits, gcn_logits, T) * (T * T / mlp_logits.shape[-1])


def consistency_loss(
    initial: Tensor,
    smoothed: Tensor,
    margin: float | Tensor = 1.0,
    negatives: Tensor | None = None,
    score: Score = "inner",
    neighbors: Tensor | SparseMatrix | None = None,
) -> Tensor:
    """Return Eq. 17: L_cs = max(S − Score, 0), with the Score of :func:`consistency_score`.

    Args:
        initial: H^(1), [..., n, h].
        smoothed: H^(l+1) = A_en^l H^(1), of the same shape.
        margin: S.
        negatives: Ω, the indices of the τ negative nodes, [τ] or [..., τ]; by default one random node.
        score: s(·,·): ``"inner"``, ``"cosine"`` or ``"softmax"``.
        neighbors: by default each node is its own positive; with an adjacency (sparse CSR, or an edge_index) it is the
            mean of its neighbours, as in the paper on CiteSeer.
    """
    if negatives is None:
        negatives = torch.randint(initial.shape[-2], (1,), device=initial.device)
    return (margin - consistency_score(initial, smoothed, negatives, score, neighbors)).clamp(min=0)


def consistency_score(
    initial: Tensor,
    smoothed: Tensor,
    negatives: Tensor,
    score: Score = "inner",
    neighbors: Tensor | SparseMatrix | None = None,
) -> Tensor:
    """Return Eq. 18: Score = 1/n Σ_i ( s(h_i, g_i) − 1/τ Σ_{k∈Ω} s(h_i, g_k) ), with h = H^(1) and g = H^(l+1).

    Since Ω is shared by all i, the negative part of a score that is linear in each argument is the product of two
    means, ⟨mean_i h_i, mean_{k∈Ω} g_k⟩, without an n×τ matrix. Cosine scores are inner products of rows scaled to
    length one (a zero row stays zero). Neighbour positives replace s(h_i, g_i) by ⟨h_i, Σ_j (D⁻¹A)_ij g_j⟩, zero for
    isolated nodes. The softmax score, which the paper tried and rejected, turns the inner products of a node with its
    positive and its τ negatives into probabilities.
    """
    if score not in get_args(Score):
        raise InputError(f"score = {score!r}: must be one of {', '.join(get_args(Score))}")
    _check_alike("initial", initial, "smoothed", smoothed)
    if not negatives.shape[-1]:
        raise InputError("negatives is empty: must name at least one node")
    if score == "cosine" and neighbors is None:
        return cosine_score(initial, smoothed, negatives)
    negative = rows_of(smoothed, negatives)
    mean = _neighbor_mean(neighbors, initial) if neighbors is not None else None
    if score == "cosine" and mean is not None:
        # lengths enter as weights of sums over nodes, so the scaled rows are not stored
        per_smoothed = inverse_root((smoothed * smoothed).sum(-1))
        dots, own, _ = row_products(initial, mean @ (smoothed * per_smoothed[..., None]))
        per_initial = inverse_root(own)
        mean_initial = (per_initial[..., None, :] @ initial).squeeze(-2) / initial.shape[-2]
        mean_negative = (negative * rows_of(per_smoothed[..., None], negatives)).mean(-2)
        return (dots * per_initial).mean(-1) - (mean_initial * mean_negative).sum(-1)
    positive = (initial * (smoothed if mean is None else mean @ smoothed)).sum(-1)
    if score == "softmax":
        against = initial @ negative.transpose(-1, -2)
        share = torch.cat([positive[..., None], against], -1).softmax(-1)
        return (share[..., 0] - share[..., 1:].mean(-1)).mean(-1)
    return positive.mean(-1) - (initial.mean(-2) * negative.mean(-2)).sum(-1)


def _check_alike(one: str, first: Tensor, other: str, second: Tensor) -> None:
    if first.shape != second.shape:
        raise InputError(f"{one} has shape {list(first.shape)} and {other} {list(second.shape)}: must be the same")


def _neighbor_mean(neighbors: Tensor | SparseMatrix, like: Tensor) -> SparseMatrix:
    """Return D⁻¹A without self-loops, from an adjacency or an edge_index; a SparseMatrix is D⁻¹A already."""
    if isinstance(neighbors, SparseMatrix):
        return neighbors
    if neighbors.layout == torch.strided:
        return SparseMatrix(neighbor_mean(neighbors, like.shape[-2], dtype=like.dtype))
    coordinates = neighbors.to_sparse_coo().coalesce()
    target, source = coordinates.indices()
    return SparseMatrix(
        neighbor_mean(torch.stack([source, target]), like.shape[-2], coordinates.values(), dtype=like.dtype)
    )


class Objective(NamedTuple):
    """The overall objective and its three parts, each of shape [...]: one number per replica."""

    total: Tensor
    cross_entropy: Tensor
    rectification: Tensor
    consistency: Tensor


def objective(
    out: GPNNOutput,
    index: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    *,
    lambda_rt: float | Tensor = 0.1,
    lambda_cs: float | Tensor = 1.0,
    temperature: float | Tensor = 2.0,
    margin: float | Tensor = 1.0,
    negatives: Tensor | None = None,
    score: Score = "inner",
    neighbors: Tensor | SparseMatrix | None = None,
    contrast: bool = True,
) -> Objective:
    """Return Eq. 19: L = L_ce + λ_rt L_rt + λ_cs L_cs.

    Args:
        out: one forward pass.
        index: labelled nodes, see :func:`cross_entropy`.
        target: their classes.
        weight: their weights, see :func:`cross_entropy`.
        lambda_rt: λ_rt.
        lambda_cs: λ_cs.
        temperature: T of Eq. 16.
        margin: S of Eq. 17.
        negatives: Ω of Eq. 18.
        score: s(·,·) of Eq. 18.
        neighbors: neighbour positives, see :func:`consistency_loss`.
        contrast: whether to include L_cs; it needs a forward pass that computed H^(l+1).
    """
    ce = cross_entropy(out.logits, index, target, weight)
    rt = rectification_loss(out.mlp_logits, out.gcn_logits, temperature)
    if not contrast:
        return Objective(ce + lambda_rt * rt, ce, rt, ce.new_zeros(ce.shape))
    cs = consistency_loss(out.initial, out.smoothed, margin, negatives, score, neighbors)
    return Objective(ce + lambda_rt * rt + lambda_cs * cs, ce, rt, cs)


def agreement_loss(views: list[Tensor], sharpening: float | Tensor) -> Tensor:
    """Return L_views = 1/K Σ_v 1/n Σ_i ‖p_v(i) − q(i)‖², with q ∝ p̄^(1/s) and p̄ the mean of the p_v.

    This is the consistency regularisation of GRAND (Feng et al., 2020): dropped-out passes must agree on every node,
    labelled or not. No gradient flows into q.

    Args:
        views: the logits of each pass, [..., n, C]; p_v is their softmax.
        sharpening: s, a number or [..., 1, 1]; with 1, q is the mean itself.
    """
    probabilities = [logits.softmax(-1) for logits in views]
    with torch.no_grad():
        target = sharpened(torch.stack(probabilities).mean(0), sharpening)
    return torch.stack([(p - target).square().sum(-1).mean(-1) for p in probabilities]).mean(0)


def sharpened(p: Tensor, temperature: float | Tensor) -> Tensor:
    """Return p^(1/T), normalised; computed from logarithms, since p^(1/T) itself underflows for small T."""
    return (p.log() / temperature).softmax(-1)


def distillation_loss(logits: Tensor, teacher: Tensor) -> Tensor:
    """Return L_distill = −1/n Σ_i Σ_c t_ic ln O_ic, with t the probabilities of the teachers, [..., n, C]."""
    return -(teacher * logits.log_softmax(-1)).sum(-1).mean(-1)


def ramp_up(epoch: Tensor) -> Tensor:
    """Return the factor of the weight of the agreement loss in this epoch, which grows to 1."""
    return ((epoch + 1) / RAMP_EPOCHS).clamp(max=1.0)
