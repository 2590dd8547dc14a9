"""What a fit tells a person: how good, compared with what, and why so."""

from pathlib import Path
from typing import Any

from rich.console import RenderableType
from rich.table import Table

from graphpartner.report.terminal import bullets, duration, facts


def fit_page(about: dict[str, Any], folder: Path) -> list[RenderableType]:
    """Accuracy with its interval, rivals beside it, scores of every class, decisions."""
    scores = about["scores"]
    parts: list[RenderableType] = []
    if scores is None:
        parts.append("There is no estimate: no labelled node was held out, or the fit was stopped before it.")
    else:
        interval = f"{scores['low']:.1%} to {scores['high']:.1%} with 95 % confidence"
        rows = [
            ("accuracy", f"[bold]{scores['accuracy']:.1%}[/]   {interval}"),
            ("measured on", f"{scores['nodes']:,} nodes, {scores['how']}"),
        ]
        rows += [(f"  {name}", f"{share:.1%}") for name, share in scores["rivals"].items()]
        rows.append(("calibration error", f"{scores['ece']:.1%}   confidence against accuracy, 10 bins"))
        parts += [facts(rows), "", class_table(scores["classes"]), ""]
    parts.append(bullets(about["decisions"]))
    if about["interrupted"]:
        parts.append("[yellow]The fit was stopped early[/]: this is the best it had found.")
    parts += ["", facts([("time", duration(about["seconds"])), ("model", str(folder))])]
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
