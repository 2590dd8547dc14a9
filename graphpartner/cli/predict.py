"""``gpnn predict``: the classes of nodes by a model that ``gpnn fit`` wrote."""

from pathlib import Path
from typing import Annotated

import typer

from graphpartner.cli.options import DeviceOption, SepOption
from graphpartner.system.errors import InputError


def predict(
    model: Annotated[Path, typer.Argument(help="a folder written by gpnn fit", metavar="MODEL")],
    out: Annotated[Path, typer.Option(help="a .csv or .parquet file", metavar="FILE")],
    nodes: Annotated[Path | None, typer.Option(help="new nodes, with the columns of the fit", metavar="FILE")] = None,
    edges: Annotated[
        Path | None, typer.Option(help="their edges, among themselves or to nodes of the fit", metavar="FILE")
    ] = None,
    sep: SepOption = None,
    min_confidence: Annotated[float, typer.Option(help="abstain below this probability")] = 0.0,
    device: DeviceOption = "auto",
) -> None:
    """Classify the nodes a model was fitted on, or new ones, and give the class of each branch too."""
    import torch

    from graphpartner.fitting.fitted_model import prediction_table, read_new_nodes, write_table
    from graphpartner.fitting.model_folder import load_model
    from graphpartner.report.terminal import facts, notes, progress, show

    if out.suffix not in (".csv", ".parquet"):
        raise InputError(f"--out {out}: must end in .csv or .parquet")
    if not 0 <= min_confidence <= 1:
        raise InputError(f"--min-confidence {min_confidence}: must lie between 0 and 1")
    if edges is not None and nodes is None:
        raise InputError(f"--edges {edges}: needs --nodes, the nodes to be classified")
    fitted = load_model(model)
    if nodes is None:
        ids, predictions, rows = fitted.ids, fitted.predict(device), torch.arange(len(fitted.ids))
    else:
        with progress("reading") as on_progress:
            extended, rows = read_new_nodes(fitted, nodes, edges, sep, on_progress)
        for sentence in extended.notes:
            notes().print(sentence, markup=False)
        ids, predictions = extended.ids[rows.numpy()].tolist(), fitted.predict(device, extended.data)
    table = prediction_table(ids, fitted.classes, predictions, rows, min_confidence)
    write_table(table, out)
    found = [("predictions", f"{out}: {len(ids):,} nodes")]
    if min_confidence:
        found.append(("abstained", f"{int(table['abstain'].sum()):,} below {min_confidence:g}"))
    if cold := int(predictions.cold[rows].sum()):
        found.append(("cold start", f"{cold:,} new nodes without an edge, answered by the MLP partner alone"))
    show(facts(found))
