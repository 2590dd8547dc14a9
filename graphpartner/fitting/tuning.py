"""What tuning has found: which candidates, in what mixture, how sure of themselves.

Which candidates, and in what mixture? Successive halving over folds, by answers to nodes not learned from.
"""

import dataclasses
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import product

import torch
from torch import Tensor

from graphpartner.fitting.candidate_runs import Job, Outcome, Trainer
from graphpartner.fitting.candidates import Candidate
from graphpartner.fitting.clock import Clock
from graphpartner.fitting.ensemble import ENOUGH_FOR_GREEDY, ensemble_weights, merit
from graphpartner.fitting.folds import Fold
from graphpartner.fitting.layouts import CandidateGraphs
from graphpartner.fitting.scores import accuracy
from graphpartner.model.calibration import (
    class_shift,
    ensemble_temperature_ratio,
    temperature_scaling,
    with_temperature,
)
from graphpartner.model.label_propagation import ALPHAS
from graphpartner.system.parallel import run_on_cores


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


ENOUGH = 150  # judging nodes that a first look needs
ENOUGH_FOLD_LABELS = 1000  # judging nodes after which a second look would say the same
TOO_FEW = 30  # judging nodes that cannot tell candidates apart
MERIT_TOLERANCE = 0.02  # of merit, that a candidate may be behind the best and still be worth its time
FINALISTS = 4
SEEDS = 3  # runs a candidate and fold at most, where there is time
UNSEEN = 30  # nodes that tell how much colder a mean of folds is


class Tuner:
    """Chooses among candidates on one graph and one set of folds.

    Args:
        prepared: the graph.
        y: labels; only those of the folds are read.
        folds: stratified, see :mod:`graphpartner.fitting.folds`.
        seed: of all runs.
        tell: called after every run.
    """

    def __init__(
        self,
        prepared: CandidateGraphs,
        y: Tensor,
        folds: list[Fold],
        seed: int,
        tell: Callable[[], None] = lambda: None,
    ) -> None:
        self.prepared, self.y, self.folds, self.seed = prepared, y, folds, seed
        self.trainer = Trainer(prepared, y, folds, tell)
        self._spread: dict[tuple[int, float], tuple[Tensor, Tensor]] = {}
        self._looked: tuple[list[int], list[int]] = [0], []  # folds of a first and of a second look

    def tune(self, candidates: list[Candidate], clock: Clock) -> Tuned:
        """Look at all, go on with the better half, then with the best few on every fold; mix what remains."""
        first = self._first_folds()
        looks = clock.part(0.6)
        self._train(product(candidates[:3], first[:1]), looks, at_least=3)
        affordable = first[: self._affordable(len(candidates), looks)]
        everywhere = range(len(self.folds))
        if len(affordable) < len(first) and self._judged(affordable).numel() < TOO_FEW:
            # what so few nodes say is luck: the likeliest are taken as they are
            self._train(_fold_by_fold(candidates[: FINALISTS + 1], everywhere), clock)
            return self.choose()
        first, second = affordable, []
        if len(first) < len(self.folds) and self._judged(first).numel() < ENOUGH_FOLD_LABELS:
            second = [len(first)]
        self._looked = first, second
        self._train(product(candidates, first), looks)
        if not clock.over():
            better = list(self._merits(first))[: max(FINALISTS, len(candidates) // 2)]
            self._train(product(self._with_plain(better), second), clock.part(0.5))
            best = self._close()[:FINALISTS]
            self._train(_fold_by_fold(self._with_plain(best), everywhere), clock)
            for more in range(1, SEEDS):
                self._train(product(best[: FINALISTS - more], everywhere), clock, more)
        return self.choose()

    def again(self, candidates: list[Candidate], clock: Clock) -> None:
        """Train these on every fold, as often and as far as time goes: the choice is made already."""
        for more in range(SEEDS):
            self._train(_fold_by_fold(candidates, range(len(self.folds))), clock, more)

    def _first_folds(self) -> list[int]:
        """So many folds that there are nodes enough to judge by."""
        count, judges = 0, 0
        while count < len(self.folds) and judges < ENOUGH:
            judges += self.folds[count].val.numel()
            count += 1
        return list(range(count))

    def _affordable(self, candidates: int, clock: Clock) -> int:
        """On how many folds all candidates can be looked at in this time; one at least."""
        taken = [run.seconds for run in self.trainer.outcomes if not run.job.candidate.linear]
        if not taken:
            return 1
        cores = torch.get_num_threads() if self.prepared.device.type == "cpu" else 1
        return max(1, int(clock.left() * cores * len(taken) / (sum(taken) * candidates)))

    def _with_plain(self, candidates: list[Candidate]) -> list[Candidate]:
        """These, and the best one that looks at no edge, if none of them is such a one."""
        plain = [each for each in self._merits(self._looked[0]) if each.alone]
        return candidates if any(each.alone for each in candidates) else [*candidates, *plain[:1]]

    def _train(self, runs: Iterable[tuple[Candidate, int]], clock: Clock, more: int = 0, at_least: int = 0) -> None:
        """Candidates on folds, in this order, what is not done yet; ``more`` numbers further runs of the same."""
        done = {each.job for each in self.trainer.outcomes}
        # a linear model would come out the same again
        jobs = [
            Job(each, fold, 100 * self.seed + 10 * more + fold) for each, fold in runs if not (more and each.linear)
        ]
        self.trainer.train([job for job in jobs if job not in done], clock, at_least)

    def _merits(self, folds: list[int]) -> dict[Candidate, float]:
        """What the candidates that have done these folds are worth there, the best first."""
        target = self._judged(folds)
        merits = {each: merit(self._answer(runs, folds), target) for each, runs in self._by_candidate(folds).items()}
        return dict(sorted(merits.items(), key=lambda each: -each[1]))

    def _close(self) -> list[Candidate]:
        """The best candidate and those that are not clearly worse: after the second look, if the best came to it."""
        first, second = self._looked
        merits = self._merits(first)
        again = self._merits(first + second) if second else {}
        if again and next(iter(merits)) in again:
            return _not_worse(again, self._judged(first + second))
        return _not_worse(merits, self._judged(first))

    def _judges(self, folds: list[int]) -> Tensor:
        """These folds' judging nodes."""
        return torch.cat([self.folds[fold].val for fold in folds])

    def _judged(self, folds: list[int]) -> Tensor:
        """Their classes."""
        return self.y[self._judges(folds)]

    def _by_candidate(self, folds: list[int]) -> dict[Candidate, list[Outcome]]:
        found: dict[Candidate, list[Outcome]] = {}
        for outcome in self.trainer.outcomes:
            found.setdefault(outcome.job.candidate, []).append(outcome)
        return {each: runs for each, runs in found.items() if {run.job.fold for run in runs} >= set(folds)}

    @staticmethod
    def _answer(runs: list[Outcome], folds: list[int], partner: bool = False) -> Tensor:
        """What a candidate says about the judging nodes of these folds, by its runs that did not learn from them."""
        said = []
        for fold in folds:
            of_fold = [run.partner if partner else run.answer for run in runs if run.job.fold == fold]
            said.append(torch.stack(of_fold).mean(0))
        return torch.cat(said)

    def _propagated(self, folds: list[int]) -> tuple[float, Tensor]:
        """Label propagation on these folds, with the better α."""
        target = self._judged(folds)
        run_on_cores(lambda each: self._spread_from(*each), product(folds, ALPHAS))
        answers = {alpha: torch.cat([self._spread_from(fold, alpha) for fold in folds]) for alpha in ALPHAS}
        alpha = max(answers, key=lambda each: merit(answers[each], target))
        return alpha, answers[alpha]

    def _spread_from(self, number: int, alpha: float, elsewhere: bool = False) -> Tensor:
        """What label propagation says about the judging nodes of a fold, or about nodes that no fold learns from."""
        if (number, alpha) not in self._spread:
            fold = self.folds[number]
            answer = self.prepared.spread(self.y, fold.train, self.prepared.num_classes, alpha)
            self._spread[number, alpha] = answer[fold.val], answer[self.trainer.unseen]
        return self._spread[number, alpha][elsewhere]

    def _cooling(
        self, parts: list[tuple[list[Outcome], float]], spread: tuple[float, float], heat: float, partner: bool = False
    ) -> float | None:
        """How much colder a mixture (runs and their weight) is over all folds than in one; None if none can tell."""
        if self.trainer.unseen.numel() < UNSEEN:
            return None
        said = []
        for fold in self._done_by([runs for runs, _ in parts]):
            mixed = spread[1] * self._spread_from(fold, spread[0], elsewhere=True) if spread[1] else torch.zeros(())
            for runs, share in parts:
                of_fold = [run.partner_elsewhere if partner else run.elsewhere for run in runs if run.job.fold == fold]
                mixed = mixed + share * torch.stack(of_fold).mean(0)
            said.append(mixed)
        return ensemble_temperature_ratio(torch.stack(said), heat) if said else None

    def choose(self) -> Tuned:
        """The mixture of what has been trained so far, judged on the folds that the best have done."""
        folds = self._common_folds()
        done = self._by_candidate(folds)
        target = self._judged(folds)
        answers = {each: self._answer(runs, folds) for each, runs in done.items()}
        merits = {each: merit(answer, target) for each, answer in answers.items()}
        alpha, propagated = self._propagated(folds)
        heard = self.prepared.data.edge_index.numel() > 0
        if (
            heard and target.numel() < ENOUGH_FOR_GREEDY
        ):  # by luck it would often be close, and it knows nothing of features
            heard = merit(propagated, target) >= max(merits.values())
        good = _not_worse(merits, target)
        voices = [*(answers[each] for each in good), *([propagated] if heard else [])]
        weights = ensemble_weights(voices, target)
        mixed = _mixed(weights, voices)
        chosen = {each.name: weight for each, weight in zip(good, weights, strict=False) if weight > 0}
        partners = {each: self._answer(runs, folds, partner=True) for each, runs in done.items() if each.cold}
        partner = max(partners, key=lambda each: merit(partners[each], target))
        plain = [each for each in answers if each.alone]
        best_plain = max(plain, key=merits.__getitem__)
        best_network = max([each for each in plain if not each.linear] or [best_plain], key=merits.__getitem__)
        heat, partner_heat = temperature_scaling(mixed, target), temperature_scaling(partners[partner], target)
        spread = (alpha, weights[-1] if heard else 0.0)
        parts = [(done[each], chosen[each.name]) for each in answers if each.name in chosen]
        cold = self._cooling(parts, spread, heat) or 1.0
        partner_cold = self._cooling([(done[partner], 1.0)], (alpha, 0.0), partner_heat, partner=True) or 1.0
        return Tuned(
            outcomes=[run for runs, _ in parts for run in runs],
            weights=chosen,
            spread=spread,
            temperature=heat * cold,
            shift=class_shift(with_temperature(mixed, heat), target),
            cooling=cold,
            partner=partner.name,
            partner_runs=done[partner],
            partner_temperature=partner_heat * partner_cold,
            partner_cooling=partner_cold,
            seen=self._seen(),
            validation={
                "mixture": accuracy(mixed, target),
                "mlp": accuracy(answers[best_plain], target),
                "label propagation": accuracy(propagated, target),
            },
            judges=self._judges(folds),
            answer=with_temperature(mixed, heat),
            candidates={each.name: each for each in self._by_candidate([])},
            plain_runs=done[best_network],
        )

    def keep(self, tuned: Tuned) -> Tuned | None:
        """The choice made elsewhere with this tuner's runs in its place, calibrated anew; None if runs are missing.

        A partner that has not been trained again stays as it was.
        """
        runs = {each.name: found for each, found in self._by_candidate([]).items()}
        if any(name not in runs for name in tuned.weights):
            return None
        kept = dataclasses.replace(tuned, outcomes=[run for name in tuned.weights for run in runs[name]])
        alpha, weight = tuned.spread
        if folds := self._done_by([runs[name] for name in tuned.weights]):
            answers = [self._answer(runs[name], folds) for name in tuned.weights]
            if weight:
                answers.append(torch.cat([self._spread_from(fold, alpha) for fold in folds]))
            mixed, target = _mixed([*tuned.weights.values(), weight], answers), self._judged(folds)
            heat = temperature_scaling(mixed, target)
            parts = [(runs[name], share) for name, share in tuned.weights.items()]
            kept.shift = class_shift(with_temperature(mixed, heat), target)
            kept.temperature = heat * (self._cooling(parts, tuned.spread, heat) or tuned.cooling)
        if alone := runs.get(tuned.partner):
            folds = self._done_by([alone])
            heat = temperature_scaling(self._answer(alone, folds, partner=True), self._judged(folds))
            kept.partner_runs = alone
            kept.partner_temperature = heat * (
                self._cooling([(alone, 1.0)], (alpha, 0.0), heat, partner=True) or tuned.partner_cooling
            )
        return kept

    def _done_by(self, each: list[list[Outcome]]) -> list[int]:
        """The folds that all of these have done."""
        return sorted(set(range(len(self.folds))).intersection(*({run.job.fold for run in runs} for runs in each)))

    def _seen(self) -> dict[str, float]:
        """Validation accuracy of every candidate on the folds it has done."""
        found = {}
        for each, runs in self._by_candidate([]).items():
            folds = sorted({run.job.fold for run in runs})
            found[each.name] = accuracy(self._answer(runs, folds), self._judged(folds))
        return found

    def _common_folds(self) -> list[int]:
        """As many folds as a plain MLP has done and, if possible, the best candidate.

        Otherwise the best would lose its say because a quicker one has done one fold more. Where few nodes judge, it
        is not known which is the best: then so many of the best as may be finalists.
        """
        good = self._close()[: FINALISTS if self._judged(self._looked[0]).numel() < ENOUGH_FOR_GREEDY else 1]
        for company in range(len(good), -1, -1):
            for count in range(len(self.folds), 0, -1):
                done = self._by_candidate(list(range(count)))
                if len(done.keys() & set(good)) >= company and any(each.alone for each in done):
                    return list(range(count))
        raise KeyboardInterrupt  # stopped before the first run had ended


def _not_worse(merits: dict[Candidate, float], target: Tensor) -> list[Candidate]:
    """Those that are behind the best by no more than is worth a try, or than chance on so many judging nodes."""
    least = max(merits.values(), default=0.0) - max(MERIT_TOLERANCE, max(1, target.numel()) ** -0.5)
    return [each for each, worth in merits.items() if worth >= least]


def _fold_by_fold(candidates: list[Candidate], folds: Iterable[int]) -> Iterable[tuple[Candidate, int]]:
    """All candidates on one fold, then all on the next."""
    return ((each, fold) for fold in folds for each in candidates)


def _mixed(weights: list[float], answers: list[Tensor]) -> Tensor:
    """Σ w p over as many answers as there are."""
    return torch.stack([weight * answer for weight, answer in zip(weights, answers, strict=False)]).sum(0)
