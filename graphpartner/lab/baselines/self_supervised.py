"""Logistic regression on frozen embeddings, for R replicas and a row of regularisation strengths at once.

For every replica and every strength λ it goes down

    1/m Σ_i CE(softmax(e_i B + c), y_i) + λ/2 ‖B‖²

over its m training nodes; the strength with the most right answers among the validation nodes is taken, and of equals
the one with the lowest validation loss. No other label is read. In scikit-learn's terms, C = 1 / (λ m). Where a
method's authors name their strength, that one is taken. After ``STEPS`` steps probabilities are those of the minimum
within 1e-3 from λ = 1e-3 on; the weakest strengths are stopped early.

Train a self-supervised baseline: an encoder for each seed without labels, then logistic regression on top of it.
"""

import copy
import time
from collections.abc import Iterable
from typing import NamedTuple

import torch
from torch import Tensor

from graphpartner.graph.checks import check_graph
from graphpartner.graph.record import GraphRecord
from graphpartner.kernels.row_products import rows_of
from graphpartner.lab.baselines.dgi import DGI
from graphpartner.lab.baselines.grace import GRACE
from graphpartner.lab.baselines.mvgrl import MVGRL
from graphpartner.lab.baselines.pretrain import PretextTask, pretrain
from graphpartner.lab.baselines.supervised import BaselineRuns
from graphpartner.model.losses import nll
from graphpartner.system.device import pick_device
from graphpartner.system.parallel import EpochCounter, even_batch_size, run_in_batches
from graphpartner.system.progress import Progress, silent
from graphpartner.training.prepared import Labelled, count_classes, labelled
from graphpartner.training.trainer import check_batch_size, check_seeds

STRENGTHS = tuple(10 ** (-5 + step / 2) for step in range(11))  # λ from 1e-5 to 1
STEPS = 500


class Fitted(NamedTuple):
    """The chosen regression of every replica."""

    logits: Tensor
    """[R, n, C]"""
    val_loss: Tensor
    """[R]"""
    strength: Tensor
    """λ, [R]"""


def logistic_regression(
    embeddings: Tensor,
    train: Labelled,
    val: Labelled,
    num_classes: int,
    strengths: tuple[float, ...] = STRENGTHS,
    steps: int = STEPS,
    decay: float = 0.0,
) -> Fitted:
    """Fit on ``train``, choose λ on ``val``.

    The embeddings are centred and divided by their root mean square norm over all nodes first: with a free intercept
    that changes nothing but the scale of λ, which then means the same for every method.

    Args:
        embeddings: [R, n, h].
        train: nodes to fit, [m] or [R, m].
        val: nodes to choose by, likewise.
        num_classes: C.
        strengths: the λ to choose from.
        steps: of the accelerated gradient descent.
        decay: λ for embeddings as they are, instead of a choice; 0: there is one.
    """
    E = embeddings - embeddings.mean(1, keepdim=True)
    norm = E.square().sum(-1).mean(-1).sqrt().clamp(min=1e-15)  # its square is a float too
    E = E / norm[:, None, None]
    replicas, width = E.shape[0], E.shape[2]
    # B of embeddings that are so much smaller is so much larger
    lambdas = (decay / norm.square())[:, None] if decay else E.new_tensor(strengths).expand(replicas, -1)  # [R, K]
    B, c = minimise(rows_of(E, train.index), train.target, train.weight, lambdas, num_classes, steps)
    of_val = _by_strength(rows_of(E, val.index) @ B.reshape(replicas, width, -1), num_classes) + c
    target = val.target.expand(of_val.shape[0], of_val.shape[1])
    weight = torch.full_like(target, 1 / target.shape[-1], dtype=E.dtype) if val.weight is None else val.weight
    right = ((of_val.argmax(-1) == target[..., None]) * weight[..., None]).sum(1)  # [R, K]
    loss = nll(of_val.transpose(1, 2).log_softmax(-1), target[:, None], weight[:, None])
    most = right.max(-1, keepdim=True).values
    best = loss.masked_fill(right < most - 1e-6, torch.inf).argmin(-1)
    each = torch.arange(replicas, device=E.device)
    logits = E @ B[each, :, best] + c[each, :, best]
    return Fitted(logits, loss[each, best], lambdas[each, best])


def minimise(
    E: Tensor, target: Tensor, weight: Tensor | None, decay: Tensor, num_classes: int, steps: int
) -> tuple[Tensor, Tensor]:
    """B [R, h, K, C] and c [R, 1, K, C] for E [R, m, h] and strengths [R, K].

    Nesterov's accelerated gradient descent with step 1/L, L = ½ σ_max([√w E, √w])² + λ, and its momentum started anew,
    problem by problem, whenever it points uphill (O'Donoghue and Candès, 2015).
    """
    replicas, m, width = E.shape
    E = torch.cat([E, torch.ones_like(E[..., :1])], -1)  # the intercept is the weight of a constant
    w = torch.full((replicas, m), 1 / m, dtype=E.dtype, device=E.device) if weight is None else weight
    wanted = torch.nn.functional.one_hot(target, num_classes).to(E.dtype).expand(replicas, m, -1)
    each = decay[:, None, :, None]  # [R, 1, K, 1]
    decays = each.repeat(1, width + 1, 1, 1)
    decays[:, -1] = 0
    largest = torch.linalg.matrix_norm(w.sqrt()[..., None] * E, 2).square()
    step = 1 / (largest[:, None, None, None] / 2 + each)
    theta = E.new_zeros(replicas, width + 1, decay.shape[1], num_classes)
    ahead, momentum = theta, torch.ones_like(step)
    for _ in range(steps):
        guess = _by_strength(E @ ahead.reshape(replicas, width + 1, -1), num_classes).softmax(-1)
        error = (guess - wanted[:, :, None]) * w[..., None, None]
        gradient = (E.mT @ error.reshape(replicas, m, -1)).reshape(theta.shape) + decays * ahead
        new = ahead - step * gradient
        uphill = (gradient * (new - theta)).sum((1, 3), keepdim=True) > 0
        momentum = momentum.masked_fill(uphill, 1)
        following = (1 + (1 + 4 * momentum.square()).sqrt()) / 2
        ahead = new + (momentum - 1) / following * (new - theta)
        theta, momentum = new, following
    return theta[:, :-1], theta[:, -1:]


def _by_strength(logits: Tensor, num_classes: int) -> Tensor:
    """[R, m, K·C] → [R, m, K, C]."""
    return logits.reshape(*logits.shape[:2], -1, num_classes)


Outcome = tuple[Tensor, Tensor, Tensor]  # logits [R, n, C], validation loss [R], epochs [R]


def train_self_supervised(
    settings: DGI | MVGRL | GRACE,
    data: GraphRecord,
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
    objective: PretextTask = settings.objective(data, place)
    batch_size = batch_size or plan_batch(objective, len(seeds), place)
    tally = EpochCounter(progress, len(seeds) * settings.epochs)

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

    parts = run_in_batches(train_part, len(seeds), batch_size, place, tally)
    logits, val_loss, epochs = (torch.cat(each) for each in zip(*parts, strict=True))
    one = objective.initial(seeds[:1])
    parameters = sum(weight.numel() for weight in one) + (settings.hidden_channels + 1) * classes
    seconds = time.perf_counter() - start
    name = type(settings).__name__.lower()
    return BaselineRuns(name, seeds, logits, data.y, val_loss, epochs, parameters, seconds)


def plan_batch(objective: PretextTask, replicas: int, device: torch.device) -> int:
    """How many runs to train together: one on a CPU, where more only crowd the caches; what fits on a GPU."""
    if device.type == "cpu":
        return 1
    free, _ = torch.cuda.mem_get_info(device)
    return even_batch_size(replicas, int(0.6 * free / objective.memory))
