"""What tuning has found: which candidates, in what mixture, how sure of themselves."""

import dataclasses
from dataclasses import dataclass

from torch import Tensor

from graphpartner.fit.candidates import Candidate
from graphpartner.fit.training import Outcome


@dataclass
class Tuned:
    """What tuning found.

    Attributes:
        outcomes: the runs of the candidates that have a say.
        weights: what each candidate's say weighs, by name.
        spread: α of label propagation and the weight of its say; 0 where it has none.
        temperature: of the mixture of runs of all folds.
        shift: of every class of the mixture, [C].
        cooling: that temperature relative to one fold's.
        partner: the name of the candidate whose MLP partner answers for nodes without edges.
        partner_runs: its runs.
        partner_temperature: of the mean of its answers over all folds.
        partner_cooling: relative to one fold's.
        seen: validation accuracy of every candidate that was looked at, by name, on the folds it has done.
        validation: accuracy, on nodes not learned from, of the mixture, without the graph, of label propagation.
        judges: the nodes these figures are of.
        answer: what the mixture says about them, by runs that did not learn from them, [m, C].
        candidates: all that were trained, by name.
        plain_runs: of the best MLP that looks at no edge.
    """

    outcomes: list[Outcome]
    weights: dict[str, float]
    spread: tuple[float, float]
    temperature: float
    shift: Tensor
    cooling: float
    partner: str
    partner_runs: list[Outcome]
    partner_temperature: float
    partner_cooling: float
    seen: dict[str, float]
    validation: dict[str, float]
    judges: Tensor
    answer: Tensor
    candidates: dict[str, Candidate]
    plain_runs: list[Outcome]

    def warmer(self, factor: float) -> "Tuned":
        """The same answers, so many times less sure of themselves, once nodes held out have shown the need."""
        return dataclasses.replace(self, temperature=factor * self.temperature, shift=self.shift / factor)
