"""Train GPNN with many seeds: the replicas in batches, each until all of its runs have stopped.

A network whose hidden units were trained in groups, each group as a network of its own.

Side by side, W^(1) = [W_1^(1), …, W_G^(1)] and W^(2) = 1/G [W_1^(2); …; W_G^(2)] are one GPNN of G times the width.
The ReLU acts on each hidden unit by itself, so its logits are exactly the mean of the logits of the G networks: an
ensemble that is a single network, with a single forward pass.
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
    """Enhance the graph and train one GPNN per seed, after its teachers where the settings ask for any.

    No test label is read.

    Args:
        data: a graph as loaded, with ``train_mask`` and ``val_mask`` of [n], or [R, n]: one split a seed.
        settings: a preset, settings, or one of them for each seed that differ only in what
            :data:`graphpartner.training.settings.PER_REPLICA` names.
        seeds: one run each.
        device: ``"auto"`` takes a GPU where there is one.
        batch_size: how many runs are trained together; chosen by device and memory if not given. Results do not
            depend on it, up to the order of floating-point sums.
        progress: called with (epochs done, epochs at most) over all runs.
    """
    seeds = check_seeds(seeds)
    check_batch_size(batch_size)
    if isinstance(settings, Preset):
        settings = settings.settings
    each = [settings] * len(seeds) if isinstance(settings, Settings) else list(settings)
    _check_settings(each, len(seeds))
    record = as_record(data)
    check_graph(record, require=("y", "train_mask", "val_mask"))
    record = record.cpu()  # a shallow copy: the caller's graph stays where it is
    place = pick_device(device)
    lessons = each[0].teachers * each[0].generations
    teacher = None
    if lessons:
        share = lessons / (lessons + each[0].groups)
        teacher = teacher_probabilities(record, each, seeds, place, _share_of(progress, 0, share))
        progress = _share_of(progress, share, 1)
    return _train(record, each, seeds, place, teacher, batch_size, progress)


def _train(
    data: GraphRecord,
    each: list[Settings],
    seeds: list[int],
    place: torch.device,
    teacher: Tensor | None,
    batch_size: int | None,
    progress: Progress,
) -> Runs:
    """One run a seed, taught by an opinion [R, n, C] where there is one."""
    groups = each[0].groups
    own_seeds = [own for seed, one in zip(seeds, each, strict=True) for own in group_seeds(seed, one)]
    batch_size = batch_size or plan_batch(len(own_seeds), lambda: replica_memory(data, each[0]), place)
    deepest = max(each, key=lambda one: one.num_steps)
    problem = prepare_graph(data, deepest, place, batch_size)
    train_nodes = labelled(data.train_mask, data.y, len(seeds), "train_mask", place)
    val_nodes = labelled(data.val_mask, data.y, len(seeds), "val_mask", place)
    tally = EpochCounter(progress, len(own_seeds) * each[0].epochs)

    def train_part(part: slice) -> Trained:
        run_of = torch.arange(part.start, part.stop) // groups  # the run that each network is a group of
        settings, there = [each[of] for of in run_of.tolist()], run_of.to(place)
        taught = None if teacher is None else teacher[run_of].to(place)
        batch = Batch(problem, settings, own_seeds[part], train_nodes.of(there), val_nodes.of(there), taught)
        return train_replicas(batch, tally.add)

    parts = run_in_batches(train_part, len(own_seeds), batch_size, place, tally)
    trained = as_one_network(Trained.join(parts), groups)
    return Runs(problem, each, seeds, data.y, trained, [part.val_loss.numel() for part in parts])


def teacher_probabilities(
    data: GraphRecord, settings: list[Settings], seeds: list[int], device: torch.device, progress: Progress = silent
) -> Tensor:
    """The mean class distribution of each run's teachers, [R, n, C].

    The teachers of a run have its settings, its split, and seeds that follow from its own, so that runs stay
    independent of each other. Those of a later generation were taught by the one before.
    """
    for teachers in train_teachers(data, settings, seeds, device, progress):
        last = teachers
    return mean_probabilities(last, settings[0].teachers)


def mean_probabilities(teachers: Runs, count: int) -> Tensor:
    """The mean class distribution of so many teachers each, [R, n, C] of runs [R · count]."""
    return teachers.probabilities().unflatten(0, (-1, count)).mean(1)


def train_teachers(
    data: GraphRecord, settings: list[Settings], seeds: list[int], device: torch.device, progress: Progress = silent
) -> Iterator[Runs]:
    """Each generation in turn: the teachers of the first run, those of the second, …, [R · teachers].

    The first had no teachers; generation g is what a run of these settings with g generations would itself be.
    """
    count, generations = settings[0].teachers, settings[0].generations
    lesson = copy.copy(data)
    if "test_mask" in lesson:
        del lesson.test_mask  # nothing to learn there, and as many splits as there are students
    for name in ("train_mask", "val_mask"):
        if data[name].dim() == 2:
            lesson[name] = data[name].repeat_interleave(count, 0)
    teachers = [each.replace(groups=1) for each in settings for _ in range(count)]
    children = [draws.child_seeds(seed, count * generations) for seed in seeds]
    runs = None
    for generation in range(generations):
        own_seeds = [child for each in children for child in each[generation * count :][:count]]
        part = _share_of(progress, generation / generations, (generation + 1) / generations)
        taught = None if runs is None else mean_probabilities(runs, count).repeat_interleave(count, 0)
        runs = _train(lesson, teachers, own_seeds, device, taught, None, part)
        yield runs


def _share_of(progress: Progress, start: float, stop: float) -> Progress:
    """The progress of a whole of which this is the part from ``start`` to ``stop``."""
    return lambda done, total: progress(round((start + (stop - start) * done / total) * 1_000_000), 1_000_000)


def replica_memory(data: GraphRecord, settings: Settings) -> int:
    """Return the estimated bytes of one replica in training."""
    (n, features), width = data.x.shape, settings.hidden_channels
    return 4 * (16 * n * width + 8 * features * width + 16 * n * count_classes(data))


def check_batch_size(batch_size: int | None) -> None:
    """Raise an InputError where there would be nothing in a batch."""
    if batch_size is not None and batch_size < 1:
        raise InputError(f"batch_size = {batch_size}: must be at least 1")


def check_seeds(seeds: Iterable[int]) -> list[int]:
    """The seeds as a list of at least one plain int."""
    if not isinstance(seeds, Iterable):
        raise InputError(f"seeds = {seeds}: must be several, as range({seeds}) or [{seeds}]")
    seeds = list(seeds)
    if not seeds:
        raise InputError("seeds is empty: must hold at least one seed")
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
            raise InputError(f"settings of one call must not differ in more than {', '.join(PER_REPLICA)}")


def group_seeds(seed: int, settings: Settings) -> list[int]:
    """The seeds of a run's groups: its own, and others that follow from it and that no teacher of it has."""
    lessons = settings.teachers * settings.generations
    return [seed, *draws.child_seeds(seed, lessons + settings.groups - 1)[lessons:]]


def as_one_network(trained: Trained, groups: int) -> Trained:
    """R networks of R · G: every G of them as one.

    The validation loss is the mean of its groups', which its own does not exceed, since cross-entropy is convex in
    the logits; the learning curve and the best epoch are those of the first group.
    """
    weight1, weight2 = (weight.unflatten(0, (-1, groups)) for weight in trained.weights)
    wide = weight1.transpose(1, 2).flatten(2), weight2.flatten(1, 2) / groups
    first = torch.arange(0, len(trained.val_loss), groups, device=trained.history.device)
    loss = trained.val_loss.unflatten(0, (-1, groups)).mean(1)
    return Trained(wide, loss, trained.best_epoch[first], trained.history[:, first])
