"""How good is a configuration? Judged on validation nodes that stopped no run, by accuracy and by what it cannot see.

A few hundred nodes tell accuracies of good configurations apart by chance: one that is a point better may be worse
elsewhere. The mean log-likelihood of the true classes sees how sure an answer was, and is far less noisy. It is taken
after the best single temperature, so that a configuration is not blamed for being too sure or not sure enough, which
changes no answer.
"""

import copy
import math
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from graphpartner.train.settings import Settings
from graphpartner.train.trainer import train


def rule(seen: Data) -> str:
    """What :func:`ranked` does, and which labels had no part in it, as a preset says it.

    Where all splits are random, a node that one of them validates on is a test node of others.
    """
    unseen = "no label of a split's own test nodes" if seen.by_class else "no test label"
    return (
        "of those within a standard error of the highest accuracy, the one with the highest likelihood; "
        f"{unseen} was looked at"
    )


TEMPERATURES = tuple(float(T) for T in np.geomspace(0.05, 5.0, 41))


class Judgement(NamedTuple):
    """Means over development splits."""

    accuracy: float
    """of the validation nodes that judge, 0 to 1"""
    surprise: float
    """−log p of their true classes, at the best temperature of each run"""

    @property
    def merit(self) -> float:
        """What a search climbs: accuracy − surprise."""
        return self.accuracy - self.surprise


def judge(seen: Data, settings: list[Settings], device: str | torch.device) -> list[Judgement]:
    """Each of these settings over all development splits, as one batch of replicas.

    Where ``seen`` has ``class_weights``, a class counts as much as they say, however many nodes stand for it.
    """
    splits = seen.train_mask.shape[0]
    batch = copy.copy(seen)
    batch.train_mask, batch.val_mask = (mask.repeat(len(settings), 1) for mask in (seen.train_mask, seen.val_mask))
    each = [one for one in settings for _ in range(splits)]
    runs = train(batch, each, list(range(splits)) * len(settings), device)
    return [judged(logits, seen) for logits in runs.logits.split(splits)]


def judged(logits: Tensor, seen: Data) -> Judgement:
    """Runs of one configuration, logits [S, n, C], one a development split of ``seen``."""
    share = node_shares(seen.judge_mask, seen.y, seen.get("class_weights"))
    right = (logits.argmax(-1) == seen.y).float()
    accuracy, surprise = (share * right).sum(-1), least_surprise(logits, seen.y, share)
    return Judgement(float(accuracy.mean()), float(surprise.mean()))


def ranked(judged: list[Judgement], nodes: int) -> list[int]:
    """Places in order, the best first: those within a standard error of the highest accuracy, then the others.

    Args:
        judged: one a configuration.
        nodes: how many different nodes they were judged on; √(a (1 − a) / nodes) is the standard error.
    """
    highest = max(each.accuracy for each in judged)
    close = highest - math.sqrt(highest * (1 - highest) / nodes)
    places = range(len(judged))
    return sorted(places, key=lambda place: (judged[place].accuracy < close, judged[place].surprise))


def node_shares(mask: Tensor, y: Tensor, class_weights: Tensor | None = None) -> Tensor:
    """What each node counts for, [R, n], 1 in all of a row: all of a mask [R, n] alike, or by class weights [C]."""
    if class_weights is None:
        return mask / mask.sum(-1, keepdim=True)
    C = len(class_weights)
    member = mask[:, :, None] & (y[:, None] == torch.arange(C))
    return (member * (class_weights / member.sum(1, keepdim=True).clamp(min=1))).sum(-1).float()


def least_surprise(logits: Tensor, y: Tensor, share: Tensor) -> Tensor:
    """min_T Σ_i share_i · −log softmax(logits_i / T)_{y_i}, [R], of logits [R, n, C] and shares [R, n]."""
    counted = (share > 0).any(0)
    logits, y, share = logits[:, counted], y[counted], share[:, counted]
    found = []
    for T in TEMPERATURES:
        log_p = (logits / T).log_softmax(-1).gather(-1, y.expand(len(logits), -1)[..., None]).squeeze(-1)
        found.append(-(share * log_p).sum(-1))
    return torch.stack(found).amin(0)
