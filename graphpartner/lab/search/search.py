"""``gpnn search``: Optuna over a declared space, every trial a few runs at once, judged on validation nodes alone."""

import copy
import math
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from graphpartner.graph.record import GraphRecord
from graphpartner.lab.search.judgement import (
    DevelopmentGraph,
    Judgement,
    class_weights,
    development,
    judge_settings,
    ranked,
)
from graphpartner.lab.search.space import Choice, Space
from graphpartner.system.errors import InputError
from graphpartner.system.progress import Progress, silent
from graphpartner.training.settings import PER_REPLICA, Settings

if TYPE_CHECKING:
    import optuna


STARTUP = 32  # trials drawn at random before the sampler learns from them
PROMOTE_FRACTION = 0.3  # of the configurations go on from the first few splits to all of them
# replicas of different depth could be trained together, but only step by step, to the depth of the deepest
FREE = tuple(name for name in PER_REPLICA if name != "num_steps")
FINALISTS = 6  # the best trials, judged once more on splits that the search has not seen


@dataclass(frozen=True)
class SearchResult:
    """The outcome of a search.

    Attributes:
        settings: the winner.
        judged: its judgement on the final splits.
        trials: the number of configurations judged by all calls with this study.
        finalists: (settings, merit in the search, judgement on the final splits), best first.
    """

    settings: Settings
    judged: Judgement
    trials: int
    finalists: list[tuple[Settings, float, Judgement]]


def open_study(storage: str | Path, name: str) -> "optuna.Study":
    """Create or reopen a study of that name: in a SQLite file, or at any address Optuna knows."""
    import optuna
    from sqlalchemy import URL

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    address = storage
    if isinstance(storage, Path):
        address = URL.create("sqlite", database=str(storage)).render_as_string()  # whatever characters are in the name
    try:
        study = optuna.create_study(storage=str(address), study_name=name, direction="maximize", load_if_exists=True)
        # a study that goes on must not draw again what it has drawn
        study.sampler = optuna.samplers.TPESampler(
            n_startup_trials=STARTUP, multivariate=True, constant_liar=True, seed=len(study.get_trials(deepcopy=False))
        )
        return study
    except Exception as error:  # whatever the database's driver calls it
        cause = " ".join(str(error).split())
        if isinstance(storage, Path):
            raise InputError(f"{storage}: holds no studies ({cause}); move it away") from None
        raise InputError(f"--storage {storage}: cannot be opened ({cause}); give an address Optuna knows") from None


def search(
    data: GraphRecord,
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
) -> SearchResult:
    """Find the settings that do best on validation nodes, on average over development splits.

    The search maximises the merit of :mod:`graphpartner.lab.search.judgement`; the best few are judged again
    (:func:`final`). Where validation nodes were drawn class by class, accuracies of the classes are weighted by
    frequencies, which are estimated once per study.

    Configurations are drawn in groups that share what changes the shape of the work, so that a group times its first
    splits is one batch of replicas. Every configuration is trained on the same splits and seeds; those that do badly on
    the first few splits are pruned, except for the starts, which are known to be good.

    Args:
        data: a graph as loaded; only :func:`development` of it is used.
        space: the values each setting may take.
        study: an Optuna study that maximises; its finished trials count.
        trials: the number of trials in all, those of earlier calls included.
        seconds: begin no group later than this.
        splits: development splits a configuration is judged on.
        replicas: the approximate number of runs per batch.
        base: what the space does not name; by default the first start.
        starts: the first configurations tried; they may come from anywhere, and must win like any other.
        device: as in :func:`graphpartner.train`.
        progress: called with (part, whole): of the trials, or of the seconds where these run out first.
    """
    base = base or (starts[0] if starts else Settings())
    plan = {"splits": splits, "judges": "nodes that stopped no run"}
    _go_on(study, plan | base.asdict() | {name: str(each) for name, each in space.items()})
    seen = development(data, splits)
    if "class_weights" not in study.user_attrs:  # a study that goes on keeps those it began with
        weights = class_weights(seen, starts[0] if starts else base, device)
        study.set_user_attr("class_weights", None if weights is None else weights.tolist())
    seen.class_weights = _class_weights(study)
    group = max(1, replicas // first_rung(splits))
    begun = time.monotonic()
    waiting = [start for start in starts if not _tried(study, _inside(start, space))]
    while (done := len(finished(study))) < trials and (seconds is None or time.monotonic() - begun < seconds):
        progress(*_furthest(done, trials, time.monotonic() - begun, seconds))
        if begins := bool(waiting):
            study.enqueue_trial(_inside(waiting.pop(0), space))
        asked = _ask(study, space, min(group, trials - done))
        _successive_halving(study, [(trial, base.replace(**each)) for trial, each in asked], begins, seen, device)
    progress(trials, trials)
    return final(data, study, base, splits, device)


def _tried(study: "optuna.Study", values: dict[str, Any]) -> bool:
    """Tell whether a finished trial has these values."""
    return any(values.items() <= trial.params.items() for trial in finished(study))


def _furthest(done: int, trials: int, taken: float, seconds: float | None) -> tuple[int, int]:
    """Return the progress of a search that ends with its trials or with its time, whichever is nearer."""
    if seconds is None or done / trials > taken / seconds:
        return done, trials
    return round(1000 * taken / seconds), 1000


def _go_on(study: "optuna.Study", plan: dict[str, Any]) -> None:
    """Keep the plan of a study, or raise an InputError where it began with another: their values are not comparable."""
    before = study.user_attrs.get("plan", plan)
    for name, value in plan.items():
        if before.get(name) != value:
            raise InputError(
                f"study {study.study_name} was begun with {name} = {before.get(name)}, not {value}: go on with the "
                "same, or begin another with another --out or --storage"
            )
    study.set_user_attr("plan", plan)


def _class_weights(study: "optuna.Study") -> torch.Tensor | None:
    known = study.user_attrs.get("class_weights")
    return None if known is None else torch.tensor(known)


def _successive_halving(
    study: "optuna.Study",
    runners: list[tuple["optuna.Trial", Settings]],
    begins: bool,
    seen: DevelopmentGraph,
    device: str | torch.device,
) -> None:
    """Judge a group on its first splits, and those that are among the best so far on all of them.

    The first of a group that ``begins`` with a start goes on in any case.
    """
    import optuna

    splits = seen.train_mask.shape[0]
    few = first_rung(splits)
    early = merits(_splits(seen, slice(0, few)), [settings for _, settings in runners], device)
    for (trial, _), value in zip(runners, early, strict=True):
        trial.report(value, few)
    if few == splits:  # these are all of them
        for (trial, _), value in zip(runners, early, strict=True):
            study.tell(trial, value)
        return
    bar = quantile([t.intermediate_values[few] for t in study.get_trials(deepcopy=False) if t.intermediate_values])
    through = [runner for place, runner in enumerate(runners) if early[place] >= bar or (begins and place == 0)]
    late = merits(_splits(seen, slice(few, None)), [settings for _, settings in through], device) if through else []
    values = {trial.number: value for (trial, _), value in zip(through, late, strict=True)}
    for (trial, _), value in zip(runners, early, strict=True):
        if trial.number in values:
            study.tell(trial, (few * value + (splits - few) * values[trial.number]) / splits)
        else:
            study.tell(trial, state=optuna.trial.TrialState.PRUNED)


def judge_alike(seen: DevelopmentGraph, settings: list[Settings], device: str | torch.device) -> list[Judgement]:
    """Judge settings, those whose work has the same shape together."""
    groups: dict[Settings, list[int]] = {}
    same = {name: getattr(Settings(), name) for name in FREE}
    for place, each in enumerate(settings):
        groups.setdefault(each.replace(**same), []).append(place)
    judged: dict[int, Judgement] = {}
    for places in groups.values():
        judged |= zip(places, judge_settings(seen, [settings[place] for place in places], device), strict=True)
    return [judged[place] for place in range(len(settings))]


def merits(seen: DevelopmentGraph, settings: list[Settings], device: str | torch.device) -> list[float]:
    """Return the merit of each of these settings, which the search maximises."""
    return [each.merit for each in judge_settings(seen, settings, device)]


def first_rung(splits: int) -> int:
    """Return the number of splits a configuration is judged on before it is pruned or goes on."""
    return min(splits, max(2, splits // 4))  # one alone is too noisy


def quantile(values: list[float]) -> float:
    """Return the value that a share of ``PROMOTE_FRACTION`` of these reach."""
    return sorted(values, reverse=True)[max(0, math.ceil(PROMOTE_FRACTION * len(values)) - 1)]


def _splits(seen: DevelopmentGraph, which: slice) -> DevelopmentGraph:
    part = copy.copy(seen)
    for name in ("train_mask", "val_mask", "judge_mask"):
        part[name] = seen[name][which]
    return part


def final(
    data: GraphRecord, study: "optuna.Study", base: Settings, splits: int, device: str | torch.device
) -> SearchResult:
    """Judge the best trials once more, on other and more splits: the luckiest of many is not always the best.

    The winner is, of those whose accuracy is within one standard error of the highest, the one with the lowest
    NLL.
    """
    import optuna

    # a pruned trial has a value too: that of the first few splits
    whole = [trial for trial in finished(study) if trial.state == optuna.trial.TrialState.COMPLETE]
    best = sorted(whole, key=lambda trial: -trial.value)[:FINALISTS]
    if not best:
        raise InputError("no configuration was judged: give the search more time")
    seen = development(data, 2 * splits, first=splits)
    seen.class_weights = _class_weights(study)
    settings = [base.replace(**trial.params) for trial in best]
    judged = judge_alike(seen, settings, device)
    order = ranked(judged, int(seen.judge_mask.any(0).sum()))
    finalists = [(settings[place], best[place].value, judged[place]) for place in order]
    winner, _, value = finalists[0]
    return SearchResult(winner, value, len(finished(study)), finalists)


def finished(study: "optuna.Study") -> list[Any]:
    """Return the trials that were judged, on some splits or on all; one that was interrupted is not among them."""
    return [trial for trial in study.get_trials(deepcopy=False) if trial.state.is_finished()]


def _ask(study: "optuna.Study", space: Space, count: int) -> list[tuple["optuna.Trial", dict[str, Any]]]:
    """Ask for ``count`` trials that share whatever changes the shape of the work."""
    import optuna

    sampler = study.sampler
    trial = study.ask()
    asked = [(trial, _suggested(trial, space))]
    shared = {name: value for name, value in asked[0][1].items() if name not in FREE}
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
    """Return what of these settings lies in the space; the rest is left to the sampler."""
    known = settings.asdict()
    return {
        name: known[name]
        for name, each in space.items()
        if (known[name] in each.values if isinstance(each, Choice) else each.low <= known[name] <= each.high)
    }
