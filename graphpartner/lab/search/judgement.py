"""How frequent is each class among all nodes, where validation nodes were drawn class by class?

Accuracy over such nodes gives every class the same weight, test accuracy does not, and a search that goes by the one
does not find the best of the other. No test label is needed to mend that.

What a search may see: training and validation labels, split anew many times, and no other label.

The validation nodes of a split have two offices, and no node has both. One half stops the runs; the other half judges
them. A run is at its best on the nodes that stopped it, and the more so the more runs stand behind it: generation
after generation of teachers does better on the nodes that stop them all, long after it does no better on others
(``scripts/generations.py`` shows both).

How good is a configuration? Judged on validation nodes that stopped no run, by accuracy and by what it cannot see.

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

from graphpartner.graph.record import GraphRecord
from graphpartner.graph.splits import Split, per_class_splits
from graphpartner.training.runs import Runs
from graphpartner.training.settings import Settings
from graphpartner.training.trainer import train

ROUNDS = 200  # of expectation and maximisation


class DevelopmentGraph(GraphRecord):
    """What a search may see of a graph; see :func:`development`."""

    by_class: bool
    judge_mask: Tensor
    class_weights: Tensor | None


def class_frequencies(runs: Runs, seen: DevelopmentGraph) -> Tensor:
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


def class_weights(seen: DevelopmentGraph, settings: Settings, device: str | torch.device) -> Tensor | None:
    """What each class shall count for, [C], where the nodes that judge were drawn class by class; otherwise None.

    These are the frequencies that a run of these settings on each development split of ``seen`` leads to.
    """
    if not seen.by_class:
        return None
    return class_frequencies(train(seen, settings, list(range(seen.train_mask.shape[0])), device), seen)


def development(data: GraphRecord, splits: int, first: int = 0) -> DevelopmentGraph:
    """The graph with so many development splits, masks [S, n], and every other label taken away.

    Where the graph has a public split, every other split is that one, and for the rest its training and validation
    nodes are pooled and drawn anew: as many training nodes of every class as before, and all others of the pool for
    validation. So a search is judged on the split that counts, but not on that alone. Where the graph has no public
    split, split s is the random split of seed s, of which the training and validation nodes are kept: no run sees a
    label of its own split's test nodes, but a node that one split validates on is a test node of others. Of the
    validation nodes, one half of every class is left in ``val_mask`` and the other is ``judge_mask``. Labels outside of
    all these masks are set to −1, so that nothing that is given this graph can look at them. ``by_class`` says whether
    the validation nodes were drawn class by class, as many of each.

    Args:
        data: a graph as loaded.
        splits: S.
        first: the number of the first split; other numbers are other splits.
    """
    seeds = range(first, first + splits)
    seen = DevelopmentGraph(**data.fields())
    seen.by_class = data.get("train_mask") is None
    split = per_class_splits(data.y, seeds) if seen.by_class else resplit(data, seeds)
    seen.train_mask = split.train_mask
    seen.judge_mask = halve_validation(split.val_mask, data.y, seeds)
    seen.val_mask = split.val_mask & ~seen.judge_mask
    if "test_mask" in seen:
        del seen.test_mask
    known = (split.train_mask | split.val_mask).any(0)
    seen.y = torch.where(known, data.y, -1)
    seen.num_classes = int(data.y.max()) + 1 if data.get("num_classes") is None else data.num_classes
    return seen


def resplit(data: GraphRecord, seeds: range) -> Split:
    """The public split for even seeds; for odd ones its training and validation nodes drawn anew. No test node."""
    pool = data.train_mask | data.val_mask
    counts = torch.bincount(data.y[data.train_mask])
    rows = [data.train_mask if seed % 2 == 0 else some_of_each_class(pool, data.y, counts, seed) for seed in seeds]
    masks = torch.stack(rows)
    return Split(masks, pool & ~masks, torch.zeros_like(masks))


def halve_validation(masks: Tensor, y: Tensor, seeds: range) -> Tensor:
    """Of every class half of the nodes under each mask [S, n], by seed; of an odd number the smaller half."""
    rows = zip(masks, seeds, strict=True)
    return torch.stack([some_of_each_class(mask, y, torch.bincount(y[mask]) // 2, seed) for mask, seed in rows])


def some_of_each_class(mask: Tensor, y: Tensor, counts: Tensor, seed: int) -> Tensor:
    """So many nodes of each class as counts [C] say, drawn from those under a mask [n]."""
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.zeros_like(mask)
    for c in y[mask].unique():
        members = (mask & (y == c)).nonzero().squeeze(-1)
        drawn[members[torch.randperm(members.numel(), generator=generator)[: int(counts[c])]]] = True
    return drawn


def rule(seen: DevelopmentGraph) -> str:
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


def judge_settings(seen: DevelopmentGraph, settings: list[Settings], device: str | torch.device) -> list[Judgement]:
    """Each of these settings over all development splits, as one batch of replicas.

    Where ``seen`` has ``class_weights``, a class counts as much as they say, however many nodes stand for it.
    """
    splits = seen.train_mask.shape[0]
    batch = copy.copy(seen)
    batch.train_mask, batch.val_mask = (mask.repeat(len(settings), 1) for mask in (seen.train_mask, seen.val_mask))
    each = [one for one in settings for _ in range(splits)]
    runs = train(batch, each, list(range(splits)) * len(settings), device)
    return [judged(logits, seen) for logits in runs.logits.split(splits)]


def judged(logits: Tensor, seen: DevelopmentGraph) -> Judgement:
    """Runs of one configuration, logits [S, n, C], one a development split of ``seen``."""
    share = node_shares(seen.judge_mask, seen.y, seen.get("class_weights"))
    right = (logits.argmax(-1) == seen.y).float()
    accuracy, surprise = (share * right).sum(-1), least_nll(logits, seen.y, share)
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


def least_nll(logits: Tensor, y: Tensor, share: Tensor) -> Tensor:
    """min_T Σ_i share_i · −log softmax(logits_i / T)_{y_i}, [R], of logits [R, n, C] and shares [R, n]."""
    counted = (share > 0).any(0)
    logits, y, share = logits[:, counted], y[counted], share[:, counted]
    found = []
    for T in TEMPERATURES:
        log_p = (logits / T).log_softmax(-1).gather(-1, y.expand(len(logits), -1)[..., None]).squeeze(-1)
        found.append(-(share * log_p).sum(-1))
    return torch.stack(found).amin(0)
