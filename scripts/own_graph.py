"""Measures ``gpnn fit`` and ``gpnn predict`` on graphs as files, beside simple methods; writes docs/own-graph.md.

    python scripts/own_graph.py [--graphs cora citeseer …] [--cases all rewired-25 …] [--budget 2m] [--data ROOT]

Every case writes nodes.csv and edges.csv without the labels of the test nodes, runs the two commands as a user would,
and scores the predictions against the labels that were kept back. The rivals see the same files. Cases already in the
results file with the same budget are left out, so that a run can be continued; ``--again`` measures them anew. The
graphs ``planted`` (100,000 nodes and 1,000,000 edges) and ``minesweeper`` are made up, and left as they are.
"""

import argparse
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch
from own_graph_cases import CASES, LABELS_A_CLASS, MADE_UP, Graph
from scipy import sparse

from graphpartner.fitting.clock import parse_budget
from graphpartner.fitting.scores import calibration_error
from graphpartner.graph.adjacency import simple_edges
from graphpartner.graph.catalogue import CATALOGUE
from graphpartner.graph.datasets import load_graph
from graphpartner.system.files import write_atomically

REPOSITORY = Path(__file__).parents[1]
RESULTS, PAGE = REPOSITORY / "results" / "own-graph.json", REPOSITORY / "docs" / "own-graph.md"
GRAPHS = ("cora", "citeseer", "pubmed", "coauthor-cs", "amazon-computers", "amazon-photo", *MADE_UP)
MARGIN, MANY = 0.005, 1000
UNKNOWN = "–"
RIVALS = ("majority", "logistic regression", "MLP", "label propagation", "GCN")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graphs", nargs="*", default=GRAPHS)
    parser.add_argument("--cases", nargs="*", default=list(CASES))
    parser.add_argument("--budget", default="2m")
    parser.add_argument("--data", default=None)
    parser.add_argument("--jobs", type=int, default=1, help="cases measured beside each other")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--page", action="store_true", help="only write the page from the results")
    options = parser.parse_args()
    rows = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    wanted = [(graph, case) for case in options.cases for graph in options.graphs]
    wanted = [(graph, case) for graph, case in wanted if graph not in MADE_UP or case == "as it is"]
    if options.page:
        wanted = []
    if not options.again:
        there = {(row["graph"], row["case"]) for row in rows if row["budget"] == options.budget}
        wanted = [each for each in wanted if each not in there]
    lock = threading.Lock()

    def work(each: tuple[str, str]) -> None:
        graph, case = each
        row = {"graph": graph, "case": case, "budget": options.budget}
        row |= measure(graph, case, options.budget, options.data)
        with lock:
            best = max(row["rivals"].values())
            print(f"{graph}, {case}: {row['accuracy']:.1%}, best rival {best:.1%}, calibration error {row['ece']:.1%}",
                  flush=True)  # fmt: skip
            rows[:] = [other for other in rows if (other["graph"], other["case"]) != each] + [row]
            write_atomically(RESULTS, json.dumps(rows, indent=1).encode())

    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(work, wanted))
    write_atomically(PAGE, page(rows).encode())


def measure(graph: str, case: str, budget: str, root: str | None, seed: int = 0) -> dict:
    """One case: files, the two commands, scores, rivals."""
    rng = np.random.default_rng(seed)
    made = CASES[case].change(MADE_UP[graph].draw(rng) if graph in MADE_UP else loaded(graph, root), rng)
    known = CASES[case].known(made, rng)
    x, edges, y = made
    test = np.setdiff1d(np.flatnonzero(y >= 0), known)
    with tempfile.TemporaryDirectory() as folder:
        write_files(Path(folder), x, edges, np.where(np.isin(np.arange(len(y)), known), y, -1))
        start = time.monotonic()
        memory = command("fit", "--nodes", "nodes.csv", "--edges", "edges.csv", "--label", "label", "--out", "model",
                "--budget", budget, "--json", folder=folder)  # fmt: skip
        seconds = time.monotonic() - start
        command("predict", "model", "--out", "predictions.csv", folder=folder)
        about = json.loads((Path(folder) / "model" / "model.json").read_text())["about"]
        answers, confidence = predicted(Path(folder) / "predictions.csv")
    right = answers[test] == y[test]
    sure = torch.from_numpy(confidence[test])
    return {
        "accuracy": float(right.mean()),
        "ece": calibration_error(sure, torch.from_numpy(right)),
        "chance": chance_error(sure),
        "nodes": int(test.size),
        "seconds": seconds,
        "memory": memory,
        "estimate": about["scores"]
        and {key: about["scores"][key] for key in ("accuracy", "low", "high", "ece", "how")},
        "decisions": about["decisions"],
        "rivals": rivals(x, edges, y, known, test, made.classes, seed),
    }


def chance_error(confidence: torch.Tensor, draws: int = 200) -> float:
    """The calibration error that perfect probabilities would show on so many nodes, on average."""
    fate = torch.Generator().manual_seed(0)
    luck = [torch.rand(confidence.shape, generator=fate, dtype=torch.float64) < confidence for _ in range(draws)]
    return float(np.mean([calibration_error(confidence, right) for right in luck]))


def loaded(graph: str, root: str | None) -> Graph:
    """One of the six graphs."""
    data = load_graph(graph, root)
    edges = data.edge_index[:, data.edge_index[0] < data.edge_index[1]].numpy()
    return Graph(sparse.csr_array(data.x.numpy()), edges, data.y.numpy())


def write_files(folder: Path, x: sparse.csr_array | None, edges: np.ndarray, y: np.ndarray) -> None:
    """nodes.csv and edges.csv; ids are words, classes too."""
    import pandas as pd

    names = np.array([f"node-{i}" for i in range(len(y))])
    table = pd.DataFrame({"id": names, "label": np.where(y >= 0, np.char.add("class ", y.astype(str)), "")})
    if x is not None:
        words = pd.DataFrame(x.toarray(), columns=[f"f{j}" for j in range(x.shape[1])])
        table = pd.concat([table, words.astype(int) if (x.data % 1 == 0).all() else words], axis=1)
    table.to_csv(folder / "nodes.csv", index=False)
    pd.DataFrame({"source": names[edges[0]], "target": names[edges[1]]}).to_csv(folder / "edges.csv", index=False)


def command(*arguments: str, folder: str) -> int:
    """Run a command of ``gpnn`` to its end; the most bytes it took."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(REPOSITORY), *sys.path])}
    return peak([sys.executable, "-W", "ignore", "-m", "graphpartner.cli", *arguments], folder, environment)


# What Linux says of a child's memory begins at the peak of the process that started it: this one has hardly any.
STARTER = """
import os, sys
silent = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
child = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=silent)
_, status, used = os.wait4(child, 0)
print(used.ru_maxrss)
if status:
    sys.exit(f"ended with {os.waitstatus_to_exitcode(status)}")
"""


def peak(words: list[str], folder: str, environment: dict[str, str]) -> int:
    """Run a program to its end; the most bytes that were resident, however large this process is or was."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", STARTER, *words], cwd=folder, env=environment, capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)}: {done.stderr[-2000:]}")
    return 1024 * int(done.stdout)


def predicted(file: Path) -> tuple[np.ndarray, np.ndarray]:
    import pandas as pd

    table = pd.read_csv(file)
    return table["class"].str.removeprefix("class ").astype(int).to_numpy(), table["probability"].to_numpy().copy()


def rivals(
    x: sparse.csr_array | None, edges: np.ndarray, y: np.ndarray, known: np.ndarray, test: np.ndarray, classes: int,
    seed: int,
) -> dict[str, float]:  # fmt: skip
    """Accuracy of simple methods on the same files; a quarter of the known labels is theirs to choose by."""
    from graphpartner.model.label_propagation import LabelPropagation, majority_class

    rng = np.random.default_rng(seed + 1)
    y_all, n = torch.from_numpy(y), len(y)
    shuffled = torch.from_numpy(rng.permutation(known))
    few = len(known) < 20 * classes
    val, train = shuffled[: len(known) // 4], shuffled[0 if few else len(known) // 4 :]
    edge_index = simple_edges(torch.from_numpy(edges), n)
    if x is None:
        from graphpartner.tables.structure import Structure

        features = torch.as_tensor(Structure.fit(edge_index, n).features(edge_index, n)).float()
    else:
        features = torch.from_numpy(x.toarray()).float()

    def score(answer: torch.Tensor) -> float:
        return float((answer[test].argmax(1) == y_all[test]).float().mean())

    spread = LabelPropagation(edge_index, n)
    alpha, _ = spread.choose(y_all, shuffled[val.numel() :], val, classes)
    found = {
        "majority": score(majority_class(y_all, train, classes).expand(n, classes)),
        "label propagation": score(spread(y_all, shuffled, classes, alpha)),
        "logistic regression": logistic(features, y, shuffled.numpy(), test),
        "MLP": score(network(features, None, y_all, train, val, classes, seed)),
        "GCN": score(network(features, edge_index, y_all, train, val, classes, seed)),
    }
    return {name: found[name] for name in RIVALS}


def logistic(features: torch.Tensor, y: np.ndarray, known: np.ndarray, test: np.ndarray) -> float:
    from sklearn.linear_model import LogisticRegression

    scaled = sparse.csr_array((features / features.abs().max().clamp(min=1e-9)).numpy())
    return float(LogisticRegression(C=10, max_iter=300).fit(scaled[known], y[known]).score(scaled[test], y[test]))


def network(
    features: torch.Tensor, edge_index: torch.Tensor | None, y: torch.Tensor, train: torch.Tensor, val: torch.Tensor,
    classes: int, seed: int,
) -> torch.Tensor:  # fmt: skip
    """A two-layer MLP, or GCN where there are edges: 64 hidden units, dropout 0.5, the epoch best on validation."""
    from graphpartner.graph.adjacency import normalized_adjacency

    torch.manual_seed(seed)
    X = features.to_sparse_csr() if (features != 0).float().mean() < 0.25 else features
    P = None if edge_index is None else normalized_adjacency(edge_index, len(y))
    first = torch.nn.Parameter(torch.nn.init.xavier_uniform_(torch.empty(features.shape[1], 64)))
    second = torch.nn.Parameter(torch.nn.init.xavier_uniform_(torch.empty(64, classes)))
    bias1, bias2 = torch.nn.Parameter(torch.zeros(64)), torch.nn.Parameter(torch.zeros(classes))
    adam = torch.optim.Adam([first, second, bias1, bias2], lr=0.01, weight_decay=5e-4)

    def forward(training: bool) -> torch.Tensor:
        hidden = X @ first
        hidden = torch.relu((hidden if P is None else P @ hidden) + bias1)
        out = torch.nn.functional.dropout(hidden, 0.5, training) @ second
        return (out if P is None else P @ out) + bias2

    best, kept = -1.0, torch.zeros(len(y), classes)
    for _ in range(200):
        adam.zero_grad()
        torch.nn.functional.cross_entropy(forward(True)[train], y[train]).backward()
        adam.step()
        with torch.no_grad():
            out = forward(False)
            right = float((out[val].argmax(1) == y[val]).float().mean())
        if right >= best:
            best, kept = right, out
    return kept


def summary(rows: list[dict]) -> str:
    """How many rows are as good as they should be, and which are not."""

    def named(found: list[dict]) -> str:
        return ": " + "; ".join(f"{row['graph']}, {row['case']}" for row in found) if found else ""

    def counted(found: list[dict], one: str, many: str) -> str:
        return f"{len(found)} {one if len(found) == 1 else many}"

    behind = [row for row in rows if row["accuracy"] < max(row["rivals"].values()) - MARGIN]
    large = [row for row in rows if row["nodes"] >= MANY]
    unsure = [row for row in large if row["ece"] >= 0.05]
    late = [row for row in rows if row["seconds"] > parse_budget(row["budget"])]
    told = [(row["accuracy"], row["estimate"]) for row in rows if row["estimate"]]
    above = sum(accuracy > estimate["high"] for accuracy, estimate in told)
    below = sum(accuracy < estimate["low"] for accuracy, estimate in told)
    return (
        f"Of {len(rows)} cases, {counted(behind, 'is', 'are')} more than {100 * MARGIN:g} points behind the best rival"
        f"{named(behind)}. Of the {len(large)} with {MANY:,} test nodes or more, {counted(unsure, 'has', 'have')} "
        f"a calibration error of 5 % or more{named(unsure)}. {len(late)} took longer than the budget{named(late)}. "
        f"Of the {len(told)} accuracies that `gpnn fit` gave a 95 % interval for, {len(told) - above - below} lie in "
        f"it, {above} above and {below} below: the nodes that an estimate is made on are learned from in the end, so "
        "that it is more often too low than too high."
    )


def points(rows: list[dict]) -> str:
    """How far the accuracies of these graphs can be known from five labels a class, in points."""
    labels = [LABELS_A_CLASS * CATALOGUE[row["graph"]].num_classes for row in rows]
    errors = [math.sqrt(row["accuracy"] * (1 - row["accuracy"]) / m) for row, m in zip(rows, labels, strict=True)]
    return f"{100 * min(errors):.0f} to {100 * max(errors):.0f}"


def page(rows: list[dict]) -> str:
    """The page, from what was measured."""
    budgets = sorted({row["budget"] for row in rows})
    lines = [
        "# Your own graph: what to expect", "",
        "Made by `python scripts/own_graph.py` from [`results/own-graph.json`](../results/own-graph.json); no number "
        "in a table is typed in. Every row is a graph written as `nodes.csv` and `edges.csv`, fitted by `gpnn fit` "
        f"without any further option (budget: {' or '.join(budgets)}) and predicted by `gpnn predict`: one draw each, "
        "one or two threads, some beside other programs.", "",
        "- *accuracy* and *calib. error*, the calibration error (10 bins): of the predictions for the test nodes, "
        "whose labels were in no file",
        "- *to best*: how many points the accuracy is above that of the best rival; the rivals, which stand at the "
        "right, see the same labels",
        "- *time* and *memory*: of `gpnn fit`; the memory is the most that was resident at once, and was not measured "
        "everywhere",
        "- *by chance*: the calibration error that perfect probabilities would show on as many nodes, since bins of "
        "few nodes are never even",
        "- *estimate* and *interval*, of 95 %: of the accuracy, as `gpnn fit` itself printed them, from the labels it "
        "was given",
        "", summary(rows), "",
    ]  # fmt: skip
    for case, (meaning, *_) in CASES.items():
        of_case = [row for graph in GRAPHS for row in rows if row["case"] == case and row["graph"] == graph]
        if not of_case:
            continue
        if "{points}" in meaning:
            meaning = meaning.format(points=points(of_case))
        lines += [f"## {case[0].upper()}{case[1:]}", "", f"{meaning[0].upper()}{meaning[1:]}.", ""]
        made_up = [row["graph"] for row in of_case if row["graph"] in MADE_UP]
        lines += [f"- *{graph}*: {MADE_UP[graph].meaning}." for graph in made_up] + [""] * bool(made_up)
        lines += [*table(of_case), ""]
    return re.sub(r"(?<=\d) (?=%|s\b|GB\b)", "\N{NO-BREAK SPACE}", "\n".join(lines))


def table(rows: list[dict]) -> list[str]:
    """The lines of a table: what a reader looks for first is at the left, and what nobody knows is left out."""
    told = [cells(row) for row in rows]
    columns = [name for name in told[0] if any(row[name] != UNKNOWN for row in told)]
    head, *body = (f"| {' | '.join(line)} |" for line in [columns, *([row[name] for name in columns] for row in told)])
    return [head, "|---|" + "--:|" * (len(columns) - 1), *body]


def cells(row: dict) -> dict[str, str]:
    """A row of a table, by column."""
    estimate, rivals = row["estimate"], row["rivals"]
    return {
        "graph": row["graph"],
        "test nodes": f"{row['nodes']:,}",
        "accuracy": f"**{percent(row['accuracy'])}**",
        "to best": f"{100 * (row['accuracy'] - max(rivals.values())):+z.1f}",
        "time": f"{row['seconds']:.0f} s",
        "memory": f"{row['memory'] / 1e9:.1f} GB" if "memory" in row else UNKNOWN,
        "calib. error": percent(row["ece"]),
        "by chance": percent(row["chance"]),
        "estimate": percent(estimate["accuracy"]) if estimate else UNKNOWN,
        "interval": f"{100 * estimate['low']:.1f} to {percent(estimate['high'])}" if estimate else UNKNOWN,
    } | {name: percent(rivals[name]) for name in RIVALS}


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"


if __name__ == "__main__":
    main()
