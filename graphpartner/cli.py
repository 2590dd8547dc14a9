"""The command-line door: ``gpnn train``, ``gpnn data``, ``gpnn inspect``, ``gpnn bench``."""

import dataclasses
import json
import os
import sys
import time
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from torch_geometric.data import Data

from graphpartner.errors import InputError

# Typer brings its own Click since 0.29; before that its errors were Click's.
UsageError: type[Exception] = getattr(typer, "TyperException", None) or import_module("click").ClickException

if TYPE_CHECKING:
    from graphpartner.train.runs import Runs

app = typer.Typer(
    help="Graph Partner Neural Networks: classify the nodes of a graph from a handful of labels.",
    add_completion=False,
    pretty_exceptions_enable=False,
)

STOPPED = 130  # the exit code of a command that was interrupted

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


@app.callback(invoke_without_command=True)
def no_command(context: typer.Context) -> None:
    """Show the help where no command is given."""
    if context.invoked_subcommand is None:
        print(context.get_help())


@app.command()
def train(
    graph: GraphArgument,
    preset: Annotated[str, typer.Option(help="paper, tuned or best")] = "best",
    seeds: Annotated[int, typer.Option(help="number of runs, with seeds 0, 1, …")] = 10,
    changes: SetOption = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda")] = "auto",
    out: Annotated[
        Path | None, typer.Option(help="folder for model and predictions, else runs/GRAPH", metavar="DIR")
    ] = None,
    root: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Train GPNN on a graph and print its test accuracy beside the published one."""
    from graphpartner.graph.catalogue import find_entry
    from graphpartner.report.terminal import duration, facts, notes, progress, show
    from graphpartner.train.presets import FAMILIES
    from graphpartner.train.presets import preset as find_preset
    from graphpartner.train.trainer import pick_device
    from graphpartner.train.trainer import train as train_runs

    start = time.monotonic()
    entry = find_entry(graph)
    _check_choice("--preset", preset, FAMILIES)
    _check_choice("--device", device, ("auto", "cpu", "cuda"))
    if seeds < 1:
        raise InputError(f"--seeds {seeds}: must be 1 or more")
    chosen = find_preset(f"{graph}/{preset}")
    settings = chosen.settings.replace(**_parsed(changes))
    place = pick_device(device)
    data = _with_split(graph, root, range(seeds))
    folder = _output_folder(out or Path("runs") / graph)
    name = f"{chosen.family}, changed" if changes else chosen.family
    count = f"{seeds} seeds" if seeds > 1 else "1 seed"
    notes().print(f"GPNN on {entry.title}: preset {name}, {count}, {place}")
    if chosen.saw_test:
        notes().print(
            "[yellow]These settings were picked with a look at test accuracy[/]: the result shows what the method can "
            "do, not what a fair selection finds."
        )
    with progress("training") as tell:
        runs = train_runs(data, settings, range(seeds), place, progress=tell)
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
    files = _saved(runs, folder, about)
    if as_json:
        print(json.dumps(about | {"files": files}))
        return
    spread = f" ± {about['test_sd']:.1f} %[/]   mean ± sd over {count}" if seeds > 1 else " %[/]   1 seed"
    show(
        facts(
            [
                ("test accuracy", f"[bold]{about['test_mean']:.1f}{spread}"),
                ("published", f"{published} ± {published_sd} %   Table 1 of the paper"),
                ("validation accuracy", f"{about['val_mean']:.1f} %"),
                ("time", f"{duration(seconds)}, {int(runs.epochs.sum()):,} epochs in all"),
                ("predictions", str(folder / "predictions.csv")),
                ("model", str(folder / "weights.safetensors")),
            ]
        )
    )


@app.command()
def data(root: DataOption = None, as_json: JsonOption = False) -> None:
    """List the graphs: statistics, source, licence, and whether each is here."""
    from graphpartner.graph.catalogue import CATALOGUE
    from graphpartner.graph.datasets import locate
    from graphpartner.report.catalogue import catalogue_page
    from graphpartner.report.terminal import show

    found = [(entry, locate(name, root)) for name, entry in CATALOGUE.items()]
    if as_json:
        rows = [
            dataclasses.asdict(entry) | {"is_here": location.is_here, "location": str(location)}
            for entry, location in found
        ]
        print(json.dumps(rows))
        return
    for part in catalogue_page(found):
        show(part)


@app.command()
def inspect(
    graph: GraphArgument,
    k: Annotated[int, typer.Option(help="hops of the enhancement")] = 3,
    threshold: Annotated[float, typer.Option(help="least cosine of the enhancement")] = 0.4,
    root: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Look at a graph before training: statistics, the cost of its enhancement, advice from training labels."""
    from graphpartner.report.inspection import inspect_graph
    from graphpartner.report.terminal import bullets, facts, show

    loaded = _with_split(graph, root, [0])
    mask = loaded.train_mask if loaded.train_mask.dim() == 1 else loaded.train_mask[0]
    found = inspect_graph(loaded, mask, k, threshold)
    if as_json:
        print(json.dumps(found.asdict()))
        return
    show(facts(found.facts()), bullets(found.advice))


@app.command()
def bench(
    suite: Annotated[str, typer.Option(help="cpu, cuda, join or scale")] = "cpu",
    file: Annotated[Path | None, typer.Option("--json", help="write the results there", metavar="FILE")] = None,
    root: DataOption = None,
    page: Annotated[
        Path | None, typer.Option(help="also write a Markdown page from all bench-*.json beside FILE", metavar="FILE")
    ] = None,
) -> None:
    """Measure how fast it is: ratios against plain peers in the same run, bars, floors."""
    from graphpartner.bench.suites import machine, run_suite
    from graphpartner.graph.packed import write_atomically
    from graphpartner.report.performance import line, write_page
    from graphpartner.report.terminal import progress, show

    folder = _output_folder(file.parent) if file else None
    with progress(f"measuring {suite}") as tell:
        measured = run_suite(suite, root, tell=lambda row: show(line(row)), progress=tell)
    content = {"suite": suite, "machine": machine(), "results": [row.asdict() for row in measured]}
    if file:
        write_atomically(file, json.dumps(content, indent=1).encode())
    if page and folder:
        write_page(folder, page)


def _parsed(changes: list[str] | None) -> dict[str, Any]:
    from graphpartner.train.settings import parse

    parsed = {}
    for change in changes or []:
        name, sign, text = change.partition("=")
        if not sign:
            raise InputError(f"--set {change}: must be KEY=VALUE, e.g. --set alpha=0.3")
        parsed[name] = parse(name, text)
    return parsed


def _check_choice(option: str, value: str, choices: Sequence[str]) -> None:
    if value not in choices:
        raise InputError(f"{option} {value}: must be {', '.join(choices[:-1])} or {choices[-1]}")


def _output_folder(folder: Path) -> Path:
    """The folder, made if need be: better to fail before training than after."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"--out {folder}: cannot be made a folder ({error.strerror}); give another") from None
    if not os.access(folder, os.W_OK):
        raise InputError(f"--out {folder}: must not be written to; give another")
    return folder


def _saved(runs: "Runs", folder: Path, about: dict[str, Any]) -> list[str]:
    try:
        return [str(path) for path in runs.save(folder, about)]
    except OSError as error:
        raise InputError(f"--out {folder}: cannot be written ({error.strerror}); give another") from None


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
        if app(prog_name="gpnn", standalone_mode=False) == STOPPED:  # Typer's answer to Ctrl-C
            _end("stopped", STOPPED)
    except InputError as error:
        _end(str(error), 2)
    except UsageError as error:  # an unknown command or option, a value that is no number
        context = getattr(error, "ctx", None)
        message = error.format_message().rstrip(".") if hasattr(error, "format_message") else str(error)
        _end(f"{message}; see {context.command_path if context else 'gpnn'} --help", 2)
    except (KeyboardInterrupt, typer.Abort):
        _end("stopped", STOPPED)


def _end(message: str, code: int) -> NoReturn:
    print(f"gpnn: {' '.join(message.split())}", file=sys.stderr)
    sys.exit(code)


if __name__ == "__main__":
    main()
