"""New nodes from the user's files, behind the nodes a model knows."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graphpartner.errors import InputError
from graphpartner.fit.model import Model
from graphpartner.graph.encoding import FeatureEncoder
from graphpartner.graph.files import OwnGraph, read_graph
from graphpartner.progress import Progress, silent


def read_new_nodes(
    model: Model, nodes: Any, edges: Any = None, sep: str | None = None, progress: Progress = silent
) -> tuple[OwnGraph, Tensor]:
    """The model's graph extended by new nodes, and which of its nodes stand in the rows of their file.

    Args:
        model: its encoder makes features of the same columns, and its columns of ids are looked for.
        nodes: one row a node; a node that the model knows takes its new features.
        edges: among the new nodes, or to nodes that the model knows.
        sep: the separator of text files; None finds it.
        progress: called with (bytes read, bytes in all).
    """
    if model.encoder is None:
        raise InputError("the model was fitted on arrays, not on files: fit it with gpnn fit to give it files")
    known = OwnGraph(
        ids=_as_array(model.ids),
        data=model.data,
        classes=model.classes,
        encoder=FeatureEncoder.restore(*model.encoder),
        columns=model.about.get("columns", {}),
        unit=model.about.get("edge_unit", 1.0),
    )
    extended = read_graph(nodes, edges, like=known, sep=sep, progress=progress)
    return extended, torch.from_numpy(extended.rows)


def _as_array(ids: list[Any]) -> NDArray:
    """Ids as they were given: whole numbers where all are and fit, else objects."""
    if all(isinstance(each, int) and -(2**63) <= each < 2**63 for each in ids):
        return np.array(ids, dtype=np.int64)
    return np.array(ids, dtype=object)
