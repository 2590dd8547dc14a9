"""Train many runs of one supervised baseline at once; the result of a baseline's runs, supervised or not."""

import time
from dataclasses import dataclass, field

import torch
from torch import Tensor

from graphpartner.graph.record import GraphRecord
from graphpartner.kernels.adam import Adam
from graphpartner.kernels.row_products import rows_of
from graphpartner.lab.baselines.baseline import (
    Baseline,
    BaselineOutput,
    BaselineSettings,
    InitialWeights,
    NoDropout,
    RunDropout,
    Weights,
)
from graphpartner.model.metrics import accuracy
from graphpartner.system.parallel import EpochCounter, plan_batch, run_in_batches
from graphpartner.system.progress import Progress, silent
from graphpartner.training.batch import loss_and_accuracy
from graphpartner.training.loop import Trained, train_replicas
from graphpartner.training.prepared import DeviceGraph, Labelled, labelled


@dataclass(frozen=True)
class BaselineRuns:
    """R finished runs of one baseline on one graph.

    Attributes:
        name: name of the baseline.
        seeds: one per run.
        logits: [R, n, C], on the CPU, of the best weights of each run.
        y: [n], the class of every node, −1 for none.
        val_loss: the lowest validation loss of each run, [R].
        epochs: number of epochs of each run, [R].
        parameters: number of learned weights of one run.
        seconds: duration of all runs together, preparation included.
        layers: with ``keep_layers``, the hidden states of the best weights after each layer, [R, n, h_i] each.
        weights: with ``keep_layers``, the best weights, name → [R, …], in the order of the layers.
    """

    name: str
    seeds: list[int]
    logits: Tensor
    y: Tensor
    val_loss: Tensor
    epochs: Tensor
    parameters: int
    seconds: float
    layers: list[Tensor] = field(default_factory=list)
    weights: dict[str, Tensor] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.seeds)

    def probabilities(self) -> Tensor:
        """Return class probabilities, [R, n, C]."""
        return self.logits.softmax(-1)

    def accuracy(self, mask: Tensor) -> Tensor:
        """Return the accuracy of each run, [R], over the labelled nodes under a mask [n] or [R, n]."""
        return accuracy(self.logits, self.y, mask.cpu())


class BaselineBatch:
    """R runs of a baseline that differ in seed and split, trained by :func:`graphpartner.training.loop.train_replicas`.

    Args:
        model: the baseline on its graph.
        seeds: one per run; a run's random draws depend on its own seed alone.
        train: training nodes.
        val: validation nodes, for early stopping.
    """

    curves = ("loss", "val_loss", "val_accuracy")

    def __init__(self, model: Baseline, seeds: list[int], train: Labelled, val: Labelled) -> None:
        self.model, self.shared, self.train, self.val = model, model.settings, train, val
        device = model.graph.device
        self.dropout = RunDropout(seeds, self.shared.epochs, device)
        self.epoch = self.dropout.epoch
        self.optimizers: dict[str, Adam] = {}
        self.buffers: Weights = {}
        rate = torch.full((len(seeds),), self.shared.lr, device=device)
        for name, weight in model.weights(InitialWeights(seeds, device)).items():
            if weight.learned:
                self.optimizers[name] = Adam(weight.value, rate, torch.full_like(rate, weight.decay))
            else:
                self.buffers[name] = weight.value

    @property
    def named(self) -> Weights:
        """All weights by name, [R, rows, columns] each."""
        return {name: optimizer.weight for name, optimizer in self.optimizers.items()} | self.buffers

    @property
    def weights(self) -> tuple[Tensor, ...]:
        """All weights, without their names."""
        return tuple(self.named.values())

    def step(self) -> tuple[Tensor]:
        """One epoch: forward pass, loss, gradients, Adam."""
        learned = {name: optimizer.weight.detach().requires_grad_() for name, optimizer in self.optimizers.items()}
        loss = self.model.loss(learned | self.buffers, self.dropout, self.train)
        gradients = torch.autograd.grad(loss.sum(), tuple(learned.values()))
        for optimizer, gradient in zip(self.optimizers.values(), gradients, strict=True):
            optimizer.step(gradient)
        return (loss.detach(),)

    @torch.no_grad()
    def output(self) -> BaselineOutput:
        """The forward pass without dropout."""
        return self.model.forward(self.named, NoDropout())

    def validate(self) -> tuple[Tensor, Tensor]:
        """Validation loss and accuracy, [R] each."""
        return loss_and_accuracy(rows_of(self.output().logits, self.val.index), self.val)

    def keep(self, replicas: Tensor) -> None:
        """Go on with these runs alone."""
        self.dropout.keep(replicas)
        self.train, self.val = self.train.of(replicas), self.val.of(replicas)
        for optimizer in self.optimizers.values():
            optimizer.keep(replicas)
        self.buffers = {name: value[replicas] for name, value in self.buffers.items()}


MEMORY_SHARE = 0.4  # of a GPU's free memory for one batch: warm-up and captured step do not share theirs


def train_supervised(
    name: str,
    method: type[Baseline],
    settings: BaselineSettings,
    data: GraphRecord,
    seeds: list[int],
    device: torch.device,
    progress: Progress = silent,
    batch_size: int | None = None,
    keep_layers: bool = False,
) -> BaselineRuns:
    """Train one run of a supervised baseline per seed."""
    began = time.perf_counter()
    model = method(DeviceGraph(data, device), settings)
    train = labelled(data.train_mask, data.y, len(seeds), "train_mask", device)
    val = labelled(data.val_mask, data.y, len(seeds), "val_mask", device)
    counter = EpochCounter(progress, len(seeds) * settings.epochs)

    def batch_of(part: slice) -> BaselineBatch:
        replicas = torch.arange(part.start, part.stop, device=device)
        return BaselineBatch(model, seeds[part], train.of(replicas), val.of(replicas))

    def train_part(part: slice) -> Trained:
        return train_replicas(batch_of(part), counter.add)

    first = batch_of(slice(0, 1))
    batch_size = batch_size or plan_batch(len(seeds), lambda: measured_memory(first), device, MEMORY_SHARE)
    parts = run_in_batches(train_part, len(seeds), batch_size, device, counter)
    trained = Trained.join(parts)
    together = max(part.val_loss.numel() for part in parts)
    outputs = predict_logits(model, list(first.named), trained, together, keep_layers)
    return BaselineRuns(
        name=name,
        seeds=seeds,
        logits=torch.cat([output.logits for output in outputs]),
        y=data.y,
        val_loss=trained.val_loss.cpu(),
        epochs=(trained.best_epoch.cpu() + 1 + settings.patience).clamp(max=settings.epochs),
        parameters=sum(optimizer.weight[0].numel() for optimizer in first.optimizers.values()),
        seconds=time.perf_counter() - began,
        layers=[torch.cat(states) for states in zip(*(output.layers for output in outputs), strict=True)],
        weights={name: weight.cpu() for name, weight in zip(first.named, trained.weights, strict=True)}
        if keep_layers
        else {},
    )


@torch.no_grad()
def predict_logits(
    model: Baseline, names: list[str], trained: Trained, together: int, keep_layers: bool
) -> list[BaselineOutput]:
    """Return the outputs of the best weights on the CPU, ``together`` runs at a time.

    Hidden states are in them with ``keep_layers`` only: a hundred runs of a deep model have gigabytes of them.
    """
    outputs = []
    for start in range(0, trained.val_loss.numel(), together):
        piece = (weight[start : start + together] for weight in trained.weights)
        output = model.forward(dict(zip(names, piece, strict=True)), NoDropout())
        layers = [state.cpu() for state in output.layers] if keep_layers else []
        outputs.append(BaselineOutput(output.logits.cpu(), layers))
    return outputs


def measured_memory(batch: BaselineBatch) -> int:
    """Return the bytes that a batch takes on its GPU, measured on one epoch."""
    device = batch.epoch.device
    batch.validate()  # from now on the matrices of the graph are there
    torch.cuda.synchronize(device)
    torch.cuda.reset_peak_memory_stats(device)
    before = torch.cuda.memory_allocated(device)
    batch.step()
    batch.validate()
    torch.cuda.synchronize(device)
    state = 4 * 4 * sum(weight.numel() for weight in batch.weights)  # best weights, their successors, both moments
    peak = torch.cuda.max_memory_allocated(device)
    torch.cuda.empty_cache()
    return peak - before + state
