"""The suite ``fit``: ``gpnn fit`` and ``gpnn predict`` on graphs written as files, beside simple methods.

Every case writes nodes.csv and edges.csv without the labels of the test nodes, runs the two commands as a user would,
and scores the predictions against the labels held back. The reference methods see the same labels.
"""

import json
import math
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy import sparse
from torch import Tensor
from torch.nn import functional as F

from graphpartner.fitting.clock import parse_budget
from graphpartner.fitting.scores import calibration_error
from graphpartner.graph.adjacency import normalized_adjacency, simple_edges
from graphpartner.graph.catalogue import CATALOGUE
from graphpartner.graph.datasets import load_graph
from graphpartner.model.label_propagation import LabelPropagation, majority_class
from graphpartner.model.metrics import accuracy
from graphpartner.system.errors import InputError
from graphpartner.system.meter import program_peak_memory
from graphpartner.system.progress import Progress, silent
from graphpartner.tables.structure import Structure

CASES = Path(__file__).with_suffix(".yaml")
MARGIN, MANY = 0.005, 1000
UNKNOWN = "–"
REFERENCES = ("majority", "logistic regression", "MLP", "label propagation", "GCN")
Row = dict[str, Any]


class CaseGraph(NamedTuple):
    """A graph that will be written as files."""

    x: Any  # SciPy CSR; None: no feature columns
    edges: np.ndarray  # [2, m], every edge once
    y: np.ndarray  # classes; −1 where there is none

    @property
    def classes(self) -> int:
        """C."""
        return int(self.y.max()) + 1


def read_cases() -> dict[str, Any]:
    """Return graphs, generated graphs and cases of ``own_graph.yaml``."""
    import yaml

    content: dict[str, Any] = yaml.safe_load(CASES.read_text("utf-8"))
    return content


def measure_fits(
    rows: list[Row],
    graphs: Sequence[str] = (),
    cases: Sequence[str] = (),
    budget: str = "2m",
    root: str | None = None,
    again: bool = False,
    on_row: Callable[[Row], None] | None = None,
    progress: Progress = silent,
) -> None:
    """Measure the cases that ``rows`` lack, and put them there as they are done.

    All graphs and cases of ``own_graph.yaml`` are measured where none are given, and those that ``rows`` has with this
    budget only ``again``. ``on_row`` is called with every row as soon as it is measured.
    """
    known = read_cases()
    every = [*known["graphs"], *known["generated"]]
    for option, given, choices in (("--graphs", graphs, every), ("--cases", cases, known["cases"])):
        if unknown := set(given) - set(choices):
            raise InputError(f"{option} {min(unknown)}: must be one of {', '.join(choices)}")
    wanted = [(graph, case) for case in cases or known["cases"] for graph in graphs or every]
    wanted = [(graph, case) for graph, case in wanted if graph in known["graphs"] or case == "as it is"]
    done = set() if again else {(row["graph"], row["case"]) for row in rows if row["budget"] == budget}
    wanted = [each for each in wanted if each not in done]
    for place, (graph, case) in enumerate(wanted):
        progress(place, len(wanted))
        row = {"graph": graph, "case": case, "budget": budget, **measure_fit(graph, case, budget, root)}
        rows[:] = [other for other in rows if (other["graph"], other["case"]) != (graph, case)] + [row]
        if on_row:
            on_row(row)
    progress(1, 1)


def measure_fit(graph: str, case: str, budget: str, root: str | None, seed: int = 0) -> Row:
    """Write one case as files, run the two commands, and score predictions and references."""
    rng = np.random.default_rng(seed)
    data, known = draw(graph, case, root, rng)
    x, edges, y = data
    test = np.setdiff1d(np.flatnonzero(y >= 0), known)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        _write_files(folder, x, edges, np.where(np.isin(np.arange(len(y)), known), y, -1))
        start = time.monotonic()
        files = ("--nodes", "nodes.csv", "--edges", "edges.csv", "--label", "label", "--out", "model")
        memory = _gpnn(folder, "fit", *files, "--budget", budget, "--json")
        seconds = time.monotonic() - start
        _gpnn(folder, "predict", "model", "--out", "predictions.csv")
        card = json.loads((folder / "model" / "model.json").read_text())["card"]
        answers, confidence = _read_predictions(folder / "predictions.csv")
    right = answers[test] == y[test]
    sure = torch.from_numpy(confidence[test])
    scores = card["scores"]
    return {
        "accuracy": float(right.mean()),
        "ece": calibration_error(sure, torch.from_numpy(right)),
        "chance": chance_error(sure),
        "nodes": int(test.size),
        "seconds": seconds,
        "memory": memory,
        "estimate": scores and {key: scores[key] for key in ("accuracy", "low", "high", "ece", "how")},
        "decisions": card["decisions"],
        "references": references(data, known, test, seed),
    }


def draw(graph: str, case: str, root: str | None, rng: np.random.Generator) -> tuple[CaseGraph, np.ndarray]:
    """Return the graph of a case, and the nodes whose labels are in the file."""
    options = read_cases()["cases"][case]
    data = GENERATED[graph](rng) if graph in GENERATED else _load(graph, root)
    for name, argument in options.get("change", {}).items():
        data = CHANGES[name](data, rng, *([] if argument is None else [argument]))
    if count := options.get("labels_per_class"):
        classes = (rng.permutation(np.flatnonzero(data.y == c))[:count] for c in range(data.classes))
        return data, np.concatenate(list(classes))
    labelled = np.flatnonzero(data.y >= 0)
    return data, rng.permutation(labelled)[: int(options["known"] * labelled.size)]


def _load(graph: str, root: str | None) -> CaseGraph:
    data = load_graph(graph, root)
    edges = data.edge_index[:, data.edge_index[0] < data.edge_index[1]].numpy()
    return CaseGraph(sparse.csr_array(data.x.numpy()), edges, data.y.numpy())


def planted(rng: np.random.Generator, nodes: int = 100_000, edges: int = 1_000_000, classes: int = 8) -> CaseGraph:
    """Generate a large graph: seven edges of ten within a class, twenty features whose means depend on it."""
    y = rng.integers(0, classes, nodes)
    order = np.argsort(y, kind="stable")
    start, end = (np.searchsorted(y[order], np.arange(classes), side) for side in ("left", "right"))
    first = rng.integers(0, nodes, edges)
    inside = order[rng.integers(start[y[first]], end[y[first]])]
    second = np.where(rng.random(edges) < 0.7, inside, rng.integers(0, nodes, edges))
    x = rng.normal(size=(nodes, 20)) + 0.35 * rng.normal(size=(classes, 20))[y]
    return CaseGraph(sparse.csr_array(x.round(4)), _without_loops(np.stack([first, second])), y)


def minesweeper(rng: np.random.Generator, side: int = 100) -> CaseGraph:
    """Generate the game as a heterophilous graph (Platonov et al., 2023): is there a mine in this cell of the grid?

    A fifth of the cells hold one; the feature of a cell is the number of mines in the eight around it, or unknown in
    every other cell.
    """
    y = (rng.random(side * side) < 0.2).astype(np.int64)
    cell = np.arange(side * side).reshape(side, side)
    pairs = [(cell[:, 1:], cell[:, :-1]), (cell[1:], cell[:-1]), (cell[1:, 1:], cell[:-1, :-1]),
             (cell[1:, :-1], cell[:-1, 1:])]  # fmt: skip
    edges = np.concatenate([np.stack([one.ravel(), other.ravel()]) for one, other in pairs], axis=1)
    around = np.bincount(edges.ravel(), y[edges[::-1]].ravel(), side * side).astype(np.int64)
    shown = np.where(rng.random(side * side) < 0.5, around, 9)  # 9: unknown
    return CaseGraph(sparse.csr_array(np.eye(10)[shown]), edges, y)


GENERATED: dict[str, Callable[[np.random.Generator], CaseGraph]] = {"planted": planted, "minesweeper": minesweeper}


def rewired(graph: CaseGraph, rng: np.random.Generator, share: float) -> CaseGraph:
    """Move one end of a share of the edges to a random node."""
    edges = graph.edges.copy()
    moved = rng.random(edges.shape[1]) < share
    edges[1, moved] = rng.integers(0, len(graph.y), np.count_nonzero(moved))
    return graph._replace(edges=_without_loops(edges))


def without_features(graph: CaseGraph, rng: np.random.Generator) -> CaseGraph:
    """Keep ids and edges only."""
    return graph._replace(x=None)


def to_next_class(graph: CaseGraph, rng: np.random.Generator) -> CaseGraph:
    """Lead every edge from a class to the next one: neighbours never share a node's class, yet determine it."""
    wanted = (graph.y[graph.edges[0]] + 1) % graph.classes
    return graph._replace(edges=_led_to(graph, wanted, rng))


def to_other_classes(graph: CaseGraph, rng: np.random.Generator) -> CaseGraph:
    """Lead every edge to a node of some other class: neighbours show hardly more than which class a node is not of."""
    away = rng.integers(1, graph.classes, graph.edges.shape[1])
    return graph._replace(edges=_led_to(graph, (graph.y[graph.edges[0]] + away) % graph.classes, rng))


def hubs(graph: CaseGraph, rng: np.random.Generator, factor: float) -> CaseGraph:
    """Keep 5 % of the words, and draw edges by a popularity that grows by a factor from class to class."""
    popular = factor ** np.maximum(graph.y, 0) * rng.lognormal(0, 0.5, len(graph.y))
    edges = rng.choice(len(graph.y), (2, 5 * len(graph.y)), p=popular / popular.sum())
    words = rng.permutation(graph.x.shape[1])[: max(1, int(0.05 * graph.x.shape[1]))]
    return graph._replace(x=graph.x[:, np.sort(words)], edges=_without_loops(edges))


def small(graph: CaseGraph, rng: np.random.Generator, size: int) -> CaseGraph:
    """Keep a few hundred nodes with all their features, and lead edges to other classes; leave out rare classes."""
    nodes = rng.permutation(np.flatnonzero(graph.y >= 0))[:size]
    nodes = nodes[np.bincount(graph.y[nodes])[graph.y[nodes]] >= 5]
    y = np.unique(graph.y[nodes], return_inverse=True)[1]
    edges = rng.integers(0, len(nodes), (2, 2 * len(nodes)))
    return to_other_classes(CaseGraph(graph.x[nodes], edges, y), rng)


CHANGES: dict[str, Callable[..., CaseGraph]] = {
    change.__name__: change for change in (rewired, without_features, to_next_class, to_other_classes, hubs, small)
}


def _led_to(graph: CaseGraph, wanted: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the edges with their second ends drawn anew among the nodes of the wanted classes."""
    order = np.argsort(graph.y, kind="stable")
    start, end = (np.searchsorted(graph.y[order], wanted, side) for side in ("left", "right"))
    second = order[rng.integers(start, end)]
    return _without_loops(np.stack([graph.edges[0], second])[:, graph.y[graph.edges[0]] >= 0])


def _without_loops(edges: np.ndarray) -> np.ndarray:
    return edges[:, edges[0] != edges[1]]


def _write_files(folder: Path, x: Any, edges: np.ndarray, y: np.ndarray) -> None:
    """Write nodes.csv and edges.csv; ids and classes are words."""
    import pandas as pd

    names = np.array([f"node-{i}" for i in range(len(y))])
    table = pd.DataFrame({"id": names, "label": np.where(y >= 0, np.char.add("class ", y.astype(str)), "")})
    if x is not None:
        words = pd.DataFrame(x.toarray(), columns=[f"f{j}" for j in range(x.shape[1])])
        table = pd.concat([table, words.astype(int) if (x.data % 1 == 0).all() else words], axis=1)
    table.to_csv(folder / "nodes.csv", index=False)
    pd.DataFrame({"source": names[edges[0]], "target": names[edges[1]]}).to_csv(folder / "edges.csv", index=False)


def _gpnn(folder: Path, *arguments: str) -> int:
    """Run a command of this package in a folder, and return its peak memory in bytes."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[3]), *sys.path])}
    program = "from graphpartner.cli import main; main()"
    return program_peak_memory([sys.executable, "-W", "ignore", "-c", program, *arguments], folder, environment)


def _read_predictions(file: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return class and probability of every node."""
    import pandas as pd

    table = pd.read_csv(file)
    return table["class"].str.removeprefix("class ").astype(int).to_numpy(), table["probability"].to_numpy().copy()


def chance_error(confidence: Tensor, draws: int = 200) -> float:
    """Return the mean calibration error that perfect probabilities would show on as many nodes."""
    fate = torch.Generator().manual_seed(0)
    luck = [torch.rand(confidence.shape, generator=fate, dtype=torch.float64) < confidence for _ in range(draws)]
    return float(np.mean([calibration_error(confidence, right) for right in luck]))


def references(graph: CaseGraph, known: np.ndarray, test: np.ndarray, seed: int) -> dict[str, float]:
    """Return the accuracy of simple methods that see the same labels, and choose by a quarter of them."""
    rng = np.random.default_rng(seed + 1)
    y, n, classes = torch.from_numpy(graph.y), len(graph.y), graph.classes
    shuffled = torch.from_numpy(rng.permutation(known))
    val, rest = shuffled[: len(known) // 4], shuffled[len(known) // 4 :]
    train = shuffled if len(known) < 20 * classes else rest
    edge_index = simple_edges(torch.from_numpy(graph.edges), n)
    if graph.x is None:
        features = torch.as_tensor(Structure.fit(edge_index, n).features(edge_index, n)).float()
    else:
        features = torch.from_numpy(graph.x.toarray()).float()
    spread = LabelPropagation(edge_index, n)
    alpha, _ = spread.choose(y, rest, val, classes)
    scores = {
        "majority": majority_class(y, train, classes).expand(n, classes),
        "label propagation": spread(y, shuffled, classes, alpha),
        "MLP": _network(features, None, y, train, val, classes, seed),
        "GCN": _network(features, edge_index, y, train, val, classes, seed),
    }
    rates = {name: float(accuracy(each[test], y[test])) for name, each in scores.items()}
    rates["logistic regression"] = _logistic_regression(features, graph.y, shuffled.numpy(), test)
    return {name: rates[name] for name in REFERENCES}


def _logistic_regression(features: Tensor, y: np.ndarray, known: np.ndarray, test: np.ndarray) -> float:
    from sklearn.linear_model import LogisticRegression

    scaled = sparse.csr_array((features / features.abs().max().clamp(min=1e-9)).numpy())
    return float(LogisticRegression(C=10, max_iter=300).fit(scaled[known], y[known]).score(scaled[test], y[test]))


def _network(
    features: Tensor, edge_index: Tensor | None, y: Tensor, train: Tensor, val: Tensor, classes: int, seed: int
) -> Tensor:
    """Return logits of a two-layer MLP, or GCN where there are edges: 64 units, dropout 0.5, the best of 200 epochs."""
    torch.manual_seed(seed)
    X = features.to_sparse_csr() if (features != 0).float().mean() < 0.25 else features
    P = None if edge_index is None else normalized_adjacency(edge_index, len(y))
    first, second = (
        torch.nn.Parameter(torch.nn.init.xavier_uniform_(torch.empty(shape)))
        for shape in ((features.shape[1], 64), (64, classes))
    )
    bias1, bias2 = torch.nn.Parameter(torch.zeros(64)), torch.nn.Parameter(torch.zeros(classes))
    adam = torch.optim.Adam([first, second, bias1, bias2], lr=0.01, weight_decay=5e-4)

    def forward(training: bool) -> Tensor:
        hidden = X @ first
        hidden = torch.relu((hidden if P is None else P @ hidden) + bias1)
        out = F.dropout(hidden, 0.5, training) @ second
        return (out if P is None else P @ out) + bias2

    best, kept = -1.0, torch.zeros(len(y), classes)
    for _ in range(200):
        adam.zero_grad()
        F.cross_entropy(forward(True)[train], y[train]).backward()
        adam.step()
        with torch.no_grad():
            out = forward(False)
            right = float(accuracy(out[val], y[val]))
        if right >= best:
            best, kept = right, out
    return kept


def write_line(row: Row) -> str:
    """Return one row for a terminal."""
    best = max(row["references"].values())
    return (
        f"{row['graph']}, {row['case']}: {row['accuracy']:.1%}, best reference {best:.1%}, "
        f"calibration error {row['ece']:.1%}"
    )


def own_graph_page(rows: list[Row]) -> str:
    """Return the page in Markdown, from the rows alone."""
    known, budgets = read_cases(), sorted({row["budget"] for row in rows})
    graphs = [*known["graphs"], *known["generated"]]
    lines = [known["introduction"].format(budget=" or ".join(budgets)), _summary(rows), ""]
    for case, options in known["cases"].items():
        of_case = [row for graph in graphs for row in rows if (row["graph"], row["case"]) == (graph, case)]
        if not of_case:
            continue
        text = options["description"]
        if "{points}" in text:
            text = text.format(points=points(of_case))
        lines += [f"## {case[0].upper()}{case[1:]}", "", f"{text[0].upper()}{text[1:]}.", ""]
        generated = [row["graph"] for row in of_case if row["graph"] in known["generated"]]
        lines += [f"- *{graph}*: {known['generated'][graph]}." for graph in generated] + [""] * bool(generated)
        lines += [*_table(of_case), ""]
    return re.sub(r"(?<=\d) (?=%|s\b|GB\b)", "\N{NO-BREAK SPACE}", "\n".join(lines))


def _summary(rows: list[Row]) -> str:
    """Count the rows that fall short, and name them."""

    def named(found: list[Row]) -> str:
        return ": " + "; ".join(f"{row['graph']}, {row['case']}" for row in found) if found else ""

    def counted(found: list[Row], one: str, many: str) -> str:
        return f"{len(found)} {one if len(found) == 1 else many}"

    behind = [row for row in rows if row["accuracy"] < max(row["references"].values()) - MARGIN]
    large = [row for row in rows if row["nodes"] >= MANY]
    unsure = [row for row in large if row["ece"] >= 0.05]
    late = [row for row in rows if row["seconds"] > parse_budget(row["budget"])]
    pairs = [(row["accuracy"], row["estimate"]) for row in rows if row["estimate"]]
    above = sum(rate > estimate["high"] for rate, estimate in pairs)
    below = sum(rate < estimate["low"] for rate, estimate in pairs)
    return (
        f"Of {len(rows)} cases, {counted(behind, 'is', 'are')} more than {100 * MARGIN:g} points behind the best "
        f"reference{named(behind)}. Of the {len(large)} with {MANY:,} test nodes or more, "
        f"{counted(unsure, 'has', 'have')} a calibration error of 5 % or more{named(unsure)}. {len(late)} took longer "
        f"than the budget{named(late)}. Of the {len(pairs)} accuracies for which `gpnn fit` gave a 95 % interval, "
        f"{len(pairs) - above - below} lie in it, {above} above and {below} below: the nodes held out for the estimate "
        "are trained on in the end, so that it is more often too low than too high."
    )


def points(rows: list[Row]) -> str:
    """Return the range of standard errors of these accuracies, judged from five labels per class, in points."""
    count = read_cases()["cases"][rows[0]["case"]]["labels_per_class"]
    labels = [count * CATALOGUE[row["graph"]].num_classes for row in rows]
    errors = [math.sqrt(row["accuracy"] * (1 - row["accuracy"]) / m) for row, m in zip(rows, labels, strict=True)]
    return f"{100 * min(errors):.0f} to {100 * max(errors):.0f}"


def _table(rows: list[Row]) -> list[str]:
    """Return the lines of a table, without columns of which nothing is known."""
    texts = [_cells(row) for row in rows]
    columns = [name for name in texts[0] if any(row[name] != UNKNOWN for row in texts)]
    head, *body = (f"| {' | '.join(line)} |" for line in [columns, *([row[name] for name in columns] for row in texts)])
    return [head, "|---|" + "--:|" * (len(columns) - 1), *body]


def _cells(row: Row) -> dict[str, str]:
    """Return a row of a table, by column."""
    estimate, others = row["estimate"], row["references"]
    return {
        "graph": row["graph"],
        "test nodes": f"{row['nodes']:,}",
        "accuracy": f"**{_percent(row['accuracy'])}**",
        "to best": f"{100 * (row['accuracy'] - max(others.values())):+z.1f}",
        "time": f"{row['seconds']:.0f} s",
        "memory": f"{row['memory'] / 1e9:.1f} GB" if "memory" in row else UNKNOWN,
        "calib. error": _percent(row["ece"]),
        "by chance": _percent(row["chance"]),
        "estimate": _percent(estimate["accuracy"]) if estimate else UNKNOWN,
        "interval": f"{100 * estimate['low']:.1f} to {_percent(estimate['high'])}" if estimate else UNKNOWN,
    } | {name: _percent(others[name]) for name in REFERENCES}


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
