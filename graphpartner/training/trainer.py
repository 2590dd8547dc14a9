"""Train GPNN with many seeds: the teachers of each run where its settings ask for some, then the runs, in batches.

A run of G groups trains G networks separately and joins them: W^(1) = [W_1^(1), …, W_G^(1)] and
W^(2) = 1/G [W_1^(2); …; W_G^(2)] are one GPNN of G times the width. The ReLU acts on each hidden unit by itself, so its
logits are exactly the mean of the logits of the G networks: an ensemble with a single forward pass.
"""

import copy
import operator
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from graphpartner.graph.checks import check_graph
from graphpartner.graph.record import GraphRecord, as_record
from graphpartner.kernels import draws
from graphpartner.system.device import pick_device
from graphpartner.system.errors import InputError
from graphpartner.system.parallel import EpochCounter, plan_batch, run_in_batches
from graphpartner.system.progress import Progress, silent
from graphpartner.training.batch import Batch
from graphpartner.training.loop import Trained, train_replicas
from graphpartner.training.prepared import count_classes, labelled, prepare_graph
from graphpartner.training.presets import Preset
from graphpartner.training.runs import Runs
from graphpartner.training.settings import PER_REPLICA, Settings

if TYPE_CHECKING:
    from torch_geometric.data import Data


def train(
    data: "GraphRecord | Data",
    settings: Settings | Preset | Sequence[Settings],
    seeds: Iterable[int] = range(10),
    device: str | torch.device = "auto",
    batch_size: int | None = None,
    progress: Progress = silent,
) -> Runs:
    """Enhance the graph and train one GPNN per seed. No test label is read.

    Args:
        data: a graph as loaded, with ``train_mask`` and ``val_mask`` of [n], or of [R, n] for one split per seed.
        settings: a preset, settings, or one of them per seed that differ only in
            :data:`graphpartner.training.settings.PER_REPLICA`.
        seeds: one per run.
        device: ``"auto"`` takes a GPU where there is one.
        batch_size: number of runs trained together; chosen by device and memory if not given. Results do not depend
            on it, up to the order of floating-point sums.
        progress: called with (epochs done, maximum number of epochs) over all runs.
    """
    seeds = check_seeds(seeds)
    check_batch_size(batch_size)
    if isinstance(settings, Preset):
        settings = settings.settings
    settings = [settings] * len(seeds) if isinstance(settings, Settings) else list(settings)
    _check_settings(settings, len(seeds))
    record = as_record(data)
    check_graph(record, require=("y", "train_mask", "val_mask"))
    record = record.cpu()  # a shallow copy: the caller's graph stays where it is
    place = pick_device(device)
    teacher = None
    if num_teachers := _teachers_per_run(settings[0]):
        share = num_teachers / (num_teachers + settings[0].groups)
        teacher = teacher_probabilities(record, settings, seeds, place, _part_of(progress, 0, share))
        progress = _part_of(progress, share, 1)
    return _train(record, settings, seeds, place, teacher, batch_size, progress)


def _train(
    data: GraphRecord,
    settings: list[Settings],
    seeds: list[int],
    device: torch.device,
    teacher: Tensor | None,
    batch_size: int | None,
    progress: Progress,
) -> Runs:
    """Train one run per seed, with the class probabilities [R, n, C] of its teachers where there are some."""
    groups = settings[0].groups
    network_seeds = [own for seed, each in zip(seeds, settings, strict=True) for own in group_seeds(seed, each)]
    batch_size = batch_size or plan_batch(len(network_seeds), lambda: _replica_memory(data, settings[0]), device)
    deepest = max(settings, key=lambda each: each.num_steps)
    problem = prepare_graph(data, deepest, device, batch_size)
    train_nodes = labelled(data.train_mask, data.y, len(seeds), "train_mask", device)
    val_nodes = labelled(data.val_mask, data.y, len(seeds), "val_mask", device)
    counter = EpochCounter(progress, len(network_seeds) * settings[0].epochs)

    def train_part(part: slice) -> Trained:
        run_of = torch.arange(part.start, part.stop) // groups  # the run that each network is a group of
        there, targets = run_of.to(device), None if teacher is None else teacher[run_of].to(device)
        own = [settings[run] for run in run_of.tolist()]
        batch = Batch(problem, own, network_seeds[part], train_nodes.of(there), val_nodes.of(there), targets)
        return train_replicas(batch, counter.add)

    parts = run_in_batches(train_part, len(network_seeds), batch_size, device, counter)
    trained = _join_groups(Trained.join(parts), groups)
    return Runs(problem, settings, seeds, data.y, trained, [part.val_loss.numel() for part in parts])


def teacher_probabilities(
    data: GraphRecord, settings: list[Settings], seeds: list[int], device: torch.device, progress: Progress = silent
) -> Tensor:
    """Return the mean class probabilities of each run's last generation of teachers, [R, n, C]."""
    for teachers in train_teachers(data, settings, seeds, device, progress):
        last = teachers
    return _mean_probabilities(last, settings[0].teachers)


def train_teachers(
    data: GraphRecord, settings: list[Settings], seeds: list[int], device: torch.device, progress: Progress = silent
) -> Iterator[Runs]:
    """Yield each generation of teachers: those of the first run, those of the second, …, [R · teachers].

    Teachers have the settings and the split of their run, and seeds that follow from its seed, so that runs stay
    independent of each other. Each generation is distilled into the next; the first one is trained without teachers.
    """
    count, generations = settings[0].teachers, settings[0].generations
    data = copy.copy(data)
    if "test_mask" in data:
        del data.test_mask  # not needed, and of one split per run, not per teacher
    for name in ("train_mask", "val_mask"):
        if data[name].dim() == 2:
            data[name] = data[name].repeat_interleave(count, 0)
    teachers = [each.replace(groups=1) for each in settings for _ in range(count)]
    children = [draws.child_seeds(seed, count * generations) for seed in seeds]
    targets = None
    for generation in range(generations):
        own_seeds = [child for each in children for child in each[generation * count :][:count]]
        part = _part_of(progress, generation / generations, (generation + 1) / generations)
        runs = _train(data, teachers, own_seeds, device, targets, None, part)
        yield runs
        if generation + 1 < generations:
            targets = _mean_probabilities(runs, count).repeat_interleave(count, 0)


def _mean_probabilities(teachers: Runs, count: int) -> Tensor:
    """Return the mean class probabilities of each ``count`` consecutive runs, [R, n, C] of [R · count]."""
    return teachers.probabilities().unflatten(0, (-1, count)).mean(1)


def _teachers_per_run(settings: Settings) -> int:
    return settings.teachers * settings.generations


def group_seeds(seed: int, settings: Settings) -> list[int]:
    """Return the seeds of a run's groups: its own, and others that follow from it and that no teacher of it has."""
    used = _teachers_per_run(settings)
    return [seed, *draws.child_seeds(seed, used + settings.groups - 1)[used:]]


def _join_groups(trained: Trained, groups: int) -> Trained:
    """Join R · G networks to R networks of G groups each.

    The validation loss is the mean over the groups, an upper bound of that of the joined network, since cross-entropy
    is convex in the logits; the learning curve and the best epoch are those of the first group.
    """
    weight1, weight2 = (weight.unflatten(0, (-1, groups)) for weight in trained.weights)
    wide = weight1.transpose(1, 2).flatten(2), weight2.flatten(1, 2) / groups
    first = torch.arange(0, len(trained.val_loss), groups, device=trained.history.device)
    loss = trained.val_loss.unflatten(0, (-1, groups)).mean(1)
    return Trained(wide, loss, trained.best_epoch[first], trained.history[:, first])


def _part_of(progress: Progress, start: float, stop: float) -> Progress:
    """Return a progress function for the part of a job from ``start`` to ``stop``."""
    return lambda done, total: progress(round((start + (stop - start) * done / total) * 1_000_000), 1_000_000)


def _replica_memory(data: GraphRecord, settings: Settings) -> int:
    """Return an estimate of the bytes that one replica takes in training."""
    (n, features), width = data.x.shape, settings.hidden_channels
    return 4 * (16 * n * width + 8 * features * width + 16 * n * count_classes(data))


def check_batch_size(batch_size: int | None) -> None:
    """Raise an InputError for a batch size below 1."""
    if batch_size is not None and batch_size < 1:
        raise InputError(f"batch_size = {batch_size}: must be 1 or more")


def check_seeds(seeds: Iterable[int]) -> list[int]:
    """Return the seeds as a list of plain integers; raise an InputError if there is none."""
    if not isinstance(seeds, Iterable):
        raise InputError(f"seeds = {seeds}: must be a sequence, such as range({seeds}) or [{seeds}]")
    seeds = list(seeds)
    if not seeds:
        raise InputError("seeds = []: must hold at least one seed")
    try:
        return [operator.index(seed) for seed in seeds]  # a plain int also for one of NumPy's
    except TypeError:
        raise InputError(f"seeds = {seeds}: must be whole numbers") from None


def _check_settings(settings: list[Settings], seeds: int) -> None:
    if len(settings) != seeds:
        raise InputError(f"{len(settings)} settings for {seeds} seeds: must be one for each seed, or one for all")
    for other in settings[1:]:
        shared = other.replace(**{name: getattr(settings[0], name) for name in PER_REPLICA})
        if shared != settings[0]:
            raise InputError(f"settings of one call: must not differ in more than {', '.join(PER_REPLICA)}")
