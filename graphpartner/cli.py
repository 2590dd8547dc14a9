"""The command-line door: ``gpnn train``, ``gpnn data``, ``gpnn inspect``."""

import dataclasses
import json
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from torch_geometric.data import Data

from graphpartner.errors import InputError

app = typer.Typer(
    help="Graph Partner Neural Networks: classify the nodes of a graph from a handful of labels.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

GraphArgument = Annotated[
    str, typer.Argument(help="citeseer, cora, pubmed, coauthor-cs, amazon-computers or amazon-photo")
]
DataOption = Annotated[
    str | None, typer.Option("--data", help="folder with raw files in PyTorch Geometric's layout", metavar="ROOT")
]
SetOption = Annotated[
    list[str] | None, typer.Option("--set", help="change a setting, e.g. --set alpha=0.3", metavar="KEY=VALUE")
]
JsonOption = Annotated[bool, typer.Option("--json", help="print one JSON object instead of text")]


@app.command()
def train(
    graph: GraphArgument,
    preset: Annotated[str, typer.Option(help="paper, tuned or best")] = "best",
    seeds: Annotated[int, typer.Option(min=1, help="number of runs, with seeds 0, 1, …")] = 10,
    changes: SetOption = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda")] = "auto",
    out: Annotated[Path | None, typer.Option(help="folder for model and predictions", metavar="DIR")] = None,
    root: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Train GPNN on a graph and print its test accuracy beside the published one."""
    from graphpartner.graph.catalogue import find_entry
    from graphpartner.report.terminal import duration, notes, progress, results
    from graphpartner.train.presets import preset as find_preset
    from graphpartner.train.trainer import pick_device
    from graphpartner.train.trainer import train as train_runs

    start = time.monotonic()
    entry = find_entry(graph)
    chosen = find_preset(f"{graph}/{preset}")
    settings = chosen.settings.replace(**_parsed(changes))
    place = pick_device(device)
    folder = _output_folder(out or Path("runs") / graph)
    data = _with_split(graph, root, range(seeds))
    name = f"{chosen.family}, changed" if changes else chosen.family
    notes().print(f"GPNN on {entry.title}: preset {name}, {seeds} seeds, {place}")
    if chosen.saw_test:
        notes().print(
            "[yellow]These settings were picked with a look at test accuracy[/]: the result shows what the method can "
            "do, not what a fair selection finds."
        )
    with progress("training") as show:
        runs = train_runs(data, settings, range(seeds), place, progress=show)
    test, val = (100 * runs.accuracy(mask) for mask in (data.test_mask, data.val_mask))
    seconds = time.monotonic() - start
    published, published_sd = chosen.published
    about: dict[str, Any] = {
        "graph": graph,
        "preset": name,
        "provenance": chosen.provenance,
        "saw_test": chosen.saw_test,
        "device": str(place),
        "test_accuracy": test.tolist(),
        "test_mean": float(test.mean()),
        "test_sd": float(test.std()) if seeds > 1 else None,
        "val_mean": float(val.mean()),
        "published_mean": published,
        "published_sd": published_sd,
        "seconds": seconds,
        "versions": _versions(),
    }
    files = [str(path) for path in runs.save(folder, about)]
    if as_json:
        print(json.dumps(about | {"files": files}))
        return
    table = Table(box=None, show_header=False, pad_edge=False)
    spread = f" ± {about['test_sd']:.1f}" if seeds > 1 else ""
    table.add_row("test accuracy", f"[bold]{about['test_mean']:.1f}{spread} %[/]   mean ± sd over {seeds} seeds")
    table.add_row("published", f"{published} ± {published_sd} %   Table 1 of the paper")
    table.add_row("validation accuracy", f"{about['val_mean']:.1f} %")
    table.add_row("time", f"{duration(seconds)}, {int(runs.epochs.sum()):,} epochs in all")
    table.add_row("predictions", str(folder / "predictions.csv"))
    table.add_row("model", str(folder / "weights.safetensors"))
    results().print(table)


@app.command()
def data(root: DataOption = None, as_json: JsonOption = False) -> None:
    """List the graphs: statistics, source, licence, and whether each is here."""
    from graphpartner.graph.catalogue import CATALOGUE
    from graphpartner.graph.datasets import locate
    from graphpartner.report.terminal import results

    found = [(entry, locate(name, root)) for name, entry in CATALOGUE.items()]
    if as_json:
        rows = [
            dataclasses.asdict(entry) | {"is_here": location.is_here, "location": str(location)}
            for entry, location in found
        ]
        print(json.dumps(rows))
        return
    table = Table("graph", *("nodes", "edges", "features", "classes", "isolated"), "licence", "here", box=None)
    for column in table.columns[1:6]:
        column.justify = "right"
    for entry, location in found:
        counts = (entry.num_nodes, entry.num_edges, entry.num_features, entry.num_classes, entry.num_isolated)
        here = {"root": "yes", "cache": "in the cache", "download": "no, can be downloaded"}.get(location.kind)
        table.add_row(entry.name, *(f"{count:,}" for count in counts), entry.licence, here or location.kind)
    results().print(table)
    for source in dict.fromkeys(entry.source for entry, _ in found):
        names = ", ".join(entry.name for entry, _ in found if entry.source == source)
        results().print(f"\n{names}\n  published at {source}")
    for entry, location in found:
        if location.kind == "missing":
            results().print(f"\n{entry.name}\n  {location.path} is missing from the data root")


@app.command()
def inspect(
    graph: GraphArgument,
    k: Annotated[int, typer.Option(help="hops of the enhancement")] = 3,
    threshold: Annotated[float, typer.Option(help="least cosine of the enhancement")] = 0.4,
    root: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Look at a graph before training: statistics, the cost of its enhancement, advice from training labels."""
    from graphpartner.enhance.memory import readable
    from graphpartner.report.inspection import inspect_graph
    from graphpartner.report.terminal import duration, results

    loaded = _with_split(graph, root, [0])
    mask = loaded.train_mask if loaded.train_mask.dim() == 1 else loaded.train_mask[0]
    found = inspect_graph(loaded, mask, k, threshold)
    if as_json:
        print(json.dumps(found.asdict()))
        return
    counts, plan = found.statistics, found.plan
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_row("nodes", f"{counts.num_nodes:,}, {counts.num_isolated:,} without an edge")
    table.add_row("edges", f"{counts.num_edges:,} undirected")
    density = f"{counts.feature_density:.2%} of them not zero, {counts.num_empty:,} nodes with none"
    table.add_row("features", f"{counts.num_features:,}, {density}")
    table.add_row("classes", f"{counts.num_classes}, {counts.num_unlabelled:,} nodes without a label")
    homophily = "no edge joins two training nodes" if found.homophily is None else f"{found.homophily:.0%}"
    table.add_row("homophily", f"{homophily} (training labels only)")
    reach = f"{plan.pairs:,.0f} ± {plan.pairs_error:,.0f} pairs within {k} hops"
    table.add_row("enhancement", f"{reach}, {plan.kept:,.0f} ± {plan.kept_error:,.0f} of them kept at {threshold}")
    table.add_row("  result", f"{readable(plan.output_bytes)}, working memory {readable(plan.working_bytes)}")
    table.add_row("  time", f"about {duration(plan.seconds)} by the {plan.kernel} kernel: {plan.choice.why}")
    results().print(table)
    for sentence in found.advice:
        results().print(f"• {sentence}")


def _parsed(changes: list[str] | None) -> dict[str, Any]:
    from graphpartner.train.settings import parse

    parsed = {}
    for change in changes or []:
        name, sign, text = change.partition("=")
        if not sign:
            raise InputError(f"--set {change}: must be KEY=VALUE, e.g. --set alpha=0.3")
        parsed[name] = parse(name, text)
    return parsed


def _output_folder(folder: Path) -> Path:
    """The folder, made if need be: better to fail before training than after."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"--out {folder}: cannot be made a folder ({error.strerror}); give another") from None
    return folder


def _with_split(graph: str, root: str | None, seeds: Any) -> Data:
    """The graph with its public split, or with one random split for each seed where it has none."""
    from graphpartner.graph.datasets import load_dataset
    from graphpartner.graph.splits import per_class_splits

    loaded = load_dataset(graph, root)
    if loaded.get("train_mask") is None:
        split = per_class_splits(loaded.y, seeds)
        loaded.train_mask, loaded.val_mask, loaded.test_mask = split
    return loaded


def _versions() -> dict[str, str]:
    import torch
    import torch_geometric

    from graphpartner import __version__

    return {
        "graphpartner": __version__,
        "torch": torch.__version__,
        "torch_geometric": torch_geometric.__version__,
        "python": sys.version.split()[0],
    }


def main() -> None:
    """Run the command; wrong input ends with one sentence and exit code 2."""
    try:
        app()
    except InputError as error:
        print(f"gpnn: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("gpnn: stopped", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
