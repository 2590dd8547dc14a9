"""Looks for a baseline's settings on a graph by validation accuracy alone; how the presets that say so were found.

    python scripts/tune_baselines.py jknet-dropedge citeseer [--trials 40] [--splits 4] [--data ROOT] [--log FILE]

A random search over the space below. The present preset is the first trial; where a model has a sibling, the second is
the sibling's, so that what was found for either of the two is tried for both. Every trial is judged as those of
``gpnn search`` are (graphpartner.lab.search.judgement), over the same development splits: the public one, and its
training and validation nodes drawn anew, half of the latter to stop by and half to judge by; no other label is in what
a trial is given. The best few are judged once more on splits and seeds that the search has not seen, and the best of
these is printed, as a preset's file has it and as JSON. One line of JSON a trial; what the file of ``--log``
has already is not tried again, so that a search that was stopped goes on.
"""

import argparse
import json
import random
import time
from pathlib import Path
from typing import Any

import torch
import yaml
from torch import Tensor

import graphpartner as gp
from graphpartner.graph.datasets import load_graph
from graphpartner.lab.baselines.all_baselines import BASELINES, baseline_settings, train_baseline
from graphpartner.lab.experiments.journal import cut_torn_line
from graphpartner.lab.search.judgement import DevelopmentGraph, Judgement, class_weights, development, judged, ranked

STOPPING: dict[str, list[Any]] = {"epochs": [1000], "patience": [100]}
FEATURES: dict[str, list[Any]] = {"features": ["row", "raw"]}
RATES: dict[str, list[Any]] = {"lr": [0.002, 0.005, 0.01, 0.02], "decay": [5e-5, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 0.01]}
HIDDEN: dict[str, list[Any]] = {"hidden_channels": [16, 32, 64, 128], "dropout": [0.2, 0.4, 0.5, 0.6, 0.8]}
COMMON = STOPPING | FEATURES | RATES | HIDDEN
JKNET = COMMON | {
    "hidden_channels": [64, 128],
    "layers": [3, 4, 6, 8, 16],
    "normalization": ["symmetric", "row"],
    "self_weight": [False, True],
}
SELF_SUPERVISED: dict[str, list[Any]] = FEATURES | {"hidden_channels": [256, 512], "lr": [2e-4, 5e-4, 1e-3]}
SHARES = [0.1, 0.2, 0.3, 0.4, 0.5]
SPACES: dict[str, dict[str, list[Any]]] = {
    "mlp": COMMON,
    "gcn": COMMON,
    "gat": COMMON | {"hidden_channels": [8, 16], "heads": [4, 8], "output_heads": [1, 4, 8]},
    "jknet": JKNET,
    "jknet-dropedge": JKNET | {"edge_dropout": [0.1, 0.3, 0.5, 0.7, 0.9]},
    "appnp": COMMON | {"alpha": [0.05, 0.1, 0.2, 0.3], "num_steps": [5, 10, 20], "edge_dropout": [0.0, 0.3, 0.5]},
    "gcnii": FEATURES
    | {
        "lr": [0.005, 0.01],
        "hidden_channels": [64, 128],
        "dropout": [0.3, 0.5, 0.7],
        "layers": [8, 16, 32],
        "alpha": [0.1, 0.2, 0.4],
        "lam": [0.5, 1.0, 1.5],
        "decay": [5e-6, 5e-5, 5e-4],
        "conv_decay": [1e-4, 1e-3, 0.01],
    },
    "sgc": FEATURES | {"num_steps": [1, 2, 3], "lr": [0.05, 0.2], "decay": [0.0, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4]},
    "dagnn": FEATURES | RATES | {"num_steps": [5, 10, 16, 20], "dropout": [0.3, 0.5, 0.8]},
    "grand": FEATURES
    | {
        "lr": [0.01, 0.05, 0.2],
        "decay": [5e-5, 5e-4],
        "num_steps": [2, 4, 8],
        "consistency": [0.5, 0.7, 1.0],
        "temperature": [0.2, 0.3, 0.5],
        "input_dropout": [0.0, 0.3, 0.6],
        "dropout": [0.2, 0.5, 0.8],
        "batch_norm": [False, True],
    },
    "dgi": SELF_SUPERVISED,
    "mvgrl": SELF_SUPERVISED | {"alpha": [0.1, 0.2], "sparsify": [False, True], "patience": [20, 50]},
    "grace": SELF_SUPERVISED
    | {
        "projection_channels": [128, 256, 512],
        "activation": ["relu", "prelu"],
        "drop_edges1": SHARES,
        "drop_edges2": SHARES,
        "drop_columns1": SHARES,
        "drop_columns2": SHARES,
        "temperature": [0.3, 0.4, 0.5, 0.7, 0.9],
        "epochs": [50, 100, 200, 400],
    },
}
SIBLINGS = {"jknet": "jknet-dropedge", "jknet-dropedge": "jknet"}


def first_trials(method: str, graph: str) -> list[dict[str, Any]]:
    """What a search begins at, as changes of the preset: none, then its sibling's settings as far as both have them."""
    if method not in SIBLINGS:
        return [{}]
    own, sibling = (baseline_settings(name, graph).settings.asdict() for name in (method, SIBLINGS[method]))
    return [{}, {name: value for name, value in sibling.items() if name in own}]


def trial_key(line: dict[str, Any]) -> str:
    """What one line of the log is the answer to: whole settings, since a preset may change between two searches."""
    asked = [line[name] for name in ("method", "graph", "stage", "splits", "settings")]
    return json.dumps(asked, sort_keys=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("method", choices=BASELINES)
    parser.add_argument("graph")
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--seconds", type=float, help="begin no further trial after so many")
    parser.add_argument("--splits", type=int, default=4, help="development splits a trial is judged on")
    parser.add_argument("--finalists", type=int, default=5)
    parser.add_argument("--fix", type=json.loads, default={}, help='settings that every trial has, as {"layers": 4}')
    parser.add_argument("--device", default="auto")
    parser.add_argument("--data", help="the folder that holds the graphs")
    parser.add_argument("--log", type=Path, help="a file that the lines of JSON are added to, and taken from")
    given = parser.parse_args()
    data = load_graph(given.graph, root=given.data)
    present = baseline_settings(given.method, given.graph).settings
    if given.log:
        cut_torn_line(given.log)
    known_lines = given.log.read_text().splitlines() if given.log and given.log.exists() else []
    tried = {trial_key(line): line for line in map(json.loads, known_lines)}
    begun = time.monotonic()

    def note(line: dict[str, Any]) -> None:
        print(json.dumps(line), flush=True)
        if given.log:
            with given.log.open("a") as file:
                file.write(json.dumps(line) + "\n")

    def frequencies() -> Tensor | None:
        """What each class counts for: minutes of training on a large graph, so the log has them too."""
        ours = gp.preset(f"{given.graph}/tuned").settings
        line = {"method": "gpnn", "graph": given.graph, "stage": "class weights", "splits": given.splits}
        line["settings"] = ours.asdict()
        before = tried.get(trial_key(line))
        if before is not None:
            return torch.tensor(before["class_weights"], dtype=torch.float64)
        weights = class_weights(development(data, given.splits), ours, given.device)
        if weights is not None:
            note(line | {"class_weights": weights.tolist()})
        return weights

    weights = frequencies()

    def splits_of(first: int, count: int) -> tuple[DevelopmentGraph, range]:
        seen = development(data, count, first)
        seen.class_weights = weights
        return seen, range(first, first + count)

    def judge(changes: dict[str, Any], stage: str, seen: DevelopmentGraph, seeds: range) -> Judgement:
        line = {"method": given.method, "graph": given.graph, "stage": stage, "splits": len(seeds), "changes": changes}
        line["settings"] = present.replace(**changes).asdict()
        before = tried.get(trial_key(line))
        if before is not None:
            return Judgement(before["validation"] / 100, before["nll"])
        started = time.monotonic()
        runs = train_baseline(given.method, seen, seeds, given.device, changes)
        found = judged(runs.logits, seen)
        line |= {"validation": 100 * found.accuracy, "nll": found.nll, "merit": found.merit}
        line |= {"epochs": float(runs.epochs.float().mean()), "seconds": round(time.monotonic() - started, 1)}
        note(line)
        return found

    generator = random.Random(f"{given.method} {given.graph}")
    trials: list[tuple[float, dict[str, Any]]] = []
    known = splits_of(1000, given.splits)
    first = first_trials(given.method, given.graph)
    for trial in range(given.trials):
        if given.seconds is not None and time.monotonic() - begun > given.seconds:
            break
        drawn = {name: generator.choice(values) for name, values in SPACES[given.method].items()}
        changes = (first[trial] if trial < len(first) else drawn) | given.fix
        if any(present.replace(**changes) == present.replace(**before) for _, before in trials):
            continue
        try:
            trials.append((judge(changes, "search", *known).merit, changes))
        except torch.cuda.OutOfMemoryError:
            print(json.dumps({"changes": changes, "stage": "out of memory"}), flush=True)
    best = sorted(trials, key=lambda each: -each[0])[: given.finalists]
    others = splits_of(2000, 2 * given.splits)
    final = [judge(changes, "final", *others) for _, changes in best]
    winner = ranked(final, int(others[0].judge_mask.any(0).sum()))[0]
    changes = best[winner][1]
    fixed = " with " + ", ".join(f"{name} {value}" for name, value in given.fix.items()) if given.fix else ""
    source = (
        f"tuned on validation (scripts/tune_baselines.py, {len(trials)} trials of {given.splits} development "
        f"splits{fixed}; on {2 * given.splits} other splits {100 * final[winner].accuracy:.1f})"
    ) + ("; the winner is what it began at" if changes == given.fix else "")
    chosen = present.replace(**changes).asdict()
    # not JSON for the file: YAML takes its 5e-05 for a word
    print(yaml.safe_dump({given.graph: {"source": source, "settings": chosen}}, sort_keys=False, width=118))
    print(json.dumps(chosen))


if __name__ == "__main__":
    main()
