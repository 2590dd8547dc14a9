"""Train many runs of one supervised baseline at once, and ask the best weights of each."""

import time
from collections.abc import Callable

import torch
from torch_geometric.data import Data

from graphpartner.baselines.batch import BaselineBatch
from graphpartner.baselines.model import Model, Output
from graphpartner.baselines.noise import Quiet
from graphpartner.baselines.runs import BaselineRuns
from graphpartner.baselines.settings import BaselineSettings
from graphpartner.progress import Progress, silent
from graphpartner.train import trainer
from graphpartner.train.in_batches import Tally, in_batches, like_batches
from graphpartner.train.problem import labelled
from graphpartner.train.runs import Trained

MEMORY_SHARE = 0.4  # of a GPU's free memory for one batch: warm-up and captured program do not share theirs


def train_model(
    name: str,
    build: Callable[[], Model],
    settings: BaselineSettings,
    data: Data,
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
    tally = Tally(progress, len(seeds) * settings.epochs)

    def batch_of(part: slice) -> BaselineBatch:
        replicas = torch.arange(part.start, part.stop, device=device)
        return BaselineBatch(model, settings, seeds[part], train.of(replicas), val.of(replicas))

    def train_part(part: slice) -> Trained:
        return trainer.run(batch_of(part), tally.add)

    first = batch_of(slice(0, 1))
    batch_size = batch_size or plan_batch(first, len(seeds), device)
    parts = in_batches(train_part, len(seeds), batch_size, device, tally)
    trained = Trained.join(parts)
    together = max(part.val_loss.numel() for part in parts)
    outputs = ask(model, list(first.named), trained, together, keep_layers)
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
def ask(model: Model, names: list[str], trained: Trained, together: int, keep_layers: bool) -> list[Output]:
    """The forward pass of the best weights, so many runs at a time, brought to the CPU; hidden states where asked for.

    They are not held otherwise: a hundred runs of a deep model have gigabytes of them.
    """
    outputs = []
    for start in range(0, trained.val_loss.numel(), together):
        piece = (weight[start : start + together] for weight in trained.weights)
        output = model.forward(dict(zip(names, piece, strict=True)), Quiet())
        layers = [state.cpu() for state in output.layers] if keep_layers else []
        outputs.append(Output(output.logits.cpu(), layers))
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
    return like_batches(replicas, int(MEMORY_SHARE * free / each))
