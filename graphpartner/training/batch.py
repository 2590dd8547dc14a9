"""R replicas of GPNN on one graph, trained together: one epoch of learning, validation, and compaction."""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from graphpartner.kernels import draws
from graphpartner.kernels.adam import Adam
from graphpartner.kernels.dropout import Dropout, Rate
from graphpartner.kernels.row_products import rows_of
from graphpartner.model.gpnn import DropFunction, GPNNOutput, forward
from graphpartner.model.losses import Objective, agreement_loss, distillation_loss, nll, objective, ramp_up
from graphpartner.model.propagation import propagate_rows, propagate_to_depths
from graphpartner.training.prepared import Labelled, PreparedGraph
from graphpartner.training.settings import PER_REPLICA, Settings

LOSSES = ("loss", "cross_entropy", "rectification", "consistency", "agreement", "distillation")
HISTORY = (*LOSSES, "val_loss", "val_accuracy")


@dataclass
class Replicas:
    """What differs between replicas, and is reduced when some have stopped."""

    settings: dict[str, Tensor]
    """Those named in ``PER_REPLICA``, [R] each."""
    keys: dict[tuple[str, int], Tensor]
    """Random keys per stream and view, [epochs, R, 2]."""
    negatives: Tensor
    """Ω of every epoch, [epochs, R, τ]."""
    train: Labelled
    val: Labelled
    teacher: Tensor | None
    """Mean class probabilities of the teachers, [R, n, C]."""
    _rates: dict[str, Rate] = field(default_factory=dict)

    def rate(self, name: str) -> Rate:
        """Return a dropout rate of all replicas, whose thresholds are computed once."""
        if name not in self._rates:
            self._rates[name] = Rate(self.settings[name])
        return self._rates[name]

    def keep(self, replicas: Tensor) -> "Replicas":
        """Return these replicas alone."""
        return Replicas(
            {name: value[replicas] for name, value in self.settings.items()},
            {name: value[:, replicas] for name, value in self.keys.items()},
            self.negatives[:, replicas],
            self.train.of(replicas),
            self.val.of(replicas),
            None if self.teacher is None else self.teacher[replicas],
        )


class Batch:
    """R runs that may differ in seed, split and the settings named in ``PER_REPLICA``.

    Args:
        problem: the graph.
        settings: one per replica; what is not in ``PER_REPLICA`` is taken from the first.
        seeds: one per replica; the random draws of a run depend on its own seed alone.
        train: labelled nodes of the training set.
        val: labelled nodes of the validation set.
        teacher: mean class probabilities of the teachers, [R, n, C], where there are teachers.
    """

    curves = HISTORY

    def __init__(
        self,
        problem: PreparedGraph,
        settings: list[Settings],
        seeds: list[int],
        train: Labelled,
        val: Labelled,
        teacher: Tensor | None = None,
    ) -> None:
        self.problem, self.shared = problem, settings[0]
        device = train.index.device
        self.epoch = torch.zeros(1, dtype=torch.int64, device=device)
        values = {name: [getattr(each, name) for each in settings] for name in PER_REPLICA}
        epochs, num_negatives = self.shared.epochs, self.shared.num_negatives
        negatives = draws.choices(draws.keys(seeds, "negatives", epochs), num_negatives, problem.num_nodes)
        self.replicas = Replicas(
            {name: torch.tensor(value, dtype=torch.float32, device=device) for name, value in values.items()},
            {
                (stream, view): draws.keys(seeds, stream, epochs, view).to(device)
                for stream in ("input", "hidden", "partner", "nodes")
                for view in range(self.shared.views)
            },
            negatives.to(device),
            train,
            val,
            teacher,
        )
        width, classes = self.shared.hidden_channels, problem.num_classes
        weight1 = draws.glorot(draws.keys(seeds, "weight1", 1)[0].to(device), problem.X.shape[1], width)
        weight2 = draws.glorot(draws.keys(seeds, "weight2", 1)[0].to(device), width, classes)
        rate, decay1, decay2 = (self.replicas.settings[name] for name in ("lr", "decay1", "decay2"))
        self.optimizers = (Adam(weight1, rate, decay1), Adam(weight2, rate, decay2))
        self.drops_input, self.drops_hidden, self.drops_nodes, self.contrasts = (
            max(values[name]) > 0 for name in ("input_dropout", "dropout", "drop_node", "lambda_cs")
        )
        self.some_contrast = self.contrasts and min(values["lambda_cs"]) == 0
        self._set_depths([each.num_steps for each in settings])

    def _set_depths(self, depths: list[int]) -> None:
        """Propagate each replica to its own depth."""
        self.depths, self.propagate = depths, propagate_to_depths(self.problem.propagate, depths)
        self.propagate_to_val = propagate_rows(self.propagate, self.replicas.val.index)

    @property
    def weights(self) -> tuple[Tensor, Tensor]:
        """W^(1) [R, d, h] and W^(2) [R, h, C]."""
        first, second = self.optimizers
        return first.weight, second.weight

    def step(self) -> tuple[Tensor, ...]:
        """Train for one epoch and return the losses named in ``LOSSES``, [R] each."""
        first, second = self.weights
        weights = first.detach().requires_grad_(), second.detach().requires_grad_()
        losses = self.losses(weights)
        gradients = torch.autograd.grad(losses[0].sum(), weights)
        for optimizer, gradient in zip(self.optimizers, gradients, strict=True):
            optimizer.step(gradient)
        return tuple(loss.detach() for loss in losses)

    def key(self, stream: str, view: int) -> Tensor:
        """Return this epoch's key of a stream, [R, 2], by an epoch on the device: a CUDA graph replays this."""
        return self.replicas.keys[stream, view].index_select(0, self.epoch)[0]

    def losses(self, weights: tuple[Tensor, Tensor]) -> tuple[Tensor, ...]:
        """Return the losses named in ``LOSSES``, [R] each: Eq. 19 averaged over views, and those beyond the paper."""
        views = [self.training_output(weights, view) for view in range(self.shared.views)]
        parts = [self.objective(view) for view in views]
        total, *paper = (torch.stack(each).mean(0) for each in zip(*parts, strict=True)) if views[1:] else parts[0]
        agreement = distillation = torch.zeros_like(total)
        own = self.replicas.settings
        if views[1:]:
            agreement = agreement_loss([view.logits for view in views], own["sharpening"][:, None, None])
            total = total + own["lambda_views"] * ramp_up(self.epoch) * agreement
        if self.replicas.teacher is not None:
            each = [distillation_loss(view.logits, self.replicas.teacher) for view in views]
            distillation = torch.stack(each).mean(0)
            total = total + own["lambda_distill"] * distillation
        if self.some_contrast:  # replicas without the contrastive loss report 0, as they do when trained alone
            paper[-1] = paper[-1].masked_fill(own["lambda_cs"] == 0, 0)
        return total, *paper, agreement, distillation

    def objective(self, out: GPNNOutput) -> Objective:
        """Return Eq. 19 of every replica, with this epoch's negatives."""
        own, shared = self.replicas.settings, self.shared
        return objective(
            out,
            self.replicas.train.index,
            self.replicas.train.target,
            self.replicas.train.weight,
            lambda_rt=own["lambda_rt"],
            lambda_cs=own["lambda_cs"],
            temperature=own["temperature"][:, None, None],
            margin=own["margin"],
            negatives=self.replicas.negatives.index_select(0, self.epoch)[0],
            score=shared.score,
            neighbors=self.problem.neighbors,
            contrast=self.contrasts,
        )

    def training_output(self, weights: tuple[Tensor, Tensor], view: int = 0) -> GPNNOutput:
        """Return the forward pass of one view of this epoch, with its dropout."""
        drop: dict[str, DropFunction] = {}
        if self.drops_input:
            drop["drop_input"] = Dropout(self.key("input", view), self.replicas.rate("input_dropout")).input
        if self.drops_hidden:
            drop["drop_hidden"] = Dropout(self.key("hidden", view), self.replicas.rate("dropout")).hidden
            if self.shared.separate_dropout:
                drop["drop_partner"] = Dropout(self.key("partner", view), self.replicas.rate("dropout")).hidden
        if self.drops_nodes:
            whole_rows = Dropout(self.key("nodes", view), self.replicas.rate("drop_node")).nodes
            drop["drop_hidden"] = _after(whole_rows, drop.get("drop_hidden"))
        alpha = self.replicas.settings["alpha"][:, None, None]
        weight1, weight2 = weights
        return forward(self.problem.X, weight1, weight2, self.propagate, alpha, smooth=self.contrasts, **drop)

    @torch.no_grad()
    def val_logits(self) -> Tensor:
        """Return the logits of the validation nodes, [R, m, C], without dropout; only C columns are propagated."""
        alpha, val = self.replicas.settings["alpha"][:, None, None], self.replicas.val
        inputs = (self.problem.X, *self.weights, self.propagate_to_val, alpha)
        return forward(*inputs, smooth=False, partner_rows=lambda H: rows_of(H, val.index)).logits

    def validate(self) -> tuple[Tensor, Tensor]:
        """Return validation loss and accuracy, [R] each."""
        return loss_and_accuracy(self.val_logits(), self.replicas.val)

    def keep(self, replicas: Tensor) -> None:
        """Drop all other replicas."""
        self.replicas = self.replicas.keep(replicas)
        self._set_depths([self.depths[replica] for replica in replicas.tolist()])
        for optimizer in self.optimizers:
            optimizer.keep(replicas)


def _after(second: DropFunction, first: DropFunction | None) -> DropFunction:
    return second if first is None else lambda H: second(first(H))


def loss_and_accuracy(logits: Tensor, nodes: Labelled) -> tuple[Tensor, Tensor]:
    """Return the cross-entropy (Eq. 15) and the accuracy of logits [R, m, C] of these nodes, [R] each."""
    right = (logits.argmax(-1) == nodes.target).float()  # weighted, unlike graphpartner.model.metrics.accuracy
    accuracy = right.mean(-1) if nodes.weight is None else (right * nodes.weight).sum(-1)
    return nll(logits.log_softmax(-1), nodes.target, nodes.weight), accuracy
