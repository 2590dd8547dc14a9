"""How many generations of teachers, and how much should their opinion weigh? Judged generation by generation.

    python scripts/generations.py cora --hold cora/views --weights 1 2 4 --generations 6 [--set beta=1] [--splits 8]
        [--teachers 4] [--priors 0] [--groups 16] [--device auto] [--data ROOT] [--out DIR]

A teacher of generation g is what a run with g generations of teachers would be, so that one line of generations answers
for every number of them. All weights (and ways to estimate class frequencies, ``--priors``) go side by side over the
development splits of ``gpnn search``, and are judged as there: on validation nodes that stopped no run. Each generation
is a line of the table; beside what the judging nodes say stands what those say that stopped the runs, which flatter.
The best is written as DIR/GRAPH-distilled.yaml, a preset with its provenance. With ``--groups``, a second preset has as
many groups besides: DIR/GRAPH-distilled-groups.yaml. No test label is looked at.
"""

import argparse
import copy
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

import graphpartner as gp
from graphpartner.cli.options import parsed
from graphpartner.graph.datasets import load_graph
from graphpartner.lab.search.judgement import (
    DevelopmentGraph,
    Judgement,
    class_weights,
    development,
    judged,
    ranked,
    rule,
)
from graphpartner.lab.search.study import as_called, write_found
from graphpartner.system.device import pick_device
from graphpartner.training.settings import Settings
from graphpartner.training.trainer import train_teachers


class Line(NamedTuple):
    """One generation of one way to teach."""

    settings: Settings
    judges: Judgement
    stoppers: Judgement


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graph")
    parser.add_argument("--hold", required=True, metavar="PRESET", help="what teachers and students have in common")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="change a setting of it")
    parser.add_argument("--weights", nargs="+", type=float, default=[0.3, 1.0, 3.0], help="values of lambda_distill")
    parser.add_argument("--priors", nargs="+", type=float, default=[0.0], help="values of prior_temperature")
    parser.add_argument("--generations", type=int, default=4, help="judge so many of them, and none")
    parser.add_argument("--teachers", type=int, default=4, help="in every generation")
    parser.add_argument("--groups", type=int, default=1, help="write a second preset, of so many groups")
    parser.add_argument("--splits", type=int, default=8)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--data", help="the folder that holds the graphs")
    parser.add_argument("--out", type=Path, default=Path("search"))
    given = parser.parse_args()
    if given.generations < 1:
        parser.error(f"--generations {given.generations}: must be 1 or more")
    held = gp.preset(given.hold)
    base = held.settings.replace(**parsed(given.set))
    # the last generation of these teachers is never taught to anyone
    base = base.replace(teachers=given.teachers, generations=given.generations + 1, groups=1)
    ways = [base.replace(lambda_distill=w, prior_temperature=T) for T in given.priors for w in given.weights]
    device = pick_device(given.device)
    seen = development(load_graph(given.graph, given.data), given.splits)
    seen.class_weights = class_weights(seen, gp.preset(f"{given.graph}/tuned").settings, device)
    lines = sweep(seen, ways, device)
    taught = [line for line in lines if line.settings.teachers]
    nodes = int(seen.judge_mask.any(0).sum())
    best = taught[ranked([line.judges for line in taught], nodes)[0]]
    command = as_called(f"scripts/generations.py {given.graph}", given.hold, given.set)
    provenance = (
        f"{command}: best of {len(taught)} ways to teach (weights {listed(given.weights)}, prior temperatures "
        f"{listed(given.priors)}, 1 to {given.generations} generations) over {given.splits} development splits, "
        f"{given.teachers} runs each, judged on the half of the validation nodes that stopped no run "
        f"({100 * best.judges.accuracy:.2f} %): {rule(seen)}"
    )
    given.out.mkdir(parents=True, exist_ok=True)
    write(given.out / f"{given.graph}-distilled.yaml", given.graph, provenance, best.settings, held.saw_test)
    if given.groups > 1:
        provenance += f"; with {given.groups} groups, which this sweep did not judge"
        file = given.out / f"{given.graph}-distilled-groups.yaml"
        write(file, given.graph, provenance, best.settings.replace(groups=given.groups), held.saw_test)


def write(file: Path, graph: str, provenance: str, settings: Settings, saw_test: bool) -> None:
    """A preset that ``scripts/collect_presets.py`` reads."""
    write_found(file, graph, "distilled", provenance, settings, saw_test=saw_test)
    print(f"{file}: {settings.generations} generations, weight {settings.lambda_distill:g}, groups {settings.groups}")


def sweep(seen: DevelopmentGraph, ways: list[Settings], device: torch.device) -> list[Line]:
    """Every generation of every way to teach, the one without teachers first; told as soon as they are judged."""
    splits, count = seen.train_mask.shape[0], ways[0].teachers
    together = copy.copy(seen)
    for name in ("train_mask", "val_mask"):
        together[name] = seen[name].repeat(len(ways), 1)
    each = [way for way in ways for _ in range(splits)]
    seeds = list(range(splits)) * len(ways)
    lines = []
    print("weight   prior T   generations   judging nodes: %        NLL   stopping nodes: %        NLL")
    for generation, runs in enumerate(train_teachers(together, each, seeds, device)):
        for way, logits in zip(ways, runs.logits.split(splits * count), strict=True):
            if not generation and way.lambda_distill != ways[0].lambda_distill:
                continue  # whose opinion nobody has heard, it weighs nothing
            told = {"teachers": count, "generations": generation} if generation else {"teachers": 0, "generations": 1}
            line = Line(way.replace(**told), *both(logits, seen, count))
            lines.append(line)
            print(
                f"{way.lambda_distill:6g}   {way.prior_temperature:7g}   {generation:11d}   "
                f"{100 * line.judges.accuracy:16.2f}   {line.judges.nll:8.4f}   "
                f"{100 * line.stoppers.accuracy:17.2f}   {line.stoppers.nll:8.4f}",
                flush=True,
            )
    return lines


def both(logits: Tensor, seen: DevelopmentGraph, count: int) -> tuple[Judgement, Judgement]:
    """What the judging nodes say of ``count`` runs a split, and what those say that stopped them."""
    copies = copy.copy(seen)
    copies.judge_mask = seen.judge_mask.repeat_interleave(count, 0)
    flattering = copy.copy(seen)
    flattering.judge_mask = seen.val_mask.repeat_interleave(count, 0)
    return judged(logits, copies), judged(logits, flattering)


def listed(values: list[float]) -> str:
    return ", ".join(f"{value:g}" for value in values)


if __name__ == "__main__":
    main()
