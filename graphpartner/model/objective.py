"""What training minimises, Eq. 19."""

from typing import NamedTuple

from torch import Tensor

from graphpartner.model.gpnn import Output
from graphpartner.model.losses import Score, consistency_loss, cross_entropy, rectification_loss
from graphpartner.model.sparse import SparseMatrix


class Objective(NamedTuple):
    """The overall objective and its three parts, each of shape [...]: one number a replica."""

    total: Tensor
    cross_entropy: Tensor
    rectification: Tensor
    consistency: Tensor


def objective(
    out: Output,
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
    """Eq. 19: L = L_ce + λ_rt L_rt + λ_cs L_cs.

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
        contrast: False leaves L_cs out, for a forward pass that did not compute H^(l+1).
    """
    ce = cross_entropy(out.logits, index, target, weight)
    rt = rectification_loss(out.mlp_logits, out.gcn_logits, temperature)
    if not contrast:
        return Objective(ce + lambda_rt * rt, ce, rt, ce.new_zeros(ce.shape))
    cs = consistency_loss(out.initial, out.smoothed, margin, negatives, score, neighbors)
    return Objective(ce + lambda_rt * rt + lambda_cs * cs, ce, rt, cs)
