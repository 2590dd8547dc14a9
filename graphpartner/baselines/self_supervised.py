"""Train a self-supervised baseline: an encoder for each seed without labels, then logistic regression on top of it."""

import copy
import time
from collections.abc import Iterable

import torch
from torch import Tensor
from torch_geometric.data import Data

from graphpartner.baselines.dgi import DGI
from graphpartner.baselines.grace import GRACE
from graphpartner.baselines.logistic import logistic_regression
from graphpartner.baselines.mvgrl import MVGRL
from graphpartner.baselines.pretrain import Objective, pretrain
from graphpartner.baselines.runs import BaselineRuns
from graphpartner.graph.checks import check_graph
from graphpartner.progress import Progress, silent
from graphpartner.train.in_batches import Tally, in_batches, like_batches
from graphpartner.train.problem import count_classes, labelled
from graphpartner.train.trainer import check_batch_size, check_seeds, pick_device

Outcome = tuple[Tensor, Tensor, Tensor]  # logits [R, n, C], validation loss [R], epochs [R]


def train_self_supervised(
    settings: DGI | MVGRL | GRACE,
    data: Data,
    seeds: Iterable[int],
    device: str | torch.device = "auto",
    progress: Progress = silent,
    batch_size: int | None = None,
) -> BaselineRuns:
    """One encoder a seed, learned from features and edges alone; then the labels of ``train_mask`` and ``val_mask``.

    Args:
        settings: the method and its hyperparameters.
        data: a graph with ``train_mask`` and ``val_mask`` of [n], or [R, n]: one split a seed.
        seeds: one run each.
        device: ``"auto"`` takes a GPU where there is one.
        progress: called with (epochs done, epochs at most) over all runs.
        batch_size: how many runs are trained together; chosen by device and memory if not given. Results do not
            depend on it, up to the order of floating-point sums.
    """
    start = time.perf_counter()
    seeds = check_seeds(seeds)
    check_batch_size(batch_size)
    check_graph(data, require=("y", "train_mask", "val_mask"))
    data = copy.copy(data).cpu()  # a shallow copy: the caller's graph stays where it is
    place = pick_device(device)
    classes = count_classes(data)
    train_nodes = labelled(data.train_mask, data.y, len(seeds), "train_mask", place)
    val_nodes = labelled(data.val_mask, data.y, len(seeds), "val_mask", place)
    objective: Objective = settings.objective(data, place)
    batch_size = batch_size or plan_batch(objective, len(seeds), place)
    tally = Tally(progress, len(seeds) * settings.epochs)

    def train_part(part: slice) -> Outcome:
        replicas = torch.arange(part.start, part.stop, device=place)
        trained = pretrain(objective, settings, seeds[part], tally.add)
        with torch.no_grad():
            embeddings = objective.embed(trained.weights)
            fitted = logistic_regression(
                embeddings,
                train_nodes.of(replicas),
                val_nodes.of(replicas),
                classes,
                decay=settings.regression_decay,
            )
        return fitted.logits.cpu(), fitted.val_loss.cpu(), trained.epochs.cpu()

    parts = in_batches(train_part, len(seeds), batch_size, place, tally)
    logits, val_loss, epochs = (torch.cat(each) for each in zip(*parts, strict=True))
    one = objective.initial(seeds[:1])
    parameters = sum(weight.numel() for weight in one) + (settings.hidden_channels + 1) * classes
    seconds = time.perf_counter() - start
    name = type(settings).__name__.lower()
    return BaselineRuns(name, seeds, logits, data.y, val_loss, epochs, parameters, seconds)


def plan_batch(objective: Objective, replicas: int, device: torch.device) -> int:
    """How many runs to train together: one on a CPU, where more only crowd the caches; what fits on a GPU."""
    if device.type == "cpu":
        return 1
    free, _ = torch.cuda.mem_get_info(device)
    return like_batches(replicas, int(0.6 * free / objective.memory))
