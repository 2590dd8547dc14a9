"""A fitted model: the ensemble, its graph, its predictions for nodes old and new, and their table."""

import io
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graphpartner.fitting.candidate_runs import output
from graphpartner.fitting.candidates import Candidate
from graphpartner.fitting.layouts import CandidateGraphs
from graphpartner.graph.record import GraphRecord
from graphpartner.model.calibration import with_temperature
from graphpartner.system.device import pick_device
from graphpartner.system.errors import InputError
from graphpartner.system.files import write_atomically
from graphpartner.system.progress import Progress, silent
from graphpartner.tables.encoding import FeatureEncoder
from graphpartner.tables.read_graph import GraphTable, read_graph


class Predictions(NamedTuple):
    """Probabilities of the classes, [n, C], by the model and by each of its branches."""

    both: Tensor
    """by the model; by the MLP partner alone where ``cold``"""
    partner: Tensor
    """by the MLP partner: from a node's own features"""
    graph: Tensor
    """by the graph branch"""
    cold: Tensor
    """[n], whether a node is new and has no edge"""


@dataclass
class Member:
    """Runs of one candidate: W^(1) [R, d, h], W^(2) [R, h, C], and the weight of their mean in the ensemble."""

    candidate: Candidate
    weight1: Tensor
    weight2: Tensor
    weight: float
    partner_weight: float
    """the weight of its MLP partner for nodes without edges"""


@dataclass
class FittedModel:
    """The result of a fit.

    Attributes:
        data: the graph it was fitted on: x, edge_index, y (−1: unlabelled), perhaps edge_weight.
        ids: the user's names of the nodes.
        classes: the user's names of the classes.
        members: the ensemble.
        learned: nodes whose labels were learned from, by index: label propagation starts there.
        label_prop: α of label propagation, and its weight in the ensemble.
        temperature: of the ensemble.
        partner_temperature: of the MLP partner.
        encoder: ``asdict()`` and ``arrays()`` of the encoder that made features of the user's columns, or None.
        card: what a person may want to know: scores, decisions, split, provenance.
        shift: of every class of the ensemble, [C] or [1].
    """

    data: GraphRecord
    ids: list[Any]
    classes: list[Any]
    members: list[Member]
    learned: Tensor
    label_prop: tuple[float, float]
    temperature: float
    partner_temperature: float
    encoder: tuple[dict[str, Any], dict[str, np.ndarray]] | None
    card: dict[str, Any]
    shift: Tensor = field(default_factory=lambda: torch.zeros(1))

    def predict(self, device: str | torch.device = "cpu", new: GraphRecord | None = None) -> Predictions:
        """Predict every node of its own graph, or of a new one that begins with the nodes of its own."""
        data = self.data if new is None else new
        graphs = CandidateGraphs(data, len(self.classes), pick_device(device), num_links=self.data.num_nodes)
        n, C = int(data.num_nodes), len(self.classes)
        both, graph, partner = torch.zeros(n, C), torch.zeros(n, C), torch.zeros(n, C)
        for member in self.members:
            problem, runs = graphs.problem(member.candidate), member.weight1.shape[0]
            for weight1, weight2 in zip(member.weight1, member.weight2, strict=True):
                weights = weight1.to(graphs.device), weight2.to(graphs.device)
                out = output(problem, *weights, member.candidate.settings.alpha)
                if member.weight:
                    both += member.weight / runs * out.logits.softmax(-1).cpu()
                    graph += member.weight / runs * out.gcn_logits.softmax(-1).cpu()
                if member.partner_weight:
                    partner += member.partner_weight / runs * out.mlp_logits.softmax(-1).cpu()
        alpha, weight = self.label_prop
        if weight:
            y = torch.cat([self.data.y, torch.full((n - self.data.num_nodes,), -1)])
            propagated = weight * graphs.spread(y, self.learned, C, alpha)
            both, graph = both + propagated, graph + propagated
        cold = torch.zeros(n, dtype=torch.bool)
        if n > self.data.num_nodes:
            degree = torch.bincount(data.edge_index[1], minlength=n)
            cold = (degree == 0) & (torch.arange(n) >= self.data.num_nodes)
        partner = with_temperature(partner, self.partner_temperature)
        both, graph = (with_temperature(each, self.temperature, self.shift) for each in (both, graph))
        return Predictions(torch.where(cold[:, None], partner, both), partner, graph, cold)


def read_new_nodes(
    model: FittedModel, nodes: Any, edges: Any = None, sep: str | None = None, progress: Progress = silent
) -> tuple[GraphTable, Tensor]:
    """Read new nodes; return the model's graph with them behind its own, and the index of the node in each row read.

    Args:
        model: its encoder makes features of the same columns, and its columns of ids are looked for.
        nodes: one row per node; a node that the model knows takes its new features.
        edges: among the new nodes, or to nodes that the model knows.
        sep: the separator of text files; detected if not given.
        progress: called with (bytes read, bytes in all).
    """
    if model.encoder is None:
        raise InputError("the model was fitted on arrays, not on files: fit it with gpnn fit to give it files")
    known = GraphTable(
        ids=_as_array(model.ids),
        data=model.data,
        classes=model.classes,
        encoder=FeatureEncoder.restore(*model.encoder),
        columns=model.card.get("columns", {}),
        edge_unit=model.card.get("edge_unit", 1.0),
    )
    extended = read_graph(nodes, edges, like=known, sep=sep, progress=progress)
    return extended, torch.from_numpy(extended.rows)


def _as_array(ids: list[Any]) -> NDArray:
    """Return ids as an array: of whole numbers where all are and fit into 64 bits, else of objects."""
    if all(isinstance(each, int) and -(2**63) <= each < 2**63 for each in ids):
        return np.array(ids, dtype=np.int64)
    return np.array(ids, dtype=object)


def prediction_table(
    ids: list[Any], classes: list[Any], predictions: Predictions, rows: Tensor, min_confidence: float
) -> Any:
    """Return a pandas table with id, class and probability, by the model and by each branch, and whether to abstain.

    ``rows`` holds the index of the node in each row. ``answered_by`` is ``both``, or ``partner`` for a new node without
    edges, whose graph columns are empty.
    """
    import pandas as pd

    cold = predictions.cold[rows].numpy()
    names = pd.Series(classes, dtype=object)

    def best(probabilities: Tensor) -> tuple[Any, Any]:
        probability, predicted = probabilities[rows].max(1)
        return names.to_numpy()[predicted.numpy()], probability.numpy().astype("float64").round(6)

    (both, probability), (partner, partner_probability), (graph, graph_probability) = map(best, predictions[:3])
    return pd.DataFrame(
        {
            "id": ids,
            "class": both,
            "probability": probability,
            "partner_class": partner,
            "partner_probability": partner_probability,
            "graph_class": pd.Series(graph, dtype=object).mask(cold),
            "graph_probability": pd.Series(graph_probability).mask(cold),
            "answered_by": pd.Series(cold).map({True: "partner", False: "both"}),
            "abstain": ~(probability >= min_confidence),  # also where it is NaN
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
    """Return whether a Parquet file can hold these ids as they are: all text, or all whole numbers of 64 bits."""
    from pandas.api.types import infer_dtype

    kind = infer_dtype(ids, skipna=False)
    return kind == "string" or (kind == "integer" and bool((ids < 2**63).all()))
