"""The sweep of ``gpnn search --family distilled --generations N``: teachers, judged generation by generation.

A teacher of generation g is what a run with g generations of teachers would be, so that training one line of
generations answers for every number of them. All weights of the distillation loss, and all temperatures of the class
prior, are trained side by side over the development splits of a search, and judged on validation nodes that stopped no
run. The judgement by the nodes that stopped the runs stands beside it, and flatters.
"""

import copy
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from graphpartner.graph.record import GraphRecord
from graphpartner.lab.search.judgement import (
    DevelopmentGraph,
    Judgement,
    class_weights,
    development,
    judged,
    ranked,
    rule,
)
from graphpartner.lab.search.preset_files import command_line, write_preset_file
from graphpartner.lab.search.space import Choice
from graphpartner.system.errors import InputError
from graphpartner.training.presets import preset
from graphpartner.training.settings import Settings
from graphpartner.training.trainer import train_teachers


class Generation(NamedTuple):
    """One generation of teachers, with the settings of a run that learns from as many generations."""

    settings: Settings
    by_judges: Judgement
    by_stoppers: Judgement


def search_generations(
    data: GraphRecord,
    graph: str,
    hold: str,
    folder: Path,
    generations: int,
    *,
    splits: int = 8,
    epochs: int | None = None,
    held: dict[str, Any] | None = None,
    tried: dict[str, Choice] | None = None,
    fixed: Sequence[str] = (),
    device: torch.device,
    on_line: Callable[[str], None] = print,
) -> list[Path]:
    """Judge every generation of every weight and prior, and write the best as ``GRAPH-distilled.yaml``.

    ``held`` changes the preset that teachers and students share; its ``teachers`` is the number of runs per generation,
    4 by default, and where ``groups`` is more than one, a second preset with as many groups is written besides,
    ``GRAPH-distilled-groups.yaml``. ``tried`` are values of lambda_distill (0.3, 1 and 3 by default) and of
    prior_temperature (0 by default). ``epochs`` bounds the runs of the sweep, by default as the preset does; ``fixed``
    are the changes as given on the command line, for the provenance.
    """
    found, held, tried = preset(hold), held or {}, tried or {}
    if unknown := sorted(tried.keys() - {"lambda_distill", "prior_temperature"}):
        raise InputError(f"{unknown[0]} = {tried[unknown[0]].values}: must be one value in a sweep over generations")

    def values(name: str, default: tuple[float, ...]) -> tuple[float, ...]:
        return tried[name].values if name in tried else (held[name],) if name in held else default

    weights, priors = values("lambda_distill", (0.3, 1.0, 3.0)), values("prior_temperature", (0.0,))
    teachers, groups = held.get("teachers", 4), held.get("groups", 1)
    # the last generation of these teachers teaches no one
    several = {"teachers": teachers, "generations": generations + 1, "groups": 1}
    base = found.settings.replace(**held | several, epochs=epochs or found.settings.epochs)
    candidates = [base.replace(lambda_distill=w, prior_temperature=T) for T in priors for w in weights]
    seen = development(data, splits)
    seen.class_weights = class_weights(seen, preset(f"{graph}/tuned").settings, device)
    distilled = [each for each in sweep(seen, candidates, device, on_line) if each.settings.teachers]
    nodes = int(seen.judge_mask.any(0).sum())
    best = distilled[ranked([each.by_judges for each in distilled], nodes)[0]]
    command = command_line(f"gpnn search {graph} --family distilled --generations {generations}", hold, fixed)
    provenance = (
        f"{command}: best of {len(distilled)} distillations (weights {_listed(weights)}, prior temperatures "
        f"{_listed(priors)}, 1 to {generations} generations) over {splits} development splits, {teachers} runs each, "
        f"judged on the half of the validation nodes that stopped no run ({100 * best.by_judges.accuracy:.2f} %): "
        f"{rule(seen)}"
    )
    winner = best.settings.replace(epochs=found.settings.epochs)
    presets = {folder / f"{graph}-distilled.yaml": (provenance, winner)}
    if groups > 1:
        provenance += f"; with {groups} groups, which this sweep did not judge"
        presets[folder / f"{graph}-distilled-groups.yaml"] = (provenance, winner.replace(groups=groups))
    for file, (provenance, settings) in presets.items():
        write_preset_file(file, graph, "distilled", provenance, settings, saw_test=found.saw_test)
    return list(presets)


def sweep(
    seen: DevelopmentGraph, candidates: list[Settings], device: torch.device, on_line: Callable[[str], None]
) -> list[Generation]:
    """Judge every generation of every candidate, those without teachers first."""
    splits, count = seen.train_mask.shape[0], candidates[0].teachers
    together = copy.copy(seen)
    for name in ("train_mask", "val_mask"):
        together[name] = seen[name].repeat(len(candidates), 1)
    each = [candidate for candidate in candidates for _ in range(splits)]
    seeds = list(range(splits)) * len(candidates)
    lines = []
    on_line("weight   prior T   generations   judging nodes: %        NLL   stopping nodes: %        NLL")
    for generation, runs in enumerate(train_teachers(together, each, seeds, device)):
        for candidate, logits in zip(candidates, runs.logits.split(splits * count), strict=True):
            if not generation and candidate.lambda_distill != candidates[0].lambda_distill:
                continue  # without teachers, their weight makes no difference
            teaching = (
                {"teachers": count, "generations": generation} if generation else {"teachers": 0, "generations": 1}
            )
            judges, stoppers = (_judged_by(mask, logits, seen, count) for mask in (seen.judge_mask, seen.val_mask))
            lines.append(Generation(candidate.replace(**teaching), judges, stoppers))
            on_line(
                f"{candidate.lambda_distill:6g}   {candidate.prior_temperature:7g}   {generation:11d}   "
                f"{100 * judges.accuracy:16.2f}   {judges.nll:8.4f}   "
                f"{100 * stoppers.accuracy:17.2f}   {stoppers.nll:8.4f}"
            )
    return lines


def _judged_by(mask: Tensor, logits: Tensor, seen: DevelopmentGraph, count: int) -> Judgement:
    """Judge ``count`` runs per split by the nodes of a mask [S, n]."""
    copies = copy.copy(seen)
    copies.judge_mask = mask.repeat_interleave(count, 0)
    return judged(logits, copies)


def _listed(values: Sequence[float]) -> str:
    return ", ".join(f"{value:g}" for value in values)
