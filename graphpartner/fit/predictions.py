"""Answers as a table: one row a node, in the order of the user's file."""

import io
from pathlib import Path
from typing import Any

from torch import Tensor

from graphpartner.errors import InputError
from graphpartner.fit.model import Answers
from graphpartner.graph.packed import write_atomically


def prediction_table(ids: list[Any], classes: list[Any], answers: Answers, rows: Tensor, min_confidence: float) -> Any:
    """A pandas table with id, class, probability, both branches' opinions, and whether to abstain.

    ``rows`` says which node of the answers stands in which row.
    ``answered_by`` says ``both``, or ``partner`` for a new node without edges, whose graph columns are empty.
    """
    import pandas as pd

    cold = answers.cold[rows].numpy()
    names = pd.Series(classes, dtype=object)

    def said(probabilities: Tensor) -> tuple[Any, Any]:
        share, guess = probabilities[rows].max(1)
        return names.to_numpy()[guess.numpy()], share.numpy().astype("float64").round(6)

    (both, share), (partner, partner_share), (graph, graph_share) = map(said, answers[:3])
    return pd.DataFrame(
        {
            "id": ids,
            "class": both,
            "probability": share,
            "partner_class": partner,
            "partner_probability": partner_share,
            "graph_class": pd.Series(graph, dtype=object).mask(cold),
            "graph_probability": pd.Series(graph_share).mask(cold),
            "answered_by": pd.Series(cold).map({True: "partner", False: "both"}),
            "abstain": ~(share >= min_confidence),  # also of a probability that is no number
        }
    )


def write_table(table: Any, path: Path) -> None:
    """Write a CSV or Parquet file, whole or not at all."""
    content = io.BytesIO()
    if path.suffix == ".parquet":
        if not _of_one_type(table["id"]):
            table = table.assign(id=table["id"].map(str))
        table.to_parquet(content, index=False)
    else:
        table.to_csv(content, index=False)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, content.getvalue())
    except OSError as error:
        raise InputError(f"--out {path}: cannot be written ({error.strerror}); give another") from None


def _of_one_type(ids: Any) -> bool:
    """Whether a Parquet file can hold these ids as they are: text, or whole numbers of 64 bits."""
    from pandas.api.types import infer_dtype

    kind = infer_dtype(ids, skipna=False)
    return kind == "string" or (kind == "integer" and bool((ids < 2**63).all()))
