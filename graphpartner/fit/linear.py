"""A linear softmax model as two weight matrices: trained in seconds where a network takes minutes.

It has the form of every other candidate, since X W = relu(X W) − relu(−X W): with W^(1) = [W, −W] and W^(2) = [I; −I],
the MLP partner says X W, and the graph branch A^l X W, which is SGC (Wu et al., 2019).
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from graphpartner.fit.clock import Clock
from graphpartner.train.problem import Labelled, Problem

DECAYS = (1e-2, 1e-3, 1e-4, 1e-5)
STEPS = 25  # of L-BFGS, for every decay
MEMORY = 10


def as_network(weight: Tensor) -> tuple[Tensor, Tensor]:
    """W^(1) [d, 2C] and W^(2) [2C, C] that do what W [d, C] does."""
    same = torch.eye(weight.shape[1], device=weight.device)
    return torch.cat([weight, -weight], 1), torch.cat([same, -same])


def fit_linear(problem: Problem, alpha: float, train: Labelled, val: Labelled, clock: Clock) -> tuple[Tensor, Tensor]:
    r"""The weights, as a network's, with the λ after which the loss on validation nodes no longer falls.

    .. math::
        \min_W \; \frac{1}{m} \sum_i - \log \mathrm{softmax}(\hat{y}_i)_{y_i} + \lambda \|W\|^2

    by L-BFGS, from the largest λ to the smallest, each beginning where the last one ended.

    Args:
        problem: the graph.
        alpha: α, the weight of what a node's own features say.
        train: nodes to learn from.
        val: nodes to choose λ by.
        clock: when to stop with the best so far.
    """
    size = problem.X.shape[1], problem.num_classes
    weight = torch.zeros(size, device=train.index.device, requires_grad=True)

    def surprise(nodes: Labelled) -> Tensor:
        own = problem.X @ weight
        logits = own if alpha == 1 else torch.lerp(problem.propagate(own), own, alpha)
        return F.cross_entropy(logits[nodes.index], nodes.target)

    best, kept = float("inf"), weight.detach().clone()
    for decay in DECAYS:
        optimizer = torch.optim.LBFGS([weight], max_iter=STEPS, history_size=MEMORY, line_search_fn="strong_wolfe")

        def loss(optimizer: torch.optim.LBFGS = optimizer, decay: float = decay) -> Tensor:
            optimizer.zero_grad()
            cost = surprise(train) + decay * weight.square().sum()
            cost.backward()
            return cost

        optimizer.step(loss)
        with torch.no_grad():
            found = float(surprise(val))
        if found >= best:  # less restraint is worse, and still less will be
            break
        best, kept = found, weight.detach().clone()
        if clock.over():
            break
    return as_network(kept)
