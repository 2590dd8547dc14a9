"""What training a baseline gives back: what every run predicts, and what it cost.

R runs of one baseline, trained as one program: what :func:`graphpartner.training.loop.train_replicas` trains.

Train many runs of one supervised baseline at once, and ask the best weights of each.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from graphpartner.graph.record import GraphRecord
from graphpartner.kernels.adam import Adam
from graphpartner.kernels.row_products import rows_of
from graphpartner.lab.baselines.baseline import Baseline, BaselineOutput, BaselineSettings, Weights
from graphpartner.lab.baselines.run_dropout import InitialWeights, NoDropout, RunDropout
from graphpartner.system.parallel import EpochCounter, even_batch_size, run_in_batches
from graphpartner.system.progress import Progress, silent
from graphpartner.training.batch import loss_and_accuracy
from graphpartner.training.loop import Trained, train_replicas
from graphpartner.training.prepared import Labelled, labelled


@dataclass(frozen=True)
class BaselineRuns:
    """R finished runs of one baseline on one graph.

    Attributes:
        name: of the baseline.
        seeds: one a run.
        logits: [R, n, C], on the CPU, of the best weights of each run.
        y: [n], the class of every node, −1 for none.
        val_loss: the lowest validation loss of each run, [R].
        epochs: how many epochs each run took, [R].
        parameters: how many weights one run learns.
        seconds: what all runs together took, preparation included.
        layers: the hidden states of the best weights after each layer, [R, n, h_i] each, where they were asked for.
        weights: what each run learned, name → [R, …], in the order of the layers, where they were asked for.
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
        """[R, n, C]."""
        return self.logits.softmax(-1)

    def accuracy(self, mask: Tensor) -> Tensor:
        """Share of right answers of each run, [R], over the labelled nodes under a mask [n] or [R, n]."""
        counted = mask.cpu() & (self.y >= 0)
        right = (self.logits.argmax(-1) == self.y) & counted
        return right.sum(-1) / counted.sum(-1)


class BaselineBatch:
    """R runs that differ in seed and split.

    Args:
        model: the baseline on its graph.
        settings: of all runs.
        seeds: one for each run; a run's random draws depend on its own seed alone.
        train: labelled nodes to learn from.
        val: labelled nodes to stop by.
    """

    curves = ("loss", "val_loss", "val_accuracy")

    def __init__(
        self, model: Baseline, settings: BaselineSettings, seeds: list[int], train: Labelled, val: Labelled
    ) -> None:
        self.model, self.shared, self.train, self.val = model, settings, train, val
        device = model.graph.device
        self.noise = RunDropout(seeds, settings.epochs, device)
        self.epoch = self.noise.epoch
        self.optimizers: dict[str, Adam] = {}
        self.buffers: Weights = {}
        rate = torch.full((len(seeds),), settings.lr, device=device)
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
        """The same without their names."""
        return tuple(self.named.values())

    def step(self) -> tuple[Tensor]:
        """One epoch of learning: forward pass, loss, gradients, Adam."""
        learned = {name: optimizer.weight.detach().requires_grad_() for name, optimizer in self.optimizers.items()}
        loss = self.model.loss(learned | self.buffers, self.noise, self.train)
        gradients = torch.autograd.grad(loss.sum(), tuple(learned.values()))
        for optimizer, gradient in zip(self.optimizers.values(), gradients, strict=True):
            optimizer.step(gradient)
        return (loss.detach(),)

    @torch.no_grad()
    def output(self) -> BaselineOutput:
        """The forward pass without noise."""
        return self.model.forward(self.named, NoDropout())

    def validate(self) -> tuple[Tensor, Tensor]:
        """Validation loss and accuracy, [R] each."""
        return loss_and_accuracy(rows_of(self.output().logits, self.val.index), self.val)

    def keep(self, replicas: Tensor) -> None:
        """Go on with these runs alone."""
        self.noise.keep(replicas)
        self.train, self.val = self.train.of(replicas), self.val.of(replicas)
        for optimizer in self.optimizers.values():
            optimizer.keep(replicas)
        self.buffers = {name: value[replicas] for name, value in self.buffers.items()}


MEMORY_SHARE = 0.4  # of a GPU's free memory for one batch: warm-up and captured program do not share theirs


def train_model(
    name: str,
    build: Callable[[], Baseline],
    settings: BaselineSettings,
    data: GraphRecord,
    seeds: list[int],
    device: torch.device,
    progress: Progress = silent,
    keep_layers: bool = False,
    batch_size: int | None = None,
) -> BaselineRuns:
    """One run a seed, until each has stopped.

    Args:
        name: of the baseline.
        build: makes the model on its graph.
        settings: of all runs.
        data: the graph, on the CPU, with labels, ``train_mask`` and ``val_mask``.
        seeds: one run each.
        device: where the runs are trained.
        progress: called with (epochs done, epochs at most) over all runs.
        keep_layers: whether to keep the weights and the hidden states after each graph layer.
        batch_size: how many runs are trained together; chosen by device and memory if not given.
    """
    began = time.perf_counter()
    model = build()
    train = labelled(data.train_mask, data.y, len(seeds), "train_mask", device)
    val = labelled(data.val_mask, data.y, len(seeds), "val_mask", device)
    tally = EpochCounter(progress, len(seeds) * settings.epochs)

    def batch_of(part: slice) -> BaselineBatch:
        replicas = torch.arange(part.start, part.stop, device=device)
        return BaselineBatch(model, settings, seeds[part], train.of(replicas), val.of(replicas))

    def train_part(part: slice) -> Trained:
        return train_replicas(batch_of(part), tally.add)

    first = batch_of(slice(0, 1))
    batch_size = batch_size or plan_batch(first, len(seeds), device)
    parts = run_in_batches(train_part, len(seeds), batch_size, device, tally)
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
    """The forward pass of the best weights, so many runs at a time, brought to the CPU; hidden states where asked for.

    They are not held otherwise: a hundred runs of a deep model have gigabytes of them.
    """
    outputs = []
    for start in range(0, trained.val_loss.numel(), together):
        piece = (weight[start : start + together] for weight in trained.weights)
        output = model.forward(dict(zip(names, piece, strict=True)), NoDropout())
        layers = [state.cpu() for state in output.layers] if keep_layers else []
        outputs.append(BaselineOutput(output.logits.cpu(), layers))
    return outputs


def plan_batch(first: BaselineBatch, replicas: int, device: torch.device) -> int:
    """How many runs to train together: one on a CPU, where more only crowd the caches; what fits on a GPU.

    How much memory a run takes is measured on one epoch of ``first``, a batch of one run.
    """
    if device.type == "cpu":
        return 1
    torch.cuda.synchronize(device)
    torch.cuda.reset_peak_memory_stats(device)
    before = torch.cuda.memory_allocated(device)
    first.step()
    first.validate()
    torch.cuda.synchronize(device)
    state = 4 * 4 * sum(weight.numel() for weight in first.weights)  # best weights, what becomes of them, both moments
    each = torch.cuda.max_memory_allocated(device) - before + state
    torch.cuda.empty_cache()
    free, _ = torch.cuda.mem_get_info(device)
    return even_batch_size(replicas, int(MEMORY_SHARE * free / each))
