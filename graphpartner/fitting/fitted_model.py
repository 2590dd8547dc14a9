"""A fitted model: the members of its ensemble, the graph they know, and what they answer, also for new nodes.

New nodes from the user's files, behind the nodes a model knows.

Answers as a table: one row a node, in the order of the user's file.
"""

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


class Answers(NamedTuple):
    """Probabilities of the classes, [n, C] each."""

    both: Tensor
    """What the model says; the MLP partner's opinion where ``cold``."""
    partner: Tensor
    """The MLP partner's opinion: from a node's own features."""
    graph: Tensor
    """The graph branch's opinion."""
    cold: Tensor
    """[n], new nodes without any edge."""


@dataclass
class Member:
    """Runs of one candidate: W^(1) [R, d, h], W^(2) [R, h, C], and what their common opinion weighs."""

    candidate: Candidate
    weight1: Tensor
    weight2: Tensor
    weight: float
    partner: float
    """What its MLP partner's opinion weighs for nodes without edges."""


@dataclass
class FittedModel:
    """What a fit gives.

    Attributes:
        data: the graph it was fitted on: x, edge_index, y (−1: unlabelled), perhaps edge_weight.
        ids: the user's names of the nodes.
        classes: the user's names of the classes.
        members: the ensemble.
        learned: nodes whose labels were learned from, by index: label propagation starts there.
        spread: α of label propagation and the weight of its say.
        temperature: of the mixture.
        partner_temperature: of the MLP partner's opinion.
        encoder: what made features of the user's columns: its ``asdict()`` and ``arrays()``, or None.
        about: scores, decisions, split, provenance: what a person may want to know.
        shift: of every class of the mixture, [C] or [1].
    """

    data: GraphRecord
    ids: list[Any]
    classes: list[Any]
    members: list[Member]
    learned: Tensor
    spread: tuple[float, float]
    temperature: float
    partner_temperature: float
    encoder: tuple[dict[str, Any], dict[str, np.ndarray]] | None
    about: dict[str, Any]
    shift: Tensor = field(default_factory=lambda: torch.zeros(1))

    def answer(self, device: str | torch.device = "cpu", new: GraphRecord | None = None) -> Answers:
        """Opinions on every node of its own graph, or of a new one that begins with the nodes of its own."""
        data = self.data if new is None else new
        prepared = CandidateGraphs(data, len(self.classes), pick_device(device), num_links=self.data.num_nodes)
        n, C = int(data.num_nodes), len(self.classes)
        both, graph, partner = torch.zeros(n, C), torch.zeros(n, C), torch.zeros(n, C)
        for member in self.members:
            problem, runs = prepared.problem(member.candidate), member.weight1.shape[0]
            for weight1, weight2 in zip(member.weight1, member.weight2, strict=True):
                weights = weight1.to(prepared.device), weight2.to(prepared.device)
                out = output(problem, *weights, member.candidate.settings.alpha)
                if member.weight:
                    both += member.weight / runs * out.logits.softmax(-1).cpu()
                    graph += member.weight / runs * out.gcn_logits.softmax(-1).cpu()
                if member.partner:
                    partner += member.partner / runs * out.mlp_logits.softmax(-1).cpu()
        alpha, weight = self.spread
        if weight:
            y = torch.cat([self.data.y, torch.full((n - self.data.num_nodes,), -1)])
            spread = weight * prepared.spread(y, self.learned, C, alpha)
            both, graph = both + spread, graph + spread
        cold = torch.zeros(n, dtype=torch.bool)
        if n > self.data.num_nodes:
            degree = torch.bincount(data.edge_index[1], minlength=n)
            cold = (degree == 0) & (torch.arange(n) >= self.data.num_nodes)
        partner = with_temperature(partner, self.partner_temperature)
        both, graph = (with_temperature(each, self.temperature, self.shift) for each in (both, graph))
        return Answers(torch.where(cold[:, None], partner, both), partner, graph, cold)


def read_new_nodes(
    model: FittedModel, nodes: Any, edges: Any = None, sep: str | None = None, progress: Progress = silent
) -> tuple[GraphTable, Tensor]:
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
    known = GraphTable(
        ids=_as_array(model.ids),
        data=model.data,
        classes=model.classes,
        encoder=FeatureEncoder.restore(*model.encoder),
        columns=model.about.get("columns", {}),
        edge_unit=model.about.get("edge_unit", 1.0),
    )
    extended = read_graph(nodes, edges, like=known, sep=sep, progress=progress)
    return extended, torch.from_numpy(extended.rows)


def _as_array(ids: list[Any]) -> NDArray:
    """Ids as they were given: whole numbers where all are and fit, else objects."""
    if all(isinstance(each, int) and -(2**63) <= each < 2**63 for each in ids):
        return np.array(ids, dtype=np.int64)
    return np.array(ids, dtype=object)


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
