"""A fitted model: the members of its ensemble, the graph they know, and what they answer, also for new nodes."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from graphpartner.fit.calibration import tempered
from graphpartner.fit.candidates import Candidate
from graphpartner.fit.prepared import Prepared
from graphpartner.fit.training import output
from graphpartner.train.trainer import pick_device


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
class Model:
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

    data: Data
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

    def answer(self, device: str | torch.device = "cpu", new: Data | None = None) -> Answers:
        """Opinions on every node of its own graph, or of a new one that begins with the nodes of its own."""
        data = self.data if new is None else new
        prepared = Prepared(data, len(self.classes), pick_device(device), num_links=self.data.num_nodes)
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
        partner = tempered(partner, self.partner_temperature)
        both, graph = (tempered(each, self.temperature, self.shift) for each in (both, graph))
        return Answers(torch.where(cold[:, None], partner, both), partner, graph, cold)
