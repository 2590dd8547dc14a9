"""Training as a plain loop: dense, float64, one run, autograd."""

from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from graphpartner.graph.record import GraphRecord
from graphpartner.kernels import draws
from graphpartner.kernels.dropout import Dropout, Rate
from graphpartner.training.settings import Settings
from tests.enhance.reference import slow_attribute_graph

HISTORY = (
    "loss",
    "cross_entropy",
    "rectification",
    "consistency",
    "agreement",
    "distillation",
    "val_loss",
    "val_accuracy",
)


def enhanced(data: GraphRecord, settings: Settings) -> Tensor:
    """A_en of Eqs. 7 and 8, dense."""
    n = data.num_nodes
    A = np.eye(n)
    for j, i in data.edge_index.T.tolist():
        A[i, j] = 1
    root = np.sqrt(A.sum(1))
    P = A / root[:, None] / root[None, :]
    W = slow_attribute_graph(data.x.numpy().astype(float), data.edge_index.numpy(), settings.k, settings.threshold)
    return torch.from_numpy(settings.beta * P + (1 - settings.beta) * W / W.sum(1, keepdims=True))


@dataclass
class SlowRun:
    """The history of a run, and its best epoch with weights and logits."""

    history: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in HISTORY})
    best_epoch: int = -1
    val_loss: float = float("inf")
    weights: tuple[Tensor, ...] = ()
    logits: Tensor = field(default_factory=lambda: torch.empty(0))


def slow_train(data: GraphRecord, settings: Settings, seed: int, teacher: Tensor | None = None) -> SlowRun:
    """Train one run; ``teacher`` holds class probabilities [n, C] for the distillation loss."""
    X, A, n = data.x.double(), enhanced(data, settings), data.num_nodes
    if settings.features == "row":
        X = X / X.sum(1, keepdim=True).clamp(min=1e-300)
    P = torch.linalg.matrix_power(A, settings.num_steps)
    neighbors = torch.zeros(n, n, dtype=torch.float64)
    neighbors[data.edge_index[1], data.edge_index[0]] = 1
    neighbors = neighbors / neighbors.sum(1, keepdim=True).clamp(min=1)
    shapes = (X.shape[1], settings.hidden_channels), (settings.hidden_channels, int(data.num_classes))
    W1, W2 = (
        draws.glorot(draws.keys([seed], name, 1)[0], *shape)[0].double().requires_grad_()
        for name, shape in zip(("weight1", "weight2"), shapes, strict=True)
    )
    groups = [{"params": [W1], "weight_decay": settings.decay1}, {"params": [W2], "weight_decay": settings.decay2}]
    adam = torch.optim.Adam(groups, lr=settings.lr)
    train, val = (mask.nonzero().squeeze(1) for mask in (data.train_mask, data.val_mask))
    run = SlowRun()

    def dropped(M: Tensor, stream: str, epoch: int, rate: float, view: int) -> Tensor:
        if rate == 0:
            return M
        key = draws.keys([seed], stream, settings.epochs, view)[epoch]
        mask = Dropout(key, Rate(torch.tensor([rate]))).mask(draws.counters(M.numel()))[0]
        return M * mask.reshape(M.shape).double()

    def cross_entropy(logits: Tensor, nodes: Tensor) -> Tensor:
        return torch.nn.functional.cross_entropy(logits[nodes], data.y[nodes])

    def score(h: Tensor, g: Tensor, epoch: int) -> Tensor:
        if settings.score == "cosine":
            h, g = torch.nn.functional.normalize(h), torch.nn.functional.normalize(g)
        omega = draws.choices(draws.keys([seed], "negatives", settings.epochs)[epoch], settings.num_negatives, n)[0]
        pairs = h @ g.T
        positive = pairs.diagonal() if settings.positives == "self" else (pairs * neighbors).sum(1)
        against = pairs[:, omega]
        if settings.score == "softmax":
            share = torch.cat([positive[:, None], against], 1).softmax(1)
            positive, against = share[:, 0], share[:, 1:]
        return (positive - against.mean(1)).mean()

    def one_view(epoch: int, view: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        hidden = torch.relu(dropped(X, "input", epoch, settings.input_dropout, view) @ W1)
        initial = dropped(hidden, "hidden", epoch, settings.dropout, view)
        if settings.drop_node:
            initial = initial * dropped(torch.ones(n, 1), "nodes", epoch, settings.drop_node, view)
        partner = dropped(hidden, "partner", epoch, settings.dropout, view) if settings.separate_dropout else initial
        smoothed = P @ initial
        mlp, gcn = partner @ W2, smoothed @ W2
        T = settings.temperature
        logits = settings.alpha * mlp + (1 - settings.alpha) * gcn
        p, q = (mlp / T).softmax(1), (gcn / T).softmax(1)
        rt = (p * (p.log() - q.log())).mean() * T**2
        cs = torch.relu(settings.margin - score(initial, smoothed, epoch)) if settings.lambda_cs else torch.zeros(())
        return logits, cross_entropy(logits, train), rt, cs

    for epoch in range(settings.epochs):
        views = [one_view(epoch, view) for view in range(settings.views)]
        ce, rt, cs = (torch.stack([view[part] for view in views]).mean() for part in (1, 2, 3))
        loss = ce + settings.lambda_rt * rt + settings.lambda_cs * cs
        agreement = distillation = torch.zeros(())
        if settings.views > 1:
            p = torch.stack([view[0].softmax(1) for view in views])
            sharp = p.detach().mean(0) ** (1 / settings.sharpening)
            sharp = sharp / sharp.sum(1, keepdim=True)
            agreement = (p - sharp).square().sum(2).mean()
            loss = loss + settings.lambda_views * min(1, (epoch + 1) / 100) * agreement
        if teacher is not None:
            distillation = torch.stack([-(teacher * view[0].log_softmax(1)).sum(1).mean() for view in views]).mean()
            loss = loss + settings.lambda_distill * distillation
        adam.zero_grad()
        loss.backward()
        adam.step()
        with torch.no_grad():
            H = torch.relu(X @ W1)
            logits = settings.alpha * H @ W2 + (1 - settings.alpha) * P @ H @ W2
            val_loss = cross_entropy(logits, val)
            val_accuracy = (logits[val].argmax(1) == data.y[val]).double().mean()
        for name, value in zip(
            HISTORY, (loss, ce, rt, cs, agreement, distillation, val_loss, val_accuracy), strict=True
        ):
            run.history[name].append(value.item())
        if val_loss < run.val_loss:
            run.best_epoch, run.val_loss = epoch, float(val_loss)
            run.weights, run.logits = (W1.detach().clone(), W2.detach().clone()), logits
        if epoch - run.best_epoch >= settings.patience:
            break
    return run
