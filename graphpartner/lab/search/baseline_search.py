"""The search of ``gpnn search GRAPH --method METHOD``: a baseline's settings, by validation accuracy alone.

A random search, judged over the same development splits and by the same rule as a search for GPNN. The present preset
is the first trial; where a model has a sibling, the sibling's settings are the second, so that what was found for
either of the two is tried for both. The best few are judged once more on splits and seeds that the search has not seen.
"""

import json
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from graphpartner.graph.record import GraphRecord
from graphpartner.lab.baselines.all_baselines import baseline_settings, train_baseline
from graphpartner.lab.experiments.journal import cut_torn_line
from graphpartner.lab.search.judgement import DevelopmentGraph, Judgement, class_weights, development, judged, ranked
from graphpartner.lab.search.space import Choice, baseline_space
from graphpartner.system.errors import InputError
from graphpartner.training.presets import preset

SIBLINGS = {"jknet": "jknet-dropedge", "jknet-dropedge": "jknet"}
SEARCH, FINAL = 1000, 2000  # first development split of the search and of the final
Line = dict[str, Any]


class BaselineResult(NamedTuple):
    """The outcome of a search: the winner, how it did on the final splits, and where it comes from."""

    settings: dict[str, Any]
    judged: Judgement
    trials: int
    source: str


def search_baseline(
    method: str,
    data: GraphRecord,
    graph: str,
    log: Path | None = None,
    *,
    trials: int = 40,
    seconds: float | None = None,
    splits: int = 4,
    finalists: int = 5,
    fixed: dict[str, Any] | None = None,
    tried: dict[str, Choice] | None = None,
    device: str | torch.device = "auto",
    on_line: Callable[[Line], None] = lambda line: None,
) -> BaselineResult:
    """Look for the settings of a baseline that do best on validation nodes.

    Trials are lines of JSON in the file ``log``; what it holds already is not trained again. All trials share the
    settings ``fixed``; ``tried`` are choices in place of those of the baseline's space. The ``finalists`` best are
    judged again on twice as many splits. ``on_line`` is called with every new line.
    """
    present, fixed = baseline_settings(method, graph).settings, fixed or {}
    known = _Log(log, on_line)
    weights = _class_weights(known, data, graph, splits, device)
    begun = time.monotonic()

    def stage(first: int, count: int) -> tuple[DevelopmentGraph, range]:
        seen = development(data, count, first)
        seen.class_weights = weights
        return seen, range(first, first + count)

    def judge(changes: dict[str, Any], name: str, seen: DevelopmentGraph, seeds: range) -> Judgement:
        line: Line = {"method": method, "graph": graph, "stage": name, "splits": len(seeds), "changes": changes}

        def train() -> Line:
            started = time.monotonic()
            runs = train_baseline(method, seen, seeds, device, changes)
            found = judged(runs.logits, seen)
            figures = {"validation": 100 * found.accuracy, "nll": found.nll, "merit": found.merit}
            cost = {"epochs": float(runs.epochs.float().mean()), "seconds": round(time.monotonic() - started, 1)}
            return figures | cost

        line = known.get_or_add(line | {"settings": present.replace(**changes).asdict()}, train)
        return Judgement(line["validation"] / 100, line["nll"])

    generator = random.Random(f"{method} {graph}")
    space = baseline_space(method) | (tried or {})
    first, splits_of_search = first_trials(method, graph), stage(SEARCH, splits)
    done: list[tuple[float, dict[str, Any]]] = []
    for trial in range(trials):
        if seconds is not None and time.monotonic() - begun > seconds:
            break
        drawn = {name: generator.choice(each.values) for name, each in space.items()}
        changes = (first[trial] if trial < len(first) else drawn) | fixed
        if any(present.replace(**changes) == present.replace(**before) for _, before in done):
            continue
        try:
            done.append((judge(changes, "search", *splits_of_search).merit, changes))
        except torch.cuda.OutOfMemoryError:
            on_line({"changes": changes, "stage": "out of memory"})
    if not done:
        raise InputError("no configuration was judged: give the search more time")
    best = [changes for _, changes in sorted(done, key=lambda each: -each[0])[:finalists]]
    others = stage(FINAL, 2 * splits)
    final = [judge(changes, "final", *others) for changes in best]
    winner = ranked(final, int(others[0].judge_mask.any(0).sum()))[0]
    shared = " with " + ", ".join(f"{name} {value}" for name, value in fixed.items()) if fixed else ""
    source = (
        f"tuned on validation (gpnn search --method, {len(done)} trials of {splits} development splits{shared}; on "
        f"{2 * splits} other splits {100 * final[winner].accuracy:.1f})"
    ) + ("; the winner is what it began at" if best[winner] == fixed else "")
    return BaselineResult(present.replace(**best[winner]).asdict(), final[winner], len(done), source)


def first_trials(method: str, graph: str) -> list[dict[str, Any]]:
    """Return what a search begins at, as changes of the preset: none, then the settings shared with a sibling."""
    if method not in SIBLINGS:
        return [{}]
    own, sibling = (baseline_settings(name, graph).settings.asdict() for name in (method, SIBLINGS[method]))
    return [{}, {name: value for name, value in sibling.items() if name in own}]


def _class_weights(
    known: "_Log", data: GraphRecord, graph: str, splits: int, device: str | torch.device
) -> Tensor | None:
    """Estimate class weights with GPNN; minutes of training on a large graph, so the log keeps them."""
    seen, ours = development(data, splits), preset(f"{graph}/tuned").settings
    if not seen.by_class:
        return None
    line = {"method": "gpnn", "graph": graph, "stage": "class weights", "splits": splits, "settings": ours.asdict()}
    line = known.get_or_add(
        line, lambda: {"class_weights": torch.as_tensor(class_weights(seen, ours, device)).tolist()}
    )
    return torch.tensor(line["class_weights"], dtype=torch.float64)


class _Log:
    """Lines of JSON, one per trial, in a file that survives a kill."""

    def __init__(self, path: Path | None, on_line: Callable[[Line], None]) -> None:
        self.path, self.on_line = path, on_line
        if path:
            cut_torn_line(path)
        lines = path.read_text().splitlines() if path and path.exists() else []
        self.lines = {self._key(line): line for line in map(json.loads, lines)}

    @staticmethod
    def _key(line: Line) -> str:
        """Return what a line answers: whole settings, since a preset may change between two searches."""
        return json.dumps([line[name] for name in ("method", "graph", "stage", "splits", "settings")], sort_keys=True)

    def get_or_add(self, line: Line, work: Callable[[], Line]) -> Line:
        """Return the line with its result, from the log where it is there."""
        key = self._key(line)
        if key not in self.lines:
            self.lines[key] = line | work()
            self.on_line(self.lines[key])
            if self.path:
                with self.path.open("a") as file:
                    file.write(json.dumps(self.lines[key]) + "\n")
        return self.lines[key]
