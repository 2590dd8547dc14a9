"""Record what the commands answer, and check later that nothing has changed.

    python tools/golden.py record [--device cpu|cuda] [--data DIR]
    python tools/golden.py check  [--device cpu|cuda] [--data DIR] [--only PART ...]

The record lies in tools/golden/. Everything goes through the command line in this process, and through public names of
the package where no command tells; so modules may move and messages may change. ``check`` prints one line an item, and
ends with exit code 1 where something differs. Two workers with one thread each share the work.

An item has three kinds of values. ``always`` must be the same anywhere. ``bits`` must be the same on the machine,
with the versions and on the device of the record, if that is the CPU. ``classes`` must be the same there too;
elsewhere, and on a GPU, a few nodes of a hundred may differ.
"""

import argparse
import contextlib
import csv
import gzip
import hashlib
import io
import json
import math
import os
import platform
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[1]
FOLDER = Path(__file__).resolve().parent / "golden"
WORKERS = 2
THREADS = 1  # of each worker: more would let the order of a fit's runs depend on chance
GRAPHS = ("citeseer", "cora", "pubmed", "coauthor-cs", "amazon-computers", "amazon-photo")
BASELINES = (
    "grand", "grace", "jknet", "gat", "mvgrl", "gcnii", "jknet-dropedge", "dagnn", "appnp", "gcn", "dgi", "mlp", "sgc",
)  # fmt: skip
ONE_SEED = {"grace", "jknet", "mvgrl", "gcnii"}  # which take long
TARGET = {"gcnii": "table4"}  # whose preview has 5 epochs, where that of Table 1 has 100; runs alone and together
SMALL = ("epochs=20",)
PRESETS = {"paper": SMALL, "tuned": SMALL, "views": SMALL, "distilled": (*SMALL, "teachers=2", "generations=2")}
COST = {"seconds", "peak_memory"}  # of a run: never twice the same
LOOSE_SHARE = 0.02  # of nodes whose class may differ where bits are not promised
LOOSE_POINTS = 2.0  # of percent, that an accuracy may be off there
SHOWN = 4  # differences of an item that are printed


@dataclass
class Item:
    """What is recorded under one name."""

    always: dict[str, Any] = field(default_factory=dict)
    bits: dict[str, Any] = field(default_factory=dict)
    classes: dict[str, Any] = field(default_factory=dict)
    skipped: str = ""

    def plain(self) -> dict[str, Any]:
        """Give what JSON keeps of it."""
        return {name: value for name, value in vars(self).items() if value}


@dataclass(frozen=True)
class Place:
    """Where a part runs: an empty folder of its own, the device, the data root."""

    folder: Path
    device: str
    root: str | None

    @property
    def on(self) -> list[str]:
        """Give the option that says which device."""
        return ["--device", self.device]


@dataclass(frozen=True)
class Answer:
    """What a command said."""

    code: int
    out: str
    err: str


Items = Iterator[tuple[str, Item]]


# ---------------------------------------------------------------------------------------------------------------------
# How commands are asked, and how answers become short


def ask(*arguments: object) -> Answer:
    """Run ``gpnn`` with these arguments in this process."""
    from graphpartner.cli import main

    out, err, before, code = io.StringIO(), io.StringIO(), sys.argv, 0
    sys.argv = ["gpnn", *map(str, arguments)]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                main()
            except SystemExit as end:
                code = end.code if isinstance(end.code, int) else int(end.code is not None)
    finally:
        sys.argv = before
    return Answer(code, out.getvalue(), err.getvalue())


def must(*arguments: object) -> Answer:
    """Run a command that has to succeed."""
    answer = ask(*arguments)
    if answer.code:
        raise RuntimeError(f"gpnn {' '.join(map(str, arguments))}: exit code {answer.code}: {answer.err[-500:]}")
    return answer


def digest(content: bytes | str, length: int = 16) -> str:
    """Give the beginning of the SHA-256."""
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()[:length]


def digest_of(value: Any, length: int = 16) -> str:
    """Give the same of a value that JSON can hold; the order of keys does not count."""
    return digest(json.dumps(value, sort_keys=True), length)


def exact(value: Any) -> Any:
    """Write every float as text that keeps each bit, behind a readable form."""
    if isinstance(value, dict):
        return {str(name): exact(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [exact(each) for each in value]
    if isinstance(value, float):
        return f"{value:.6g} {value.hex()}" if math.isfinite(value) else str(value)
    return value


def column(file: Path, name: str) -> list[str]:
    """Read one column of a CSV file."""
    with file.open(newline="") as lines:
        return [row[name] for row in csv.DictReader(lines)]


def tensor_digest(tensor: Any) -> str:
    """Hash the bytes of a tensor, its type and its shape."""
    array = tensor.detach().cpu().contiguous().numpy()
    return digest(f"{array.dtype} {array.shape} ".encode() + array.tobytes())


# ---------------------------------------------------------------------------------------------------------------------
# The parts


def preset(name: str) -> Callable[[Place], Items]:
    """Make the part that trains a preset of CiteSeer, two seeds and 20 epochs."""

    def part(place: Place) -> Items:
        from safetensors.torch import load_file

        changes = [word for change in PRESETS[name] for word in ("--set", change)]
        must("train", "citeseer", "--preset", name, "--seeds", 2, *changes, *place.on, "--out", "out")
        about = json.loads(Path("out/runs.json").read_text())
        bits = {
            "predictions.csv": digest(Path("out/predictions.csv").read_bytes()),
            "history.csv": digest(Path("out/history.csv").read_bytes()),
            "val_loss": exact(about["val_loss"]),
            "best_epoch": about["best_epoch"],
        }
        bits |= {f"weights {key}": tensor_digest(each) for key, each in load_file("out/weights.safetensors").items()}
        classes = {"nodes": "".join(column(Path("out/predictions.csv"), "class"))}
        classes |= {key: about[key] for key in ("test_accuracy", "val_mean")}
        kept = ("seeds", "settings", "epochs", "graph", "preset", "saw_test", "published_mean", "published_sd")
        always = {key: about[key] for key in kept if key != "settings"} | {
            "settings": digest_of(about["settings"]),
            "files": sorted(path.name for path in Path("out").iterdir()),
        }
        yield f"train {name}", Item(always, bits, classes)

    return part


def baseline(name: str) -> Callable[[Place], Items]:
    """Make the part that trains a method of Table 1 as a preview does, two seeds or one."""
    target, seeds = TARGET.get(name, "table1"), 1 if name in ONE_SEED else 2

    def part(place: Place) -> Items:
        must("reproduce", target, "--quick", "--methods", name, "--seeds", seeds, *place.on, "--out", "out")
        for line in journal(Path("out/quick/runs")):
            how = f" {line['timing']}" if line["timing"] else ""
            yield f"{target} {name}{how} seed {line['seed']}", run_item(line)

    return part


def look(target: str) -> Callable[[Place], Items]:
    """Make the part that runs a target of ``reproduce`` that needs no training to speak of."""

    def part(place: Place) -> Items:
        must("reproduce", target, "--graphs", "citeseer", *place.on, "--methods", "gpnn", "--out", "out")
        for line in journal(Path("out/runs")):
            yield f"{target} {line['method']} {digest_of(line['settings'], 6)}", run_item(line)

    return part


def journal(folder: Path) -> Iterator[dict[str, Any]]:
    """Read every line of a journal."""
    for file in sorted(folder.iterdir()):
        text = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
        yield from map(json.loads, text.splitlines())


YOUNGER = {"generations": 1, "groups": 1, "regression_decay": 0.0}


def run_item(line: dict[str, Any]) -> Item:
    """Make an item of one line of a journal."""
    measured = {name: value for name, value in line["measured"].items() if name not in COST}
    classes = {name: measured.pop(name) for name in ("accuracy", "val_accuracy") if name in measured}
    always: dict[str, Any] = {
        name: line[name] for name in ("method", "graph", "seed", "members", "timing", "split") if name in line
    }
    # the record was made when lines left these settings out
    settings = {name: value for name, value in line["settings"].items() if YOUNGER.get(name) != value}
    always |= {"settings": digest_of(settings)}
    for name in ("parameters", "nodes", "edges", "classes"):
        if name in measured:
            always[name] = measured.pop(name)
    return Item(always, exact(measured) | exact(classes), classes)


def joins(place: Place) -> Items:
    """Join every graph that is here with k = 3, t = 0.4."""
    import graphpartner as gp

    for graph in GRAPHS:
        try:
            data = load(graph, place)
        except gp.InputError as error:
            yield f"join {graph}", Item(skipped=str(error))
            continue
        joined = gp.attribute_graph(data.x, data.edge_index, k=3, threshold=0.4, device=place.device)
        quality = gp.edge_quality(data.x, data.edge_index, data.y, joined.cpu())
        always = {
            "nnz": joined.values().numel(),
            "crow": tensor_digest(joined.crow_indices()),
            "col": tensor_digest(joined.col_indices()),
            "x": tensor_digest(data.x if data.x.layout.__str__() == "torch.strided" else data.x.values()),
            "edges": tensor_digest(data.edge_index),
            "y": tensor_digest(data.y),
        }
        yield (
            f"join {graph}",
            Item(always, {"values": tensor_digest(joined.values()), "quality": exact(vars_of(quality))}),
        )


def load(graph: str, place: Place) -> Any:
    """Load a graph if it is here; nothing is downloaded."""
    import graphpartner as gp

    if graph != "citeseer" and place.root is None:
        raise gp.InputError("no data root")
    return gp.load_dataset(graph, place.root if graph != "citeseer" else None)


def vars_of(value: Any) -> dict[str, Any]:
    """Give the fields of a dataclass, tensors as lists of numbers or, if long, their hash."""
    found = {}
    for name in value.__dataclass_fields__:
        each = getattr(value, name)
        if hasattr(each, "numel"):
            each = each.tolist() if each.numel() <= 8 else tensor_digest(each)
        found[name] = vars_of(each) if hasattr(each, "__dataclass_fields__") else each
    return found


def inspections(place: Place) -> Items:
    """Inspect CiteSeer, and list the graphs."""
    for name, options in (("default", ()), ("k=2 threshold=0.6", ("--k", "2", "--threshold", "0.6"))):
        found = json.loads(must("inspect", "citeseer", *options, "--json").out)
        advice = found.pop("advice")
        found["plan"].pop("seconds")  # an estimate, but made of what this machine has measured
        working = {key: found["plan"].pop(key) for key in ("choice", "working_bytes") if key in found["plan"]}
        kernel = {key: working["choice"][key] for key in ("kernel", "reach", "symmetric")}
        numbers = [re.findall(r"\d[\d,.]*\d|\d", sentence) for sentence in advice]
        yield f"inspect {name}", Item({"kernel": kernel, "advice": numbers}, exact(found))
    graphs = json.loads(must("data", "--json").out)["graphs"]
    counted = [[each[key] for key in ("name", "num_nodes", "num_edges")] for each in graphs]
    yield "data", Item({"graphs": counted, "first is here": graphs[0]["is_here"]})


def smoothness(place: Place) -> Items:
    """Measure how smooth embeddings of CiteSeer are, made with PyTorch alone."""
    import torch

    import graphpartner as gp

    data = gp.load_dataset("citeseer")
    x = data.x.to_dense() if data.x.layout != torch.strided else data.x
    n = x.shape[0]
    loops = torch.arange(n).expand(2, n)
    edges = torch.cat([data.edge_index, loops], 1)
    degree = torch.bincount(edges[1], minlength=n).double() ** -0.5
    P = torch.sparse_coo_tensor(edges, degree[edges[0]] * degree[edges[1]], (n, n)).coalesce()
    generator = torch.Generator().manual_seed(0)
    weights = [torch.randn(x.shape[1], 16, generator=generator) / 16, torch.randn(16, 8, generator=generator) / 4]
    layers, all_layers = [x], []
    for weight in weights:
        layers.append((P @ (layers[-1].double() @ weight.double())).float())
    for steps in (0, 2, 16):
        hidden = x.double() @ weights[0].double()
        for _ in range(steps):
            hidden = P @ hidden
        all_layers.append(hidden.float())
    where = torch.device(place.device)
    edge_index = data.edge_index.to(where)
    stack = torch.stack(all_layers).to(where)
    bits: dict[str, Any] = {"embedding": tensor_digest(stack)}
    bits["dirichlet_energy"] = exact(gp.dirichlet_energy(stack, edge_index).tolist())
    bits["mad_gap"] = exact(gp.mad_gap(stack, edge_index).tolist())
    bits["mad_gap sampled"] = exact(gp.mad_gap(stack[1], edge_index, sample=200, seed=1).tolist())
    bits["mad"] = exact(gp.mad(stack, edge_index).tolist())
    found = gp.singular_values({"first": weights[0], "second": weights[1]})
    bits["singular_values"] = {name: exact(each.tolist()) for name, each in found.items()}
    bits["energy_bounds"] = exact(
        vars_of(gp.energy_bounds([each.to(where) for each in layers], [each.to(where) for each in weights], edge_index))
    )
    yield "smoothness citeseer", Item(bits=bits)


def search(place: Place) -> Items:
    """Search one configuration, and go on with a second."""
    options = ("--splits", 1, "--replicas", 2, "--epochs", 4, *place.on, "--out", "out")
    for family, trials in (("tuned", 1), ("tuned", 2), ("paper", 1)):
        answer = must("search", "citeseer", "--family", family, "--trials", trials, *options)
        text = Path(f"out/citeseer-{family}.yaml").read_text()
        settings = text[text.index("saw_test") :].replace(" nll: ", " surprise: ")  # its name in the record
        percent = re.findall(r"(\d+\.\d+) %", answer.out)
        yield (
            f"search {family} {trials} trials",
            Item(
                {"files": sorted(path.name for path in Path("out").iterdir())},
                {"preset": digest(settings), "accuracy": percent},
            ),
        )


def planted(count: int, seed: int) -> tuple[list[list[str]], list[list[str]]]:
    """Draw rows of nodes (id, kind, four numbers, a word) and rows of edges, mostly within a kind."""
    rng = random.Random(seed)
    kinds = [rng.randrange(3) for _ in range(count)]
    nodes = []
    for number, kind in enumerate(kinds):
        values = [f"{rng.gauss(0.0, 1.0) + 0.9 * (place == kind):.4f}" for place in range(4)]
        nodes.append([f"n{number}", ("ash", "elm", "oak")[kind], *values, rng.choice(("red", "green", "blue"))])
    edges = []
    for _ in range(3 * count):
        source = rng.randrange(count)
        same = [each for each in range(count) if kinds[each] == kinds[source] and each != source]
        target = rng.choice(same) if rng.random() < 0.9 else rng.randrange(count)
        edges.append([f"n{source}", f"n{target}"])
    return nodes, edges


HEAD = ["id", "kind", "a", "b", "c", "d", "colour"]


def write_csv(file: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Write a CSV file into the current folder."""
    Path(file).write_text("".join(",".join(row) + "\n" for row in [head, *rows]))


def write_graph(count: int = 100, seed: int = 0) -> None:
    """Write nodes.csv, edges.csv, and three new nodes of which one has no edge."""
    nodes, edges = planted(count, seed)
    old = count - 3
    write_csv("nodes.csv", [*HEAD, "part"], [
        [row[0], row[1] if place % 5 else "", *row[2:], ("train", "train", "val", "test")[place % 4]]
        for place, row in enumerate(nodes[:old])
    ])  # fmt: skip
    names = {row[0] for row in nodes[:old]}
    write_csv("edges.csv", ["source", "target"], [edge for edge in edges if set(edge) <= names])
    write_csv("new.csv", ["id", *HEAD[2:]], [[row[0], *row[2:]] for row in nodes[old:]])
    write_csv("new-edges.csv", ["source", "target"], [[f"n{old}", "n0"], [f"n{old + 1}", f"n{old}"], [f"n{old}", "n7"]])


def fit(kind: str, *options: object) -> Callable[[Place], Items]:
    """Make the part that fits a small graph with more time than it needs, and asks the model."""

    def part(place: Place) -> Items:
        write_graph()
        edges = [] if "no edges" in kind else ["--edges", "edges.csv"]
        given = ("--nodes", "nodes.csv", *edges, "--label", "kind", "--id", "id", "--budget", "10h", *options)
        features = [word for name in HEAD[2:] for word in ("--features", name)]
        about = json.loads(must("fit", *given, *features, *place.on, "--out", "model", "--json").out)
        about.pop("seconds"), about.pop("model")
        scores = about["scores"]
        always = {
            "interrupted": about["interrupted"],
            "tried": sorted(about["tried"]),
            "files": sorted(path.name for path in Path("model").iterdir()),
            "test": digest_of(about["split"]),
            "scored": sorted(scores),
        }
        numbers = {
            f"scores {name}": exact(value) for name, value in scores.items() if isinstance(value, int | float | list)
        }
        bits = numbers | {
            "references": exact(scores["references"]),
            "validation": exact(about["validation"]),
            "tried": exact(about["tried"]),
        }
        for name, text in (("model.json", Path("model/model.json").read_text()),):
            kept = json.loads(text)
            found = {
                key: kept[key] for key in ("weights", "label_propagation", "temperature", "partner") if key in kept
            }
            bits[name] = exact(found)
        yield f"fit {kind}", Item(always, bits)
        yield f"predict {kind}, all", predictions(place, "--min-confidence", 0.6)
        yield f"predict {kind}, cold", predictions(place, "--nodes", "new.csv")
        if edges:
            yield f"predict {kind}, new", predictions(place, "--nodes", "new.csv", "--edges", "new-edges.csv")

    return part


def predictions(place: Place, *options: object) -> Item:
    """Ask the model in the folder ``model``."""
    file = Path("p.csv")
    must("predict", "model", *options, *place.on, "--out", file)
    with file.open(newline="") as lines:
        head = next(csv.reader(lines))
    classes = {"class": "".join(each[0] for each in column(file, "class"))}
    return Item(
        {"columns": head, "rows": len(column(file, "id")), "answered_by": digest_of(column(file, "answered_by"))},
        {"csv": digest(file.read_bytes()), "probability": column(file, "probability")[:3]},
        classes,
    )


def shipped(*targets: str) -> Callable[[Place], Items]:
    """Make the part that writes tables and verdicts from the runs shipped in results/, without training."""

    def part(place: Place) -> Items:
        shutil.copytree(REPOSITORY / "results" / "runs", "results/runs")
        for name in TARGETS:  # verdicts look at other targets too, and cells that are there are merged
            shutil.copy(REPOSITORY / "results" / f"{name}.json", "results")
        must("reproduce", *targets, "--no-run", "--out", "results", "--page", "page.md")
        for target in targets:
            cells = json.loads(Path(f"results/{target}.json").read_text())
            yield f"results {target}", table(cells, ("row", "graph", "measure", "at"))
        rows = json.loads(Path("results/verdicts.json").read_text())
        yield f"verdicts after {targets[0]}", table(rows, ("target", "finding"))
        lines = [line for line in Path("page.md").read_text().splitlines() if line.startswith("|")]
        figures = [re.findall(r"\d[\d.,]*", line) for line in lines]
        yield f"page after {targets[0]}", Item({"rows of tables": len(lines), "numbers": digest_of(figures)})

    return part


TARGETS = ("table1", "table2", "table3", "table4", "fig1", "fig3", "fig4", "fig5", "bounds", "scores", "beyond")


def table(rows: list[dict[str, Any]], place: Sequence[str]) -> Item:
    """Make an item of a file of results; numbers and words of every row have hashes of their own.

    A row is "place numbers words". Text that is renamed changes words, and places where it names one.
    """
    found = {}
    for number, row in enumerate(rows):
        name = digest_of([row[key] for key in place], 6)
        found[f"{number} {', '.join(str(row[key]) for key in place)}"] = (
            f"{name} {digest_of(leaves(row, numbers=True), 6)} {digest_of(leaves(row, numbers=False), 6)}"
        )
    return Item({"rows": len(rows), "cells": found})


def leaves(value: Any, numbers: bool) -> list[Any]:
    """List the numbers (and true, false, null) of a row, in their order; or its keys and words."""
    if isinstance(value, dict):
        own: list[Any] = [] if numbers else sorted(value)
        return own + [leaf for key in value for leaf in leaves(value[key], numbers)]
    if isinstance(value, list):
        return [leaf for each in value for leaf in leaves(each, numbers)]
    if isinstance(value, str):
        return [] if numbers else [value]
    return [value.hex() if isinstance(value, float) else value] if numbers else []


# ---------------------------------------------------------------------------------------------------------------------
# Wrong input: the command, and what its message must name

FIT = ("fit", "--nodes", "nodes.csv", "--edges", "edges.csv", "--label", "kind", "--id", "id", "--out", "m")
PREDICT = ("predict", "model", "--out", "p.csv")


def fit_with(option: str, value: str) -> tuple[str, ...]:
    """Give the command that fits, with another value of one option."""
    given = list(FIT)
    if option in given:
        given[given.index(option) + 1] = value
        return tuple(given)
    return (*given, option, value)


WRONG: list[tuple[tuple[str, ...], tuple[str, ...]]] = [
    (("learn",), ("learn",)),
    (("train",), ("graph",)),
    (("train", "imdb"), ("imdb", "citeseer")),
    (("train", "citeseer", "--sedes", "3"), ("--sedes",)),
    (("train", "citeseer", "--seeds", "0"), ("--seeds", "0")),
    (("train", "citeseer", "--seeds", "many"), ("--seeds",)),
    (("train", "citeseer", "--seeds", "2000000000"), ("--seeds", "2000000000", "100,000")),
    (("train", "citeseer", "--device", "tpu"), ("--device", "tpu")),
    (("train", "citeseer", "--preset", "finest"), ("--preset", "finest", "paper")),
    (("train", "citeseer", "--preset", "nowhere.yaml"), ("nowhere.yaml",)),
    (("train", "citeseer", "--preset", "empty.yaml"), ("empty.yaml", "graph", "family")),
    (("train", "citeseer", "--preset", "unknown-key.yaml"), ("unknown-key.yaml", "bogus")),
    (("train", "citeseer", "--preset", "bad-setting.yaml"), ("bad-setting.yaml", "alfa")),
    (("train", "citeseer", "--preset", "no-yaml.yaml"), ("no-yaml.yaml",)),
    (("train", "citeseer", "--set", "alfa=1"), ("alfa", "alpha")),
    (("train", "citeseer", "--set", "alpha=2"), ("alpha", "2", "0", "1")),
    (("train", "citeseer", "--set", "alpha=nan"), ("alpha", "nan")),
    (("train", "citeseer", "--set", "alpha=lots"), ("alpha", "lots")),
    (("train", "citeseer", "--set", "alpha"), ("--set", "alpha", "KEY=VALUE")),
    (("train", "citeseer", "--set", "epochs=1.5"), ("epochs", "1.5")),
    (("train", "citeseer", "--set", "score=dot"), ("score", "dot", "inner", "cosine")),
    (("train", "citeseer", "--set", "separate_dropout=maybe"), ("separate_dropout", "maybe")),
    (("train", "citeseer", "--set", "epochs=2", "--out", "taken/deeper"), ("--out", "taken")),
    (("train", "cora", "--data", "nowhere"), ("nowhere",)),
    (("train", "cora", "--data", "damaged"), ("ind.cora.",)),
    (("data", "--data", "nowhere"), ("nowhere",)),
    (("inspect", "citeseer", "--k", "-1"), ("k", "-1")),
    (("inspect", "citeseer", "--threshold", "0"), ("threshold", "0")),
    (("inspect", "citeseer", "--threshold", "2"), ("threshold", "2")),
    (("reproduce",), ("TARGET",)),
    (("reproduce", "table9"), ("table9", "table1")),
    (("reproduce", "table1", "--graphs", "cora,imdb"), ("--graphs", "imdb", "citeseer")),
    (("reproduce", "table1", "--methods", "bert"), ("--methods", "bert", "gcnii")),
    (("reproduce", "table1", "--methods", ","), ("--methods",)),
    (("reproduce", "table1", "--seeds", "0"), ("--seeds", "0")),
    (("reproduce", "table2", "--page", "."), ("--page", ".")),
    (("reproduce", "table2", "--no-run", "--out", "broken-results"), ("table2.json",)),
    (("search", "citeseer", "--family", "best"), ("--family", "best", "tuned")),
    (("search", "citeseer", "--trials", "0"), ("--trials", "0")),
    (("search", "citeseer", "--splits", "999999999"), ("--splits", "999999999")),
    (("search", "citeseer", "--seconds", "-1"), ("--seconds", "-1")),
    (("search", "citeseer", "--set", "epochs=5"), ("--set", "epochs=5", "--epochs")),
    (("search", "citeseer", "--hold", "citeseer/finest"), ("--hold", "citeseer/finest")),
    (("search", "citeseer", "--begin-at", "nope"), ("--begin-at", "nope")),
    (("bench", "--suite", "gpu"), ("gpu", "cuda")),
    (("bench", "--json", "."), ("--json", ".")),
    (("fit",), ("--nodes",)),
    (fit_with("--nodes", "nowhere.csv"), ("nowhere.csv",)),
    (fit_with("--nodes", "empty.csv"), ("empty.csv",)),
    (fit_with("--nodes", "twice.csv"), ("twice.csv", "n3")),
    (fit_with("--nodes", "ragged.csv"), ("ragged.csv", "4")),
    (fit_with("--nodes", "unlabelled.csv"), ("unlabelled.csv", "kind", "ash")),
    (fit_with("--nodes", "head-twice.csv"), ("head-twice.csv", "a")),
    (fit_with("--nodes", "infinite.csv"), ("infinite.csv", "'a'", "inf")),
    (fit_with("--edges", "nowhere.csv"), ("nowhere.csv",)),
    (fit_with("--edges", "strangers.csv"), ("strangers.csv", "zz")),
    (fit_with("--edges", "one-column.csv"), ("one-column.csv",)),
    (fit_with("--label", "colr"), ("colr", "nodes.csv", "colour")),
    (fit_with("--id", "name"), ("name", "nodes.csv")),
    (fit_with("--split", "colour"), ("colour", "train", "val", "test")),
    (fit_with("--source", "from"), ("from", "edges.csv", "source")),
    (fit_with("--target", "to"), ("to", "edges.csv", "target")),
    (fit_with("--weight", "heavy"), ("heavy", "edges.csv")),
    (fit_with("--features", "z"), ("z", "nodes.csv")),
    (fit_with("--sep", "::"), ("sep", "::")),
    (fit_with("--budget", "soon"), ("--budget", "soon")),
    (fit_with("--seed", "-1"), ("--seed", "-1")),
    (fit_with("--device", "tpu"), ("--device", "tpu")),
    (fit_with("--out", "taken"), ("--out", "taken")),
    (fit_with("--out", "full"), ("--out", "full")),
    ((*PREDICT,), ("model",)),
    (("predict", "cut", "--out", "p.csv"), ("cut", "model.json")),
    (("predict", "model", "--out", "p.txt"), ("--out", "p.txt", ".csv", ".parquet")),
    ((*PREDICT, "--min-confidence", "2"), ("--min-confidence", "2", "0", "1")),
    ((*PREDICT, "--edges", "edges.csv"), ("--edges", "edges.csv", "--nodes")),
    ((*PREDICT, "--device", "tpu"), ("--device", "tpu")),
]


def write_mistakes() -> None:
    """Write the files that wrong commands name."""
    write_graph(30)
    rows = [row[:7] for row in planted(30, 0)[0]]
    write_csv("twice.csv", HEAD, [*rows, rows[3]])
    write_csv("ragged.csv", HEAD, [*rows[:2], [*rows[2], "more", "and more"], *rows[3:]])
    write_csv("unlabelled.csv", HEAD, [[row[0], "ash", *row[2:]] for row in rows])
    write_csv("head-twice.csv", [*HEAD[:3], "a", *HEAD[4:]], rows)
    write_csv("infinite.csv", HEAD, [*rows[:2], [*rows[2][:2], "inf", *rows[2][3:]], *rows[3:]])
    write_csv("strangers.csv", ["source", "target"], [["n1", "n2"], ["n1", "zz"]])
    write_csv("one-column.csv", ["source"], [["n1"], ["n2"]])
    Path("empty.csv").write_text("")
    Path("taken").write_text("precious")
    text = "graph: citeseer\nfamily: tuned\nprovenance: p\nsaw_test: false\n"
    Path("unknown-key.yaml").write_text(f"{text}settings: {{}}\nbogus: 1\n")
    Path("bad-setting.yaml").write_text(f"{text}settings: {{alfa: 1}}\n")
    Path("empty.yaml").write_text("")
    Path("no-yaml.yaml").write_text("a: [")
    for folder, file, content in (
        ("full", "thesis.tex", "precious"), ("cut", "model.json", '{"format": 1, "cla'),
        ("broken-results", "table2.json", "[{"), ("damaged/Cora/raw", "ind.cora.x", "no pickle"),
    ):  # fmt: skip
        Path(folder).mkdir(parents=True)
        Path(folder, file).write_text(content)


def mistakes(place: Place) -> Items:
    """Give wrong input to every command, and see which names, values and lines its message tells."""
    write_mistakes()
    before = {path: path.stat().st_mtime_ns for path in Path().rglob("*") if path.is_file()}
    for command, tokens in WRONG:
        answer = ask(*command)
        named = [token for token in tokens if token in answer.err]
        always: dict[str, Any] = {"code": answer.code, "named": named, "traceback": "Traceback" in answer.err}
        if len(named) < len(tokens) or answer.code != 2:
            always["note"] = f"not as expected: {answer.err[-300:]}"
        yield f"wrong: gpnn {' '.join(command)}", Item(always | {"stdout": answer.out != ""})
    after = {path: path.stat().st_mtime_ns for path in Path().rglob("*") if path.is_file()}
    yield (
        "wrong: files left",
        Item({"changed": sorted(str(path) for path in {*before, *after} if before.get(path) != after.get(path))}),
    )


PARTS: dict[str, Callable[[Place], Items]] = {
    "shipped": shipped(*TARGETS),
    "fit": fit("own split", "--split", "part"),
    "fit-held-out": fit("held out, no edges"),
    **{f"baseline-{name}": baseline(name) for name in BASELINES},
    **{f"train-{name}": preset(name) for name in reversed(PRESETS)},
    "join": joins,
    "table2": look("table2"),
    "search": search,
    "smoothness": smoothness,
    "inspect": inspections,
    "wrong": mistakes,
}
"""In the order in which workers take them, the longest first."""


# ---------------------------------------------------------------------------------------------------------------------
# Workers: each takes the next part that none has taken


def work(shared: Path, device: str, root: str | None, names: Sequence[str]) -> None:
    """Do parts until none is left; what a part found lies in the shared folder as PART.json."""
    for name in names:
        try:
            (shared / f"{name}.taken").touch(exist_ok=False)
        except FileExistsError:
            continue
        folder = shared / name
        folder.mkdir()
        os.chdir(folder)
        start, found, failure = time.monotonic(), {}, ""
        try:
            found = {item: content.plain() for item, content in PARTS[name](Place(folder, device, root))}
        except Exception as error:
            failure = f"{type(error).__name__}: {error}"
        seconds = time.monotonic() - start
        content = {"items": found, "seconds": seconds, "failure": failure, "machine": machine(device)}
        (shared / f"{name}.json").write_text(json.dumps(content))
        os.chdir(shared)
        shutil.rmtree(folder)


def machine(device: str) -> dict[str, Any]:
    """Say what decides the bits: processor, versions, threads, device."""
    import torch

    name = platform.machine()
    with contextlib.suppress(OSError, StopIteration), open("/proc/cpuinfo") as lines:
        name = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    versions = {}
    for package in ("numpy", "scipy", "numba", "scikit-learn", "optuna"):
        with contextlib.suppress(metadata.PackageNotFoundError):
            versions[package] = metadata.version(package)
    return {
        "processor": name,
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "gpu": torch.cuda.get_device_name() if device == "cuda" else None,
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
    } | versions


def measure(device: str, root: str | None, names: Sequence[str]) -> dict[str, Any]:
    """Run the parts in two workers and gather what they found."""
    count = str(THREADS)
    fixed = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), count)
    path = os.pathsep.join(filter(None, (str(REPOSITORY), os.environ.get("PYTHONPATH"))))
    fixed |= {"PYTHONPATH": path, "PYTHONHASHSEED": "0", "COLUMNS": "80", "MPLBACKEND": "agg"}
    environment = {key: value for key, value in os.environ.items() if key != "GRAPHPARTNER_DATA"} | fixed
    with tempfile.TemporaryDirectory(prefix="golden-") as made:
        shared = Path(made)
        command = [sys.executable, str(Path(__file__).resolve()), "work", made, "--device", device]
        command += ["--data", root] if root else []
        command += ["--only", *names]
        log = (shared / "log").open("w")
        workers = [subprocess.Popen(command, env=environment, stdout=log, stderr=log) for _ in range(WORKERS)]
        told: set[str] = set()
        while any(worker.poll() is None for worker in workers):
            time.sleep(0.3)
            told |= tell(shared, names, told)
        tell(shared, names, told)
        log.close()
        results = {name: json.loads(file.read_text()) for name in names if (file := shared / f"{name}.json").exists()}
        for name in names:
            if name not in results:
                raise SystemExit(f"{name}: a worker ended before its time\n{(shared / 'log').read_text()[-2000:]}")
    failures = {name: result["failure"] for name, result in results.items() if result["failure"]}
    items = {item: content for result in results.values() for item, content in result["items"].items()}
    return {"machine": next(iter(results.values()))["machine"], "failures": failures, "items": items}


def tell(shared: Path, names: Sequence[str], told: set[str]) -> set[str]:
    """Say on stderr which parts have ended."""
    ended = {name for name in names if name not in told and (shared / f"{name}.json").exists()}
    for name in ended:
        with contextlib.suppress(ValueError):  # half written
            content = json.loads((shared / f"{name}.json").read_text())
            print(f"  {content['seconds']:6.1f} s  {name} {content['failure']}", file=sys.stderr, flush=True)
    return ended


# ---------------------------------------------------------------------------------------------------------------------
# Comparison


def packed(items: dict[str, Any]) -> dict[str, Any]:
    """Leave out the names of cells, which would make the record large; their order tells them."""
    found = {}
    for name, item in items.items():
        cells = item.get("always", {}).get("cells")
        found[name] = item if cells is None else item | {"always": item["always"] | {"cells": list(cells.values())}}
    return found


def differences(then: dict[str, Any], now: dict[str, Any], strict: bool) -> list[str]:
    """Say what differs between an item of the record and the same item now."""
    if "skipped" in now or "skipped" in then:
        return []
    found = []
    for kind in ("always", "bits", "classes"):
        if kind == "bits" and not strict:
            continue
        old, new = then.get(kind, {}), now.get(kind, {})
        for key in sorted({*old, *new}):
            if key == "cells":
                found += cells_that_differ(old.get(key, []), new.get(key, {}))
            elif key == "note":
                continue
            elif key not in old or key not in new:
                found.append(f"{key} is {'new' if key not in old else 'gone'}")
            elif kind == "classes" and not strict:
                if said := apart(old[key], new[key]):
                    found.append(f"{key}: {said}")
            elif old[key] != new[key]:
                found.append(f"{key}: {short(old[key], new[key])}")
    return found


def cells_that_differ(then: list[str], now: dict[str, str]) -> list[str]:
    """Say of which cells the place, the numbers or the words differ."""
    found = []
    for old, (label, new) in zip(then, now.items(), strict=False):
        words = ("place", "numbers", "words")
        parts = [word for word, one, other in zip(words, old.split(), new.split(), strict=True) if one != other]
        if parts:
            found.append(f"{' and '.join(parts)} of cell {label}")
    return found


def apart(then: Any, now: Any) -> str:
    """Say how far classes or accuracies are apart, if it is too far."""
    if isinstance(then, str):
        if len(then) != len(now):
            return f"{len(then)} nodes, now {len(now)}"
        count = sum(one != other for one, other in zip(then, now, strict=True))
        return f"{count} of {len(then)} nodes" if count > LOOSE_SHARE * len(then) + 1 else ""
    pairs = zip(then, now, strict=True) if isinstance(then, list) else [(then, now)]
    return f"{then}, now {now}" if any(abs(one - other) > LOOSE_POINTS for one, other in pairs) else ""


def short(then: Any, now: Any) -> str:
    """Show two values, or what differs within them."""
    if isinstance(then, str) and isinstance(now, str) and len(then) == len(now) > 60:
        return f"{sum(one != other for one, other in zip(then, now, strict=True))} of {len(then)} nodes"
    if isinstance(then, dict) and isinstance(now, dict):
        keys = [key for key in sorted({*then, *now}) if then.get(key) != now.get(key)]
        return "; ".join(f"{key}: {short(then.get(key), now.get(key))}" for key in keys[:SHOWN])
    return f"{str(then)[:100]}, now {str(now)[:100]}"


def compare(record: dict[str, Any], now: dict[str, Any], strict: bool, whole: bool) -> int:
    """Print one line an item, and give back how many differ."""
    wrong = 0
    names = list(record["items"]) + [name for name in now["items"] if name not in record["items"]]
    for name in names:
        if name not in now["items"]:
            if whole:
                wrong += 1
                print(f"GONE     {name}")
            continue
        if name not in record["items"]:
            wrong += 1
            print(f"NEW      {name}")
            continue
        then, found = record["items"][name], now["items"][name]
        if "skipped" in then or "skipped" in found:
            print(f"skipped  {name}: {found.get('skipped') or 'the record has none'}")
            continue
        if said := differences(then, found, strict):
            wrong += 1
            more = f"; and {len(said) - SHOWN} more" if len(said) > SHOWN else ""
            print(f"DIFFERS  {name}: {'; '.join(said[:SHOWN])}{more}")
        else:
            print(f"ok       {name}")
    for name, failure in now["failures"].items():
        wrong += 1
        print(f"FAILED   {name}: {failure}")
    return wrong


def main() -> int:
    """Record, check, or, as a worker of either, do parts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("record", "check", "work"))
    parser.add_argument("shared", nargs="?", help="for work, which only this program calls")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--data", help="data root; default: GRAPHPARTNER_DATA, else ../shared/data")
    parser.add_argument("--only", nargs="*", choices=PARTS, metavar="PART", help=", ".join(PARTS))
    given = parser.parse_args()
    names = given.only or list(PARTS)
    if given.what == "work":
        work(Path(given.shared), given.device, given.data, names)
        return 0
    beside = REPOSITORY.parent / "shared" / "data"
    root = given.data or os.environ.get("GRAPHPARTNER_DATA") or (str(beside) if beside.is_dir() else None)
    file = FOLDER / f"{given.device}.json"
    if given.what == "check" and not file.exists():
        raise SystemExit(f"{file.name}: is not there; record it first")
    start = time.monotonic()
    now = measure(given.device, str(Path(root).resolve()) if root else None, names)
    seconds = time.monotonic() - start
    if given.what == "record":
        for name, failure in now["failures"].items():
            print(f"FAILED   {name}: {failure}")
        if now["failures"]:
            return 1
        kept = json.loads(file.read_text())["items"] if given.only and file.exists() else {}
        now["items"] = kept | packed(now["items"])
        now.pop("failures")
        FOLDER.mkdir(exist_ok=True)
        file.write_text(json.dumps(now, indent=0, ensure_ascii=False) + "\n")
        for name, item in now["items"].items():
            for word in ("skipped", "note"):
                if said := item.get(word) or item.get("always", {}).get(word):
                    print(f"{word}: {name}: {said}")
        print(f"{len(now['items'])} items, {file.stat().st_size / 1000:.0f} kB, {seconds:.0f} s")
        return 0
    record = json.loads(file.read_text())
    changed = {
        key: f"{value}, now {now['machine'].get(key)}"
        for key, value in record["machine"].items()
        if value != now["machine"].get(key)
    }
    if changed:
        print(f"Recorded elsewhere ({changed}): bits are not promised and not compared, classes are, loosely.")
    elif given.device == "cuda":
        print("On a GPU bits are not promised and not compared; classes are, loosely.")
    wrong = compare(record, now, strict=given.device == "cpu" and not changed, whole=not given.only)
    print(f"{len(now['items'])} items, {wrong} differ, {seconds:.0f} s")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
