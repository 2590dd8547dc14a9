"""``gpnn fit``.

What a fit tells a person: how good, compared with what, and why so.
"""

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

from graphpartner.cli.options import JsonOption, SepOption, check_choice, output_folder, versions
from graphpartner.report.terminal import bullets, facts
from graphpartner.system.errors import InputError
from graphpartner.system.progress import format_duration

LAST = 0.08  # share of the budget that is kept for what comes after training


def fit(
    nodes: Annotated[Path, typer.Option(help="one row a node: an id, a label, features", metavar="FILE")],
    label: Annotated[str, typer.Option(help="the column with the class; empty where it is unknown", metavar="COLUMN")],
    out: Annotated[Path, typer.Option(help="folder for the model", metavar="DIR")],
    edges: Annotated[Path | None, typer.Option(help="one row an edge: two ids", metavar="FILE")] = None,
    budget: Annotated[str, typer.Option(help="how long it may take, e.g. 90s, 2m, 1h", metavar="TIME")] = "2m",
    id_column: Annotated[str | None, typer.Option("--id", help="the column with the id", metavar="COLUMN")] = None,
    split: Annotated[
        str | None, typer.Option(help="a column that says train, val or test; else drawn by --seed", metavar="COLUMN")
    ] = None,
    source: Annotated[str | None, typer.Option(help="the edges' column with the one end", metavar="COLUMN")] = None,
    target: Annotated[str | None, typer.Option(help="… with the other end", metavar="COLUMN")] = None,
    weight: Annotated[str | None, typer.Option(help="… with a weight", metavar="COLUMN")] = None,
    features: Annotated[
        list[str] | None, typer.Option(help="a feature column; else all that are left", metavar="COLUMN")
    ] = None,
    sep: SepOption = None,
    seed: Annotated[int, typer.Option(help="of split and training")] = 0,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda")] = "auto",
    as_json: JsonOption = False,
) -> None:
    """Fit a model to your own graph: two files in, a model and an honest estimate of how good it is out."""
    begun = time.monotonic() - time.process_time()  # starting Python and importing count too
    from graphpartner.fitting.clock import parse_budget
    from graphpartner.fitting.fitter import Fitter
    from graphpartner.fitting.model_folder import is_replaceable, save_model
    from graphpartner.report.terminal import notes, progress, show
    from graphpartner.tables.read_graph import read_graph

    seconds = parse_budget(budget)
    check_choice("--device", device, ("auto", "cpu", "cuda"))
    if seed < 0:
        raise InputError(f"--seed {seed}: must be 0 or more")
    if not is_replaceable(out):
        raise InputError(f"--out {out}: is there and holds no model; give another folder, or empty it")
    output_folder(out.resolve().parent)  # the model is written beside its place first
    with progress("reading") as tell:
        graph = read_graph(
            nodes, edges, label=label, id=id_column, split=split,
            source=source, target=target, weight=weight, features=features or None, sep=sep, progress=tell,
        )  # fmt: skip
    notes().print(f"{graph.data.num_nodes:,} nodes, {graph.data.edge_index.shape[1] // 2:,} edges, "
                  f"{len(graph.classes)} classes, {int((graph.data.y >= 0).sum()):,} labelled nodes")  # fmt: skip
    for sentence in graph.notes:
        notes().print(sentence, markup=False)
    left = seconds * (1 - LAST) - (time.monotonic() - begun)  # reading took some of it
    with progress("fitting") as tell:
        fitter = Fitter(graph.data, list(graph.classes), max(left, seconds / 2), seed, device, progress=tell)
        with _gently(fitter.clock.stop):
            model = fitter.fit(graph.ids.tolist(), graph.encoder)
    model.card |= {"columns": graph.columns, "edge_unit": graph.edge_unit}
    try:
        save_model(model, out, {"seed": seed, "budget": seconds, "versions": versions()})
    except OSError as error:
        raise InputError(f"--out {out}: cannot be written ({error.strerror}); give another") from None
    if as_json:
        print(json.dumps(model.card | {"model": str(out)}))
        return
    show(*fit_page(model.card, out))


@contextmanager
def _gently(stop: Callable[[], None]) -> Iterator[None]:
    """The first Ctrl-C asks for an end, the second one is as usual."""

    def ask(number: int, frame: Any) -> None:
        stop()
        signal.signal(signal.SIGINT, before)

    before = signal.signal(signal.SIGINT, ask)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def fit_page(card: dict[str, Any], folder: Path) -> list[RenderableType]:
    """Accuracy with its interval, references beside it, scores of every class, decisions."""
    scores = card["scores"]
    parts: list[RenderableType] = []
    if scores is None:
        parts.append("There is no estimate: no labelled node was held out, or the fit was stopped before it.")
    else:
        interval = f"{scores['low']:.1%} to {scores['high']:.1%} with 95 % confidence"
        rows = [
            ("accuracy", f"[bold]{scores['accuracy']:.1%}[/]   {interval}"),
            ("measured on", f"{scores['nodes']:,} nodes, {scores['how']}"),
        ]
        rows += [(f"  {name}", f"{share:.1%}") for name, share in scores["references"].items()]
        rows.append(("calibration error", f"{scores['ece']:.1%}   confidence against accuracy, 10 bins"))
        parts += [facts(rows), "", class_table(scores["classes"]), ""]
    parts.append(bullets(card["decisions"]))
    if card["interrupted"]:
        parts.append("[yellow]The fit was stopped early[/]: this is the best it had found.")
    parts += ["", facts([("time", format_duration(card["seconds"])), ("model", str(folder))])]
    return parts


def class_table(classes: list[dict[str, Any]]) -> Table:
    """Precision, recall and F1, one row a class."""
    table = Table(box=None, pad_edge=False)
    table.add_column("class")
    for column in ("precision", "recall", "F1", "nodes"):
        table.add_column(column, justify="right")
    for each in classes:
        shares = (f"{each[name]:.1%}" for name in ("precision", "recall", "f1"))
        table.add_row(str(each["name"]), *shares, f"{each['support']:,}")
    return table
