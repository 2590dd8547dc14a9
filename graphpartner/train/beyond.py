"""Two losses that go beyond the paper: views that must agree, and the opinion of teachers."""

import torch
from torch import Tensor

RAMP = 100  # epochs in which the weight of the agreement loss grows to its full size


def agreement_loss(views: list[Tensor], sharpening: float | Tensor) -> Tensor:
    """L_views = 1/K Σ_v 1/n Σ_i ‖p_v(i) − q(i)‖², with q ∝ p̄^(1/s) and p̄ the mean of the p_v. No gradient flows into q.

    The idea of GRAND (Feng et al., 2020): what two dropped-out passes say of a node must agree, also where it has no
    label.

    Args:
        views: the logits of each pass, [..., n, C]; p_v is their softmax.
        sharpening: s, a number or [..., 1, 1]; 1 leaves the mean as it is.
    """
    opinions = [logits.softmax(-1) for logits in views]
    with torch.no_grad():
        target = sharpened(torch.stack(opinions).mean(0), sharpening)
    return torch.stack([(opinion - target).square().sum(-1).mean(-1) for opinion in opinions]).mean(0)


def sharpened(p: Tensor, temperature: float | Tensor) -> Tensor:
    """p^(1/T), made to sum to one; by way of logarithms, since p^(1/T) itself underflows where T is small."""
    return (p.log() / temperature).softmax(-1)


def distillation_loss(logits: Tensor, teacher: Tensor) -> Tensor:
    """L_distill = −1/n Σ_i Σ_c t_ic ln O_ic: cross-entropy to the teachers' opinion t, [..., n, C], on every node."""
    return -(teacher * logits.log_softmax(-1)).sum(-1).mean(-1)


def ramp(epoch: Tensor) -> Tensor:
    """The share of its full weight that the agreement loss has in this epoch."""
    return ((epoch + 1) / RAMP).clamp(max=1.0)
