"""What DGI and MVGRL share: PReLU, the summary of a graph, and the bilinear discriminator between nodes and summaries.

Everything carries leading dimensions (replicas, and the subgraphs of a step), so that R runs are one computation.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from graphpartner.train.draws import counters, uniform

SLOPE = 0.25  # where PReLU starts


def prelu(H: Tensor, slope: Tensor) -> Tensor:
    """max(H, 0) + a · min(H, 0), with one learned a for each replica: H [R, …], a of R numbers."""
    return F.prelu(H[None], slope.flatten())[0]


def summary(H: Tensor) -> Tensor:
    """The summary s = σ(1/n Σ_i h_i): [..., n, h] → [..., h]."""
    return H.mean(-2).sigmoid()


def scores(H: Tensor, bilinear: Tensor, bias: Tensor, summary: Tensor) -> Tensor:
    """h_iᵀ M s + b for every node: H [..., n, h], M [..., h, h], b [..., 1, 1], s [..., h] → [..., n]."""
    return (H @ (bilinear @ summary[..., None]) + bias).squeeze(-1)


def discrimination_loss(true: Tensor, false: Tensor) -> Tensor:
    """Binary cross-entropy, −½ (mean ln σ(true) + mean ln σ(−false)), over the last dimension."""
    return (F.softplus(-true).mean(-1) + F.softplus(false).mean(-1)) / 2


def bilinear_weights(key: Tensor, width: int) -> Tensor:
    """M, [R, h, h], Glorot-uniform as a bilinear form with one output is: fans of h² and h, so M starts small."""
    bound = (6 / (width * width + width)) ** 0.5
    flat = uniform(key, counters(width * width, device=key.device))
    return (flat * 2 - 1).mul_(bound).reshape(*key.shape[:-1], width, width)


def take_rows(H: Tensor, index: Tensor) -> Tensor:
    """Rows of every replica's H: [R, n, h] and [R, m] → [R, m, h], in memory [m, R, h] as products leave it."""
    replicas, n, width = H.shape
    place = index.T * replicas + torch.arange(replicas, device=index.device)
    rows = H.transpose(0, 1).reshape(n * replicas, width).index_select(0, place.reshape(-1))
    return rows.reshape(-1, replicas, width).transpose(0, 1)
