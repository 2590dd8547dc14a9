"""Judge settings on development splits: by accuracy and calibrated NLL, without a test label.

A search sees training and validation labels, split anew many times, and no other label. The validation nodes of each
split are split in half: one half stops runs, the other half scores them. A run is at its best on the nodes that
stopped it, and the more so the more runs stand behind it: generation after generation of teachers does better on the
nodes that stop them all, long after it does no better on others (``gpnn search --family distilled`` prints both).

A few hundred nodes tell accuracies of good configurations apart by chance: one that is a point better may be worse
elsewhere. The mean log-likelihood of the true classes depends on how confident a prediction was, and is far less noisy.
It is taken at the best temperature of each run, so that a configuration is not blamed for being over- or
underconfident, which changes no prediction.

Accuracy over validation nodes that were drawn class by class gives every class the same weight; test accuracy does not,
and a search that climbs the one does not find the best of the other. So the frequency of each class among all nodes is
estimated (:func:`class_frequencies`), again without a test label.
"""

import copy
import math
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from graphpartner.graph.record import GraphRecord
from graphpartner.graph.splits import Split, per_class_splits
from graphpartner.model.calibration import class_prior
from graphpartner.model.losses import nll
from graphpartner.training.runs import Runs
from graphpartner.training.settings import Settings
from graphpartner.training.trainer import train

EM_ROUNDS = 200
TEMPERATURES: list[float] = np.geomspace(0.05, 5.0, 41).tolist()


class DevelopmentGraph(GraphRecord):
    """The part of a graph that a search may see; see :func:`development`."""

    by_class: bool
    judge_mask: Tensor
    class_weights: Tensor | None


def development(data: GraphRecord, splits: int, first: int = 0) -> DevelopmentGraph:
    """Return the graph with development splits, masks [S, n], and without every other label.

    Where the graph has a public split, every other split is that one, and for the rest its training and validation
    nodes are pooled and drawn anew: as many training nodes of every class as before, and all others of the pool for
    validation. So a search is judged on the split that counts, but not on that alone. Where the graph has no public
    split, split s consists of the training and validation nodes of the random split of seed s: no run sees a label of
    its own split's test nodes, but a validation node of one split is a test node of others. One half of the validation
    nodes of every class is left in ``val_mask``, the other is ``judge_mask``. Labels outside of all these masks are set
    to −1, so that no search can use them. ``by_class`` is true where the validation nodes were drawn class by
    class, equally many of each.

    Args:
        data: a graph as loaded.
        splits: S.
        first: number of the first split; other numbers are other splits.
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
    """Return the public split for even seeds; for odd ones its training and validation nodes drawn anew."""
    pool = data.train_mask | data.val_mask
    counts = torch.bincount(data.y[data.train_mask])
    masks = torch.stack(
        [data.train_mask if seed % 2 == 0 else draw_per_class(pool, data.y, counts, seed) for seed in seeds]
    )
    return Split(masks, pool & ~masks, torch.zeros_like(masks))


def halve_validation(masks: Tensor, y: Tensor, seeds: range) -> Tensor:
    """Draw half of the nodes of every class under each mask [S, n], rounded down."""
    rows = zip(masks, seeds, strict=True)
    return torch.stack([draw_per_class(mask, y, torch.bincount(y[mask]) // 2, seed) for mask, seed in rows])


def draw_per_class(mask: Tensor, y: Tensor, counts: Tensor, seed: int) -> Tensor:
    """Draw ``counts[c]`` nodes of each class c from those under a mask [n]."""
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.zeros_like(mask)
    for c in y[mask].unique():
        members = (mask & (y == c)).nonzero().squeeze(-1)
        drawn[members[torch.randperm(members.numel(), generator=generator)[: int(counts[c])]]] = True
    return drawn


def class_weights(seen: DevelopmentGraph, settings: Settings, device: str | torch.device) -> Tensor | None:
    """Return the weight of each class in accuracy and NLL, [C], or None where nodes were not drawn class by class.

    The weights are the class frequencies estimated from one run of these settings per development split.
    """
    if not seen.by_class:
        return None
    return class_frequencies(train(seen, settings, list(range(seen.train_mask.shape[0])), device), seen)


def class_frequencies(runs: Runs, seen: DevelopmentGraph) -> Tensor:
    """Estimate π, [C], by maximum likelihood: the predictions for all nodes are distributed as q_j = Σ_c P(j | c) π_c.

    P(j | c), the confusion of class c with class j, is counted on the nodes under ``judge_mask``, over all runs
    together; q_j, how often class j is predicted, over the nodes that no run has learned from. (Saerens, Latinne and
    Decaestecker, 2002; here with predictions instead of probabilities, which may be over- or underconfident.)
    """
    predictions, C = runs.logits.argmax(-1), runs.logits.shape[-1]
    run, node = seen.judge_mask.nonzero(as_tuple=True)
    count = torch.bincount(C * seen.y[node] + predictions[run, node], minlength=C * C).reshape(C, C).double()
    confusion = (count + 1 / C) / (count.sum(1, keepdim=True) + 1)  # no confusion is impossible
    others = ~seen.train_mask
    q = torch.bincount(predictions[others], minlength=C).double() / others.sum()
    return class_prior(confusion.T, q, EM_ROUNDS)[0]


class Judgement(NamedTuple):
    """Means over development splits, over the nodes under ``judge_mask``."""

    accuracy: float
    """0 to 1"""
    nll: float
    """mean −log p of the true classes, at the best temperature of each run"""

    @property
    def merit(self) -> float:
        """The objective of a search: accuracy − NLL."""
        return self.accuracy - self.nll


def judge_settings(seen: DevelopmentGraph, settings: list[Settings], device: str | torch.device) -> list[Judgement]:
    """Judge each of these settings on all development splits, as one batch of replicas."""
    splits = seen.train_mask.shape[0]
    batch = copy.copy(seen)
    batch.train_mask, batch.val_mask = (mask.repeat(len(settings), 1) for mask in (seen.train_mask, seen.val_mask))
    repeated = [one for one in settings for _ in range(splits)]
    runs = train(batch, repeated, list(range(splits)) * len(settings), device)
    return [judged(logits, seen) for logits in runs.logits.split(splits)]


def judged(logits: Tensor, seen: DevelopmentGraph) -> Judgement:
    """Judge the runs of one configuration by their logits, [S, n, C], one run per development split."""
    weights = node_weights(seen.judge_mask, seen.y, seen.get("class_weights"))
    right = (logits.argmax(-1) == seen.y).float()
    accuracy = (weights * right).sum(-1)
    return Judgement(float(accuracy.mean()), float(calibrated_nll(logits, seen.y, weights).mean()))


def ranked(judged: list[Judgement], nodes: int) -> list[int]:
    """Return the places of judgements, best first: by NLL within a standard error of the highest accuracy, then others.

    Args:
        judged: one per configuration.
        nodes: number of different nodes they were judged on; √(a (1 − a) / nodes) is the standard error.
    """
    highest = max(each.accuracy for each in judged)
    close = highest - math.sqrt(highest * (1 - highest) / nodes)
    return sorted(range(len(judged)), key=lambda place: (judged[place].accuracy < close, judged[place].nll))


def rule(seen: DevelopmentGraph) -> str:
    """Describe :func:`ranked`, and which labels were not used, for the provenance of a preset."""
    unseen = "no label of a split's own test nodes" if seen.by_class else "no test label"
    return (
        "of those within a standard error of the highest accuracy, the one with the highest likelihood; "
        f"{unseen} was looked at"
    )


def node_weights(mask: Tensor, y: Tensor, class_weights: Tensor | None = None) -> Tensor:
    """Return weights [R, n], summing to 1 per row, under a mask [R, n]: equal ones, or by class weights [C]."""
    if class_weights is None:
        return mask / mask.sum(-1, keepdim=True)
    C = len(class_weights)
    member = mask[:, :, None] & (y[:, None] == torch.arange(C))
    return (member * (class_weights / member.sum(1, keepdim=True).clamp(min=1))).sum(-1).float()


def calibrated_nll(logits: Tensor, y: Tensor, weights: Tensor) -> Tensor:
    """Return min_T Σ_i w_i · −log softmax(logits_i / T)_{y_i}, [R], of logits [R, n, C] and weights [R, n]."""
    counted = (weights > 0).any(0)
    logits, y, weights = logits[:, counted], y[counted], weights[:, counted]
    return torch.stack([nll((logits / T).log_softmax(-1), y, weights) for T in TEMPERATURES]).amin(0)
