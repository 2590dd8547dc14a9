"""How frequent is each class really? Estimated from the unlabelled nodes, without a label.

Training sets hold as many nodes of one class as of the next; graphs do not. A model that has learned from such a set
believes all classes equally frequent. Saerens, Latinne and Decaestecker (2002) give the maximum-likelihood correction.
"""

import torch
from torch import Tensor

ROUNDS = 50  # of expectation and maximisation


def class_prior(logits: Tensor) -> Tensor:
    """π of each run, [R, 1, C], from its logits [R, n, C] by expectation maximisation.

    Starting from equal shares: q_ic ∝ π_c softmax(logits_i)_c, then π_c = 1/n Σ_i q_ic.
    """
    likelihood = logits.softmax(-1)
    prior = likelihood.new_full((*logits.shape[:-2], 1, logits.shape[-1]), 1 / logits.shape[-1])
    for _ in range(ROUNDS):
        weighted = likelihood * prior
        prior = (weighted / weighted.sum(-1, keepdim=True)).mean(-2, keepdim=True)
    return prior


def with_class_prior(logits: Tensor, temperature: Tensor) -> tuple[Tensor, Tensor]:
    """Logits / T + ln π, and ln π, [R, 1, C], estimated from logits / T; runs with T = 0 keep their logits, ln π is 0.

    Args:
        logits: [R, n, C].
        temperature: T, [R]. Below 1 a run is taken to be less sure than it should be.
    """
    T = temperature.to(logits)[:, None, None]
    if not T.any():
        return logits, logits.new_zeros(logits.shape[0], 1, logits.shape[2])
    sharpened = logits / T.masked_fill(T == 0, 1)
    log_prior = class_prior(sharpened).clamp(min=torch.finfo(logits.dtype).tiny).log().masked_fill(T == 0, 0)
    return sharpened + log_prior, log_prior
