"""How frequent is each class among all nodes, where validation nodes were drawn class by class?

Accuracy over such nodes gives every class the same weight, test accuracy does not, and a search that goes by the one
does not find the best of the other. No test label is needed to mend that.
"""

import torch
from torch import Tensor
from torch_geometric.data import Data

from graphpartner.train.runs import Runs
from graphpartner.train.settings import Settings
from graphpartner.train.trainer import train

ROUNDS = 200  # of expectation and maximisation


def class_frequencies(runs: Runs, seen: Data) -> Tensor:
    """π, [C], by maximum likelihood: answers to all nodes come out as q_j = Σ_c P(j | c) π_c.

    P(j | c), how often a node of class c is taken for class j, is counted on the nodes that judge, over all runs
    together; q_j, how often the answer is j, over the nodes that no run has learned from. (Saerens, Latinne and
    Decaestecker, 2002; here with answers instead of probabilities, which may be too sure or not sure enough.)
    """
    answers, C = runs.logits.argmax(-1), runs.logits.shape[-1]
    of_run, node = seen.judge_mask.nonzero(as_tuple=True)
    taken = torch.bincount(C * seen.y[node] + answers[of_run, node], minlength=C * C).reshape(C, C).double()
    mistaken = (taken + 1 / C) / (taken.sum(1, keepdim=True) + 1)  # no answer is impossible
    others = ~seen.train_mask
    q = torch.bincount(answers[others], minlength=C).double() / others.sum()
    pi = torch.full((C,), 1 / C, dtype=torch.float64)
    for _ in range(ROUNDS):
        joint = mistaken * pi[:, None]
        pi = (joint / joint.sum(0) * q).sum(1)
    return pi


def class_weights(seen: Data, settings: Settings, device: str | torch.device) -> Tensor | None:
    """What each class shall count for, [C], where the nodes that judge were drawn class by class; otherwise None.

    These are the frequencies that a run of these settings on each development split of ``seen`` leads to.
    """
    if not seen.by_class:
        return None
    return class_frequencies(train(seen, settings, list(range(seen.train_mask.shape[0])), device), seen)
