"""``gpnn search``: Optuna over a declared space, every trial a handful of replicas, judged on validation alone."""

import copy
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch_geometric.data import Data

from graphpartner.errors import InputError
from graphpartner.experiments.development import development
from graphpartner.experiments.space import Choice, Space
from graphpartner.progress import Progress, silent
from graphpartner.train.settings import PER_REPLICA, Settings
from graphpartner.train.trainer import train

if TYPE_CHECKING:
    import optuna

FINALISTS = 10  # the best trials are judged once more, on splits that the search has not seen


@dataclass(frozen=True)
class Found:
    """The outcome of a search.

    Attributes:
        settings: the winner.
        value: its mean validation accuracy over the final splits.
        trials: how many configurations were judged, by all calls with this study.
        finalists: (settings, accuracy in the search, accuracy on the final splits), best first.
    """

    settings: Settings
    value: float
    trials: int
    finalists: list[tuple[Settings, float, float]]


def search(
    data: Data,
    space: Space,
    study: "optuna.Study",
    *,
    trials: int,
    seconds: float | None = None,
    splits: int = 8,
    replicas: int = 96,
    base: Settings | None = None,
    starts: Sequence[Settings] = (),
    device: str | torch.device = "auto",
    progress: Progress = silent,
) -> Found:
    """Look for the settings with the highest mean validation accuracy over development splits.

    Configurations are asked for in groups that share what changes the shape of the work, so that a group times its
    splits is one batch of replicas. Every configuration sees the same splits and seeds.

    Args:
        data: a graph as loaded; only :func:`development` of it is used.
        space: the values each setting may take.
        study: an Optuna study that maximises; its finished trials count.
        trials: how many there shall be in all.
        seconds: begin no group after so many seconds.
        splits: development splits a configuration is judged on.
        replicas: about how many runs make a batch.
        base: what the space does not name.
        starts: where to begin; they may seed a search, whatever they come from, and must win it like any other.
        device: as in :func:`graphpartner.train`.
        progress: called with (trials done, trials in all).
    """
    base = base or Settings()
    seen = development(data, splits)
    group = max(1, replicas // splits)
    begun = time.monotonic()
    waiting = [] if finished(study) else list(starts)
    while (done := len(finished(study))) < trials and (seconds is None or time.monotonic() - begun < seconds):
        progress(done, trials)
        if waiting:
            study.enqueue_trial(_inside(waiting.pop(0), space))
        asked = _ask(study, space, min(group, trials - done))
        values = judge(seen, [base.replace(**each) for _, each in asked], device)
        for (trial, _), value in zip(asked, values, strict=True):
            study.tell(trial, value)
    progress(trials, trials)
    return final(data, study, base, splits, device)


def judge(seen: Data, settings: list[Settings], device: str | torch.device) -> list[float]:
    """Mean validation accuracy of each of these settings over all development splits, as one batch of replicas."""
    splits = seen.train_mask.shape[0]
    batch = copy.copy(seen)
    batch.train_mask, batch.val_mask = (mask.repeat(len(settings), 1) for mask in (seen.train_mask, seen.val_mask))
    each = [one for one in settings for _ in range(splits)]
    runs = train(batch, each, list(range(splits)) * len(settings), device)
    return runs.accuracy(batch.val_mask).reshape(len(settings), splits).mean(1).tolist()


def final(data: Data, study: "optuna.Study", base: Settings, splits: int, device: str | torch.device) -> Found:
    """Judge the best trials once more, on other and more splits: the luckiest of many is not always the best."""
    best = sorted(finished(study), key=lambda trial: -trial.value)[:FINALISTS]
    if not best:
        raise InputError("no configuration was judged: give the search more time")
    seen = development(data, 2 * splits, first=splits)
    judged = []
    for trial in best:
        settings = base.replace(**trial.params)
        judged.append((settings, trial.value, judge(seen, [settings], device)[0]))
    judged.sort(key=lambda each: -each[2])
    settings, _, value = judged[0]
    return Found(settings, value, len(finished(study)), judged)


def finished(study: "optuna.Study") -> list[Any]:
    """The trials that have a value; one that was interrupted has none and is asked for again in some other form."""
    return [trial for trial in study.get_trials(deepcopy=False) if trial.value is not None]


def _ask(study: "optuna.Study", space: Space, count: int) -> list[tuple["optuna.Trial", dict[str, Any]]]:
    """So many trials that share whatever changes the shape of the work."""
    import optuna

    sampler = study.sampler
    trial = study.ask()
    asked = [(trial, _suggested(trial, space))]
    shared = {name: value for name, value in asked[0][1].items() if name not in PER_REPLICA}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        study.sampler = optuna.samplers.PartialFixedSampler(shared, sampler)
    for _ in range(count - 1):
        trial = study.ask()
        asked.append((trial, _suggested(trial, space)))
    study.sampler = sampler
    return asked


def _suggested(trial: "optuna.Trial", space: Space) -> dict[str, Any]:
    return {
        name: trial.suggest_categorical(name, each.values)
        if isinstance(each, Choice)
        else trial.suggest_float(name, each.low, each.high, log=each.log)
        for name, each in space.items()
    }


def _inside(settings: Settings, space: Space) -> dict[str, Any]:
    """What of these settings lies in the space; the rest is left to the sampler."""
    known = settings.asdict()
    return {
        name: known[name]
        for name, each in space.items()
        if (known[name] in each.values if isinstance(each, Choice) else each.low <= known[name] <= each.high)
    }
