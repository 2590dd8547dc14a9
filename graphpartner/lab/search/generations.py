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

HEAD = "weight   prior T   generations   judging nodes: %   surprise   stopping nodes: %   surprise"


class Generation(NamedTuple):
    """One generation of teachers, with the settings of a run that learns from as many generations."""

    settings: Settings
    by_judges: Judgement
    by_stoppers: Judgement

    def line(self, weight: float, generation: int) -> str:
        """Return a row of the table whose head is ``HEAD``."""
        (accuracy, surprise), (flattering, flattering_surprise) = self.by_judges, self.by_stoppers
        return (
            f"{weight:6g}   {self.settings.prior_temperature:7g}   {generation:11d}   "
            f"{100 * accuracy:16.2f}   {surprise:8.4f}   {100 * flattering:17.2f}   {flattering_surprise:8.4f}"
        )


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

    Args:
        data: a graph as loaded; only development splits of it are used.
        graph: its name.
        hold: the preset that teachers and students share.
        folder: where presets are written.
        generations: the number of generations judged, besides runs without teachers.
        splits: development splits.
        epochs: maximum number per run while searching; by default that of the preset.
        held: changes of the preset. ``teachers`` is the number of runs per generation, 4 by default; more than one of
            ``groups`` is not judged, but written as a second preset, ``GRAPH-distilled-groups.yaml``.
        tried: values of lambda_distill (0.3, 1 and 3 by default) and of prior_temperature (0 by default).
        fixed: these changes as given on the command line, for the provenance.
        device: where to train.
        on_line: called with every line of the table as soon as it is known.
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
    taught = [each for each in sweep(seen, candidates, device, on_line) if each.settings.teachers]
    nodes = int(seen.judge_mask.any(0).sum())
    best = taught[ranked([each.by_judges for each in taught], nodes)[0]]
    command = command_line(f"gpnn search {graph} --family distilled --generations {generations}", hold, fixed)
    provenance = (
        f"{command}: best of {len(taught)} distillations (weights {_listed(weights)}, prior temperatures "
        f"{_listed(priors)}, 1 to {generations} generations) over {splits} development splits, {teachers} runs each, "
        f"judged on the half of the validation nodes that stopped no run ({100 * best.by_judges.accuracy:.2f} %): "
        f"{rule(seen)}"
    )
    winner = best.settings.replace(epochs=found.settings.epochs)
    files = [folder / f"{graph}-distilled.yaml"]
    write_preset_file(files[0], graph, "distilled", provenance, winner, saw_test=found.saw_test)
    if groups > 1:
        provenance += f"; with {groups} groups, which this sweep did not judge"
        files.append(folder / f"{graph}-distilled-groups.yaml")
        winner = winner.replace(groups=groups)
        write_preset_file(files[1], graph, "distilled", provenance, winner, saw_test=found.saw_test)
    return files


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
    on_line(HEAD)
    for generation, runs in enumerate(train_teachers(together, each, seeds, device)):
        for candidate, logits in zip(candidates, runs.logits.split(splits * count), strict=True):
            if not generation and candidate.lambda_distill != candidates[0].lambda_distill:
                continue  # without teachers, their weight makes no difference
            teaching = (
                {"teachers": count, "generations": generation} if generation else {"teachers": 0, "generations": 1}
            )
            judges, stoppers = (_judged_by(mask, logits, seen, count) for mask in (seen.judge_mask, seen.val_mask))
            lines.append(Generation(candidate.replace(**teaching), judges, stoppers))
            on_line(lines[-1].line(candidate.lambda_distill, generation))
    return lines


def _judged_by(mask: Tensor, logits: Tensor, seen: DevelopmentGraph, count: int) -> Judgement:
    """Judge ``count`` runs per split by the nodes of a mask [S, n]."""
    copies = copy.copy(seen)
    copies.judge_mask = mask.repeat_interleave(count, 0)
    return judged(logits, copies)


def _listed(values: Sequence[float]) -> str:
    return ", ".join(f"{value:g}" for value in values)
