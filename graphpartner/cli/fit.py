"""``gpnn fit``: two files in, a model and an honest estimate of its accuracy out."""

import json
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import RenderableType
from rich.table import Table

from graphpartner.cli.options import DeviceOption, JsonOption, SepOption, output_folder, versions, writing_to
from graphpartner.report.terminal import bullets, facts
from graphpartner.system.errors import InputError
from graphpartner.system.progress import format_duration

AFTER_TRAINING = 0.08  # share of the budget reserved for the work after training


def fit(
    nodes: Annotated[Path, typer.Option(help="one row per node: an id, a label, features", metavar="FILE")],
    label: Annotated[str, typer.Option(help="the column with the class; empty where it is unknown", metavar="COLUMN")],
    out: Annotated[Path, typer.Option(help="folder for the model", metavar="DIR")],
    edges: Annotated[Path | None, typer.Option(help="one row per edge: two ids", metavar="FILE")] = None,
    budget: Annotated[str, typer.Option(help="time limit, e.g. 90s, 2m, 1h", metavar="TIME")] = "2m",
    id_column: Annotated[str | None, typer.Option("--id", help="the column with the id", metavar="COLUMN")] = None,
    split: Annotated[
        str | None, typer.Option(help="a column of train, val or test; else drawn by --seed", metavar="COLUMN")
    ] = None,
    source: Annotated[str | None, typer.Option(help="the edges' column with the source id", metavar="COLUMN")] = None,
    target: Annotated[str | None, typer.Option(help="the edges' column with the target id", metavar="COLUMN")] = None,
    weight: Annotated[str | None, typer.Option(help="the edges' column with the weight", metavar="COLUMN")] = None,
    features: Annotated[
        list[str] | None, typer.Option(help="a feature column; else all other columns", metavar="COLUMN")
    ] = None,
    sep: SepOption = None,
    seed: Annotated[int, typer.Option(help="of split and training")] = 0,
    device: DeviceOption = "auto",
    as_json: JsonOption = False,
) -> None:
    """Fit a model to your own graph: two files in, a model and an honest estimate of its accuracy out."""
    begun = time.monotonic() - time.process_time()  # starting Python and importing count too
    from graphpartner.fitting.clock import parse_budget
    from graphpartner.fitting.fitter import Fitter
    from graphpartner.fitting.model_folder import is_replaceable, save_model
    from graphpartner.report.terminal import notes, progress, show
    from graphpartner.tables.read_graph import read_graph

    seconds = parse_budget(budget)
    if seed < 0:
        raise InputError(f"--seed {seed}: must be 0 or more")
    if not is_replaceable(out):
        raise InputError(f"--out {out}: exists and holds no model; give another folder, or empty it")
    output_folder(out.resolve().parent)  # where the model is written before it is moved to its place
    with progress("reading") as on_progress:
        graph = read_graph(
            nodes, edges, label=label, id=id_column, split=split,
            source=source, target=target, weight=weight, features=features or None, sep=sep, progress=on_progress,
        )  # fmt: skip
    notes().print(f"{graph.data.num_nodes:,} nodes, {graph.data.edge_index.shape[1] // 2:,} edges, "
                  f"{len(graph.classes)} classes, {int((graph.data.y >= 0).sum()):,} labelled nodes")  # fmt: skip
    for sentence in graph.notes:
        notes().print(sentence, markup=False)
    left = seconds * (1 - AFTER_TRAINING) - (time.monotonic() - begun)
    with progress("fitting") as on_progress:
        fitter = Fitter(graph.data, list(graph.classes), max(left, seconds / 2), seed, device, progress=on_progress)
        with _stopped_by_interrupt(fitter.clock.stop):
            model = fitter.fit(graph.ids.tolist(), graph.encoder)
    model.card |= {"columns": graph.columns, "edge_unit": graph.edge_unit}
    with writing_to(out):
        save_model(model, out, {"seed": seed, "budget": seconds, "versions": versions()})
    if as_json:
        print(json.dumps(model.card | {"model": str(out)}))
        return
    show(*_summary(model.card, out))


@contextmanager
def _stopped_by_interrupt(stop: Callable[[], None]) -> Iterator[None]:
    """Let the first Ctrl-C stop the fit, which then returns its best model; the second one raises as usual."""

    def on_interrupt(number: int, frame: Any) -> None:
        stop()
        signal.signal(signal.SIGINT, before)

    before = signal.signal(signal.SIGINT, on_interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _summary(card: dict[str, Any], folder: Path) -> list[RenderableType]:
    """Return accuracy with its interval, reference models, scores per class, and the decisions of the fit."""
    scores = card["scores"]
    parts: list[RenderableType] = []
    if scores is None:
        parts.append("There is no estimate: no labelled node was held out, or the fit was stopped before it.")
    else:
        interval = f"{scores['low']:.1%} to {scores['high']:.1%} with 95 % confidence"
        rows = [
            ("accuracy", f"[bold]{scores['accuracy']:.1%}[/]   {interval}"),
            ("measured on", f"{scores['nodes']:,} nodes, {scores['how']}"),
            *((f"  {name}", f"{accuracy:.1%}") for name, accuracy in scores["references"].items()),
            ("calibration error", f"{scores['ece']:.1%}   confidence against accuracy, 10 bins"),
        ]
        parts += [facts(rows), "", _class_table(scores["classes"]), ""]
    parts.append(bullets(card["decisions"]))
    if card["interrupted"]:
        parts.append("[yellow]The fit was stopped early[/]: this is the best model until then.")
    return [*parts, "", facts([("time", format_duration(card["seconds"])), ("model", str(folder))])]


def _class_table(classes: list[dict[str, Any]]) -> Table:
    """Return precision, recall and F1, one row per class."""
    table = Table("class", *("precision", "recall", "F1", "nodes"), box=None, pad_edge=False)
    for column in table.columns[1:]:
        column.justify = "right"
    for each in classes:
        shares = (f"{each[name]:.1%}" for name in ("precision", "recall", "f1"))
        table.add_row(str(each["name"]), *shares, f"{each['support']:,}")
    return table
