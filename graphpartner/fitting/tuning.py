"""Choose candidates for a graph and mix them: successive halving over cross-validation folds, greedy weights.

1. *First rung.* All candidates train on the first folds: as many as hold ``FIRST_RUNG_NODES`` validation nodes, or as
   ``RUNG_TIME`` of the time allows. If those hold fewer than ``MIN_RUNG_NODES``, candidates cannot be told apart: then
   the likeliest ``FINALISTS`` + 1 train on every fold, and the other rungs are left out.
2. *Second rung.* The better half, but no fewer than ``FINALISTS``, train on one more fold. It is left out where the
   first rung had ``MAX_RUNG_NODES`` validation nodes: more would not change the order.
3. *Last rung.* Those of them that are not clearly worse than the best, ``FINALISTS`` at most, train on every fold, and
   again with other seeds, one candidate fewer each time: up to ``SEEDS`` runs per candidate and fold. The best MLP
   that ignores the graph comes along in every rung, to show what the graph is worth.
4. *Mixture.* Runs predict the validation nodes of their own fold. From these predictions, and those of label
   propagation, weights are chosen greedily (:func:`ensemble_weights`).
5. *Calibration.* Temperature and class shift are fitted to the same predictions. A node outside all folds is predicted
   by the runs of all folds together, which needs another temperature: :func:`ensemble_temperature_ratio` estimates it
   from nodes that are in no fold.

Candidates are compared by :func:`merit`. One is clearly worse if it is behind the best by more than ``MERIT_TOLERANCE``
and by more than 1/√m, which is about chance on m validation nodes.
"""

import dataclasses
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import product

import numpy as np
import torch
from torch import Tensor

from graphpartner.fitting.candidate_runs import CandidateRuns, Job, Outcome
from graphpartner.fitting.candidates import Candidate
from graphpartner.fitting.clock import Clock
from graphpartner.fitting.folds import Fold
from graphpartner.fitting.layouts import CandidateGraphs
from graphpartner.model.calibration import (
    class_shift,
    ensemble_temperature_ratio,
    temperature_scaling,
    with_temperature,
)
from graphpartner.model.label_propagation import ALPHAS
from graphpartner.model.metrics import accuracy
from graphpartner.system.parallel import run_on_cores, single_core

FIRST_RUNG_NODES, MIN_RUNG_NODES, MAX_RUNG_NODES = 150, 30, 1000
RUNG_TIME, SECOND_RUNG_TIME = 0.6, 0.5  # shares of the time: of both rungs, and of what is left for the second
FINALISTS = 4
SEEDS = 3
MERIT_TOLERANCE = 0.02
MIN_UNSEEN = 30  # nodes outside all folds that show how the temperature of the mean of folds differs
ENOUGH_FOR_GREEDY = 300  # validation nodes; with fewer, the best of many is mostly luck
EQUAL_WEIGHT_TOP = 4
MAX_PICKS, MIN_GAIN = 12, 5e-4
SUBSAMPLE = 2000  # validation nodes that suffice for the second term of the merit


@dataclass
class Tuned:
    """The mixture that tuning has chosen.

    Attributes:
        outcomes: the runs of the candidates in it.
        weights: the weight of each candidate, by name.
        label_prop: α of label propagation, and its weight; 0 where it is not used.
        temperature: of the mixture of the runs of all folds.
        shift: of every class, [C].
        temperature_ratio: that temperature relative to one fold's.
        partner: name of the candidate whose MLP partner predicts nodes without edges.
        partner_runs: its runs.
        partner_temperature: of the mean of its predictions over all folds.
        partner_temperature_ratio: relative to one fold's.
        tried: validation accuracy of every candidate that was trained, by name, on the folds it has done.
        validation: accuracy on ``val_nodes`` of the mixture, of the best candidate without the graph, and of label
            propagation.
        val_nodes: validation nodes of the folds that the mixture was chosen on.
        val_probabilities: calibrated predictions of the mixture there, by runs that did not learn from them, [m, C].
        candidates: all that were trained, by name.
        plain_runs: runs of the best MLP that ignores the graph.
    """

    outcomes: list[Outcome]
    weights: dict[str, float]
    label_prop: tuple[float, float]
    temperature: float
    shift: Tensor
    temperature_ratio: float
    partner: str
    partner_runs: list[Outcome]
    partner_temperature: float
    partner_temperature_ratio: float
    tried: dict[str, float]
    validation: dict[str, float]
    val_nodes: Tensor
    val_probabilities: Tensor
    candidates: dict[str, Candidate]
    plain_runs: list[Outcome]

    @property
    def chosen(self) -> list[Candidate]:
        """The candidates in the mixture, and that of the partner."""
        return [self.candidates[name] for name in dict.fromkeys([*self.weights, self.partner])]

    def softened(self, factor: float) -> "Tuned":
        """Return the same mixture with its temperature multiplied by a factor; the predicted classes stay."""
        return dataclasses.replace(self, temperature=factor * self.temperature, shift=self.shift / factor)


class Tuner:
    """Chooses among candidates on one graph and one set of folds.

    Args:
        graphs: the graph, laid out for the candidates.
        y: labels; only those of the folds are read.
        folds: stratified, see :mod:`graphpartner.fitting.folds`.
        seed: of all runs.
        on_run: called after every run.
    """

    def __init__(
        self,
        graphs: CandidateGraphs,
        y: Tensor,
        folds: list[Fold],
        seed: int,
        on_run: Callable[[], None] = lambda: None,
    ) -> None:
        self.graphs, self.y, self.folds, self.seed = graphs, y, folds, seed
        self.runs = CandidateRuns(graphs, y, folds, on_run)
        self._label_props: dict[tuple[int, float], tuple[Tensor, Tensor]] = {}
        self._rungs: tuple[list[int], list[int]] = [0], []  # folds of the first rung, and of the second

    def tune(self, candidates: list[Candidate], clock: Clock) -> Tuned:
        """Train candidates rung by rung as far as time goes, and return the best mixture."""
        first, every = self._first_rung(), range(len(self.folds))
        rungs = clock.part(RUNG_TIME)
        self._train(product(candidates[:3], first[:1]), rungs, at_least=3)
        affordable = first[: self._affordable_folds(len(candidates), rungs)]
        if len(affordable) < len(first) and self._target(affordable).numel() < MIN_RUNG_NODES:
            self._train(_fold_by_fold(candidates[: FINALISTS + 1], every), clock)
            return self.mixture()
        first, second = affordable, []
        if len(first) < len(self.folds) and self._target(first).numel() < MAX_RUNG_NODES:
            second = [len(first)]
        self._rungs = first, second
        self._train(product(candidates, first), rungs)
        if not clock.over():
            better = list(self._merits(first))[: max(FINALISTS, len(candidates) // 2)]
            self._train(product(self._with_plain(better), second), clock.part(SECOND_RUNG_TIME))
            best = self._not_worse_than_best()[:FINALISTS]
            self._train(_fold_by_fold(self._with_plain(best), every), clock)
            for repeat in range(1, SEEDS):
                self._train(product(best[: FINALISTS - repeat], every), clock, repeat)
        return self.mixture()

    def retrain(self, tuned: Tuned, clock: Clock) -> Tuned | None:
        """Train the candidates of a mixture on these folds, as often as time allows, and calibrate it anew.

        Return None if there was no time for one of them. A partner that was not trained again stays as it was.
        """
        for repeat in range(SEEDS):
            self._train(_fold_by_fold(tuned.chosen, range(len(self.folds))), clock, repeat)
        runs = {each.name: outcomes for each, outcomes in self._by_candidate([]).items()}
        if any(name not in runs for name in tuned.weights):
            return None
        new = dataclasses.replace(tuned, outcomes=[run for name in tuned.weights for run in runs[name]])
        alpha, weight = tuned.label_prop
        members = [(runs[name], share) for name, share in tuned.weights.items()]
        if folds := self._done_by([outcomes for outcomes, _ in members]):
            predictions = [self._predictions(outcomes, folds) for outcomes, _ in members]
            if weight:
                predictions.append(torch.cat([self._label_prop(fold, alpha) for fold in folds]))
            mixed, target = _mixed([*tuned.weights.values(), weight], predictions), self._target(folds)
            T = temperature_scaling(mixed, target)
            ratio = self._temperature_ratio(members, T, tuned.label_prop) or tuned.temperature_ratio
            new.temperature, new.shift = T * ratio, class_shift(with_temperature(mixed, T), target)
        if outcomes := runs.get(tuned.partner):
            folds = self._done_by([outcomes])
            T = temperature_scaling(self._predictions(outcomes, folds, partner=True), self._target(folds))
            ratio = self._temperature_ratio([(outcomes, 1.0)], T, partner=True) or tuned.partner_temperature_ratio
            new.partner_runs, new.partner_temperature = outcomes, T * ratio
        return new

    def mixture(self) -> Tuned:
        """Return the best mixture of all that has been trained so far, on the folds that the best have done."""
        folds = self._common_folds()
        done, target = self._by_candidate(folds), self._target(folds)
        predictions = {each: self._predictions(runs, folds) for each, runs in done.items()}
        merits = {each: merit(p, target) for each, p in predictions.items()}
        alpha, label_prop = self._best_label_prop(folds)
        use_label_prop = self.graphs.edge_index.numel() > 0
        if use_label_prop and target.numel() < ENOUGH_FOR_GREEDY:
            # on few nodes it would often be close by luck, and it knows nothing of features
            use_label_prop = merit(label_prop, target) >= max(merits.values())
        good = _not_worse(merits, target)
        members = [*(predictions[each] for each in good), *([label_prop] if use_label_prop else [])]
        weights = ensemble_weights(members, target)
        mixed = _mixed(weights, members)
        chosen = {each: weight for each, weight in zip(good, weights, strict=False) if weight > 0}
        partners = {each: self._predictions(runs, folds, True) for each, runs in done.items() if each.own_features}
        partner = max(partners, key=lambda each: merit(partners[each], target))
        plain = [each for each in predictions if each.ignores_graph]
        best_plain = max(plain, key=merits.__getitem__)
        best_network = max([each for each in plain if not each.linear] or [best_plain], key=merits.__getitem__)
        T, partner_T = temperature_scaling(mixed, target), temperature_scaling(partners[partner], target)
        label_prop_weight = weights[-1] if use_label_prop else 0.0
        parts = [(done[each], weight) for each, weight in chosen.items()]
        ratio = self._temperature_ratio(parts, T, (alpha, label_prop_weight)) or 1.0
        partner_ratio = self._temperature_ratio([(done[partner], 1.0)], partner_T, partner=True) or 1.0
        calibrated = with_temperature(mixed, T)
        return Tuned(
            outcomes=[run for runs, _ in parts for run in runs],
            weights={each.name: weight for each, weight in chosen.items()},
            label_prop=(alpha, label_prop_weight),
            temperature=T * ratio,
            shift=class_shift(calibrated, target),
            temperature_ratio=ratio,
            partner=partner.name,
            partner_runs=done[partner],
            partner_temperature=partner_T * partner_ratio,
            partner_temperature_ratio=partner_ratio,
            tried=self._accuracies(),
            validation={
                "mixture": float(accuracy(mixed, target)),
                "mlp": float(accuracy(predictions[best_plain], target)),
                "label propagation": float(accuracy(label_prop, target)),
            },
            val_nodes=self._val_nodes(folds),
            val_probabilities=calibrated,
            candidates={each.name: each for each in self._by_candidate([])},
            plain_runs=done[best_network],
        )

    def _first_rung(self) -> list[int]:
        count, nodes = 0, 0
        while count < len(self.folds) and nodes < FIRST_RUNG_NODES:
            nodes += self.folds[count].val.numel()
            count += 1
        return list(range(count))

    def _affordable_folds(self, num_candidates: int, clock: Clock) -> int:
        """Return the number of folds on which all candidates can train in this time; at least one."""
        seconds = [run.seconds for run in self.runs.outcomes if not run.job.candidate.linear]
        if not seconds:
            return 1
        cores = torch.get_num_threads() if self.graphs.device.type == "cpu" else 1
        return max(1, int(clock.left() * cores * len(seconds) / (sum(seconds) * num_candidates)))

    def _with_plain(self, candidates: list[Candidate]) -> list[Candidate]:
        """Add the best candidate that ignores the graph, if none of these does."""
        plain = [each for each in self._merits(self._rungs[0]) if each.ignores_graph]
        return candidates if any(each.ignores_graph for each in candidates) else [*candidates, *plain[:1]]

    def _train(self, pairs: Iterable[tuple[Candidate, int]], clock: Clock, repeat: int = 0, at_least: int = 0) -> None:
        """Train candidates on folds in this order, unless done already; ``repeat`` numbers runs of the same pair."""
        done = {each.job for each in self.runs.outcomes}
        jobs = [
            Job(each, fold, 100 * self.seed + 10 * repeat + fold)
            for each, fold in pairs
            if not (repeat and each.linear)  # a linear model does not depend on the seed
        ]
        self.runs.train([job for job in jobs if job not in done], clock, at_least)

    def _merits(self, folds: list[int]) -> dict[Candidate, float]:
        """Return the merits of the candidates that have done these folds, best first."""
        target = self._target(folds)
        merits = {
            each: merit(self._predictions(runs, folds), target) for each, runs in self._by_candidate(folds).items()
        }
        return dict(sorted(merits.items(), key=lambda each: -each[1]))

    def _not_worse_than_best(self) -> list[Candidate]:
        """Return the best candidate and those not clearly worse: after the second rung, if the best came to it."""
        first, second = self._rungs
        merits = self._merits(first)
        later = self._merits(first + second) if second else {}
        if later and next(iter(merits)) in later:
            return _not_worse(later, self._target(first + second))
        return _not_worse(merits, self._target(first))

    def _val_nodes(self, folds: list[int]) -> Tensor:
        return torch.cat([self.folds[fold].val for fold in folds])

    def _target(self, folds: list[int]) -> Tensor:
        """Return the classes of these folds' validation nodes."""
        return self.y[self._val_nodes(folds)]

    def _by_candidate(self, folds: list[int]) -> dict[Candidate, list[Outcome]]:
        """Return the runs of the candidates that have done these folds."""
        runs: dict[Candidate, list[Outcome]] = {}
        for outcome in self.runs.outcomes:
            runs.setdefault(outcome.job.candidate, []).append(outcome)
        return {each: those for each, those in runs.items() if {run.job.fold for run in those} >= set(folds)}

    def _done_by(self, runs: list[list[Outcome]]) -> list[int]:
        """Return the folds that all of these have done."""
        return sorted(set(range(len(self.folds))).intersection(*({run.job.fold for run in those} for those in runs)))

    @staticmethod
    def _predictions(runs: list[Outcome], folds: list[int], partner: bool = False) -> Tensor:
        """Return a candidate's predictions for the validation nodes of folds: means over the runs of each fold."""
        parts = []
        for fold in folds:
            of_fold = [run.val_partner if partner else run.val for run in runs if run.job.fold == fold]
            parts.append(torch.stack(of_fold).mean(0))
        return torch.cat(parts)

    def _best_label_prop(self, folds: list[int]) -> tuple[float, Tensor]:
        """Return the best α of label propagation, and its predictions for the validation nodes of these folds."""
        target = self._target(folds)
        run_on_cores(lambda each: self._label_prop(*each), product(folds, ALPHAS))
        predictions = {alpha: torch.cat([self._label_prop(fold, alpha) for fold in folds]) for alpha in ALPHAS}
        alpha = max(predictions, key=lambda each: merit(predictions[each], target))
        return alpha, predictions[alpha]

    def _label_prop(self, number: int, alpha: float, unseen: bool = False) -> Tensor:
        """Return label propagation's predictions for a fold's validation nodes, or for nodes outside all folds."""
        if (number, alpha) not in self._label_props:
            fold = self.folds[number]
            p = self.graphs.spread(self.y, fold.train, self.graphs.num_classes, alpha)
            self._label_props[number, alpha] = p[fold.val], p[self.runs.unseen]
        return self._label_props[number, alpha][unseen]

    def _temperature_ratio(
        self,
        parts: list[tuple[list[Outcome], float]],
        temperature: float,
        label_prop: tuple[float, float] = (0.0, 0.0),
        partner: bool = False,
    ) -> float | None:
        """Return the temperature of a mixture of all folds relative to that of one; None if no node can show it.

        The mixture has parts, runs and weight of candidates, and label propagation by α and weight.
        """
        if self.runs.unseen.numel() < MIN_UNSEEN:
            return None
        alpha, weight = label_prop
        by_fold = []
        for fold in self._done_by([runs for runs, _ in parts]):
            mixed = weight * self._label_prop(fold, alpha, unseen=True) if weight else torch.zeros(())
            for runs, share in parts:
                of_fold = [run.unseen_partner if partner else run.unseen for run in runs if run.job.fold == fold]
                mixed = mixed + share * torch.stack(of_fold).mean(0)
            by_fold.append(mixed)
        return ensemble_temperature_ratio(torch.stack(by_fold), temperature) if by_fold else None

    def _accuracies(self) -> dict[str, float]:
        """Return the validation accuracy of every candidate on the folds it has done, by name."""
        shares = {}
        for each, runs in self._by_candidate([]).items():
            folds = self._done_by([runs])
            shares[each.name] = float(accuracy(self._predictions(runs, folds), self._target(folds)))
        return shares

    def _common_folds(self) -> list[int]:
        """Return the longest range of folds that some MLP without the graph and, if possible, the best have done.

        Otherwise the best would be left out because a quicker one has done one fold more. On few validation nodes the
        best is not known; then as many of the best as there may be finalists count.
        """
        few = self._target(self._rungs[0]).numel() < ENOUGH_FOR_GREEDY
        good = set(self._not_worse_than_best()[: FINALISTS if few else 1])
        for least in range(len(good), -1, -1):
            for count in range(len(self.folds), 0, -1):
                done = self._by_candidate(list(range(count))).keys()
                if len(done & good) >= least and any(each.ignores_graph for each in done):
                    return list(range(count))
        raise KeyboardInterrupt  # stopped before the first run had ended: there is nothing to return


def _not_worse(merits: dict[Candidate, float], target: Tensor) -> list[Candidate]:
    """Return the candidates that are not clearly worse than the best."""
    least = max(merits.values(), default=0.0) - max(MERIT_TOLERANCE, max(1, target.numel()) ** -0.5)
    return [each for each, value in merits.items() if value >= least]


def _fold_by_fold(candidates: list[Candidate], folds: Iterable[int]) -> Iterable[tuple[Candidate, int]]:
    """Yield all candidates on one fold, then all on the next."""
    return ((each, fold) for fold in folds for each in candidates)


def _mixed(weights: list[float], predictions: list[Tensor]) -> Tensor:
    """Return Σ w p over as many predictions as there are."""
    return torch.stack([weight * p for weight, p in zip(weights, predictions, strict=False)]).sum(0)


@single_core()
def merit(probabilities: Tensor, y: Tensor) -> float:
    """Return accuracy plus a quarter of the mean probability of the true class, once calibrated.

    The second term settles the ties that few validation nodes leave. Without calibration it would be held against a
    method that it is right but never confident, as label propagation is.
    """
    right = (probabilities.argmax(1) == y).float().mean()
    some = slice(None, None, -(-y.numel() // SUBSAMPLE) or 1)
    p = with_temperature(probabilities[some], temperature_scaling(probabilities[some], y[some], values=13))
    return float(right + p[torch.arange(p.shape[0]), y[some]].mean() / 4)


def ensemble_weights(predictions: list[Tensor], y: Tensor) -> list[float]:
    """Return the weight of each member's predictions [m, C]: picked greedily, with replacement, by :func:`merit`.

    This is ensemble selection (Caruana et al., 2004). With fewer than ``ENOUGH_FOR_GREEDY`` nodes, the
    ``EQUAL_WEIGHT_TOP`` best, of those not clearly worse than the best, have equal weights instead.
    """
    merits = [merit(each, y) for each in predictions]
    counts = [0] * len(predictions)
    if y.numel() < ENOUGH_FOR_GREEDY:
        order = sorted(range(len(predictions)), key=lambda i: -merits[i])
        close = merits[order[0]] - 1.0 / max(1, y.numel()) ** 0.5
        for i in order[:EQUAL_WEIGHT_TOP]:
            counts[i] = int(merits[i] >= close)
        return [count / sum(counts) for count in counts]
    best, total = -1.0, torch.zeros_like(predictions[0])
    while sum(counts) < MAX_PICKS:
        tried = [merit((total + each) / (sum(counts) + 1), y) for each in predictions]
        i = int(np.argmax(tried))
        if tried[i] <= best + MIN_GAIN:
            break
        best, total = tried[i], total + predictions[i]
        counts[i] += 1
    return [count / sum(counts) for count in counts]
