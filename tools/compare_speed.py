"""Compare the speed of two checkouts: the same work in both, alternating, as ratios with their interval.

    python tools/compare_speed.py BEFORE AFTER [--rounds 7] [--data DIR] [--device cpu]

BEFORE and AFTER are folders that hold the package. In every round each side does the work in a process of its own, the
order of the two changing from round to round. Uses public names alone, so the two may differ inside.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
GRAPHS = ("cora", "citeseer", "pubmed", "coauthor-cs", "amazon-computers", "amazon-photo")
TRAINED = ("cora", "citeseer", "pubmed")
EPOCHS, TOGETHER = 16, 8
T95 = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776, 6: 2.571, 7: 2.447, 8: 2.365, 9: 2.306, 10: 2.262}
LIMIT = 1.05


def seconds(work: Callable[[], object], repeats: int) -> float:
    """Return the median seconds of a call, after a warm-up."""
    work()
    taken = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def measure(device: str) -> dict[str, float]:
    """Time joins and trainings with the package that this process imports."""
    import graphpartner as gp

    found = {}
    for graph in GRAPHS:
        try:
            data = gp.load_dataset(graph)
        except gp.InputError:
            continue
        join = partial(gp.attribute_graph, data.x.to(device), data.edge_index.to(device))
        found[f"join {graph}"] = seconds(join, 3)
        if graph not in TRAINED:
            continue
        base = gp.preset(f"{graph}/paper").settings.replace(patience=1000, num_steps=10)
        alone = partial(gp.train, data, base.replace(epochs=EPOCHS), [0], device)
        together = partial(gp.train, data, base.replace(epochs=EPOCHS // 4), range(TOGETHER), device)
        found[f"train {graph}, 1 seed"] = seconds(alone, 2)
        found[f"train {graph}, {TOGETHER} seeds"] = seconds(together, 1)
    return found


def run(folder: Path, options: argparse.Namespace) -> dict[str, float]:
    """Measure one checkout in a process of its own."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])}
    if options.data:
        environment["GRAPHPARTNER_DATA"] = str(Path(options.data).resolve())
    command = [sys.executable, "-W", "ignore", str(Path(__file__).resolve()), "measure", "--device", options.device]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{folder}: {done.stderr.strip().splitlines()[-1]}")
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def interval(ratios: list[float]) -> tuple[float, float, float]:
    """Return the geometric mean of paired ratios and its 95 % interval by Student's t."""
    logs = [math.log(ratio) for ratio in ratios]
    mean = statistics.fmean(logs)
    error = T95[len(logs)] * statistics.stdev(logs) / math.sqrt(len(logs))
    return math.exp(mean), math.exp(mean - error), math.exp(mean + error)


def main() -> None:
    """Print one row per piece of work; exit with 1 where an interval lies above the limit."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("before")
    parser.add_argument("after", nargs="?")
    parser.add_argument("--rounds", type=int, default=7, choices=sorted(T95))
    parser.add_argument("--data", help="data root; default: GRAPHPARTNER_DATA")
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    if options.before == "measure":
        print(json.dumps(measure(options.device)))
        return
    if options.after is None:
        parser.error("AFTER is missing: must be a folder that holds the package")
    sides = Path(options.before).resolve(), Path(options.after).resolve()
    rounds: list[list[dict[str, float]]] = []
    for number in range(options.rounds):
        order = (0, 1) if number % 2 == 0 else (1, 0)
        found = {side: run(sides[side], options) for side in order}
        rounds.append([found[0], found[1]])
        print(f"round {number + 1} of {options.rounds}", file=sys.stderr)
    slower = []
    print(f"{'':32s} {'before':>9s} {'after':>9s}   ratio after/before, 95 % interval")
    for what in rounds[0][0]:
        before, after = (statistics.median(each[side][what] for each in rounds) for side in (0, 1))
        ratio, low, high = interval([each[1][what] / each[0][what] for each in rounds])
        slower += [what] if low > LIMIT else []
        print(f"{what:32s} {before:7.3f} s {after:7.3f} s   {ratio:.3f} ({low:.3f} to {high:.3f})")
    print(f"slower by more than {LIMIT:.2f}: {', '.join(slower) or 'nothing'}")
    sys.exit(bool(slower))


if __name__ == "__main__":
    main()
