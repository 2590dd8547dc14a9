"""From a graph with some labels to a model and an honest estimate of how good it is.

What was decided and why, as sentences for a person, with the validation figures behind them.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from graphpartner.enhance.plan import plan_enhancement, working_memory
from graphpartner.fitting.candidate_runs import Outcome, output
from graphpartner.fitting.candidates import Candidate, Traits, candidates
from graphpartner.fitting.clock import Clock
from graphpartner.fitting.fitted_model import FittedModel, Member
from graphpartner.fitting.folds import Fold, fold_parts, folds, hold_out, is_few
from graphpartner.fitting.layouts import CandidateGraphs, density
from graphpartner.fitting.scores import accuracy, score_answers
from graphpartner.fitting.tuning import Tuned, Tuner
from graphpartner.graph.checks import MASKS
from graphpartner.graph.record import GraphRecord
from graphpartner.model.calibration import temperature_scaling
from graphpartner.model.label_propagation import majority_class
from graphpartner.system.device import pick_device
from graphpartner.system.errors import InputError
from graphpartner.system.progress import Progress, silent

ESTIMATE_FOLDS = 5
SPARSE = 0.25  # share of non-zero features below which a graph's features are called sparse
HELD_OUT = "held out, never used for choosing"


@dataclass
class Reference:
    """A simple method on the nodes the model was measured on: probabilities [m, C]."""

    name: str
    answer: Tensor


class Fit:
    """One fit: the graph, its time, and what was found out on the way.

    Args:
        data: x, edge_index, y with −1 for unlabelled nodes; train, val and test masks are used where they are there.
        classes: names of the classes.
        budget: seconds.
        seed: of split and training.
        device: where.
        progress: told how much of the time is over.
        say: told every decision, as a sentence.
    """

    def __init__(
        self,
        data: GraphRecord,
        classes: list[Any],
        budget: float = 120.0,
        seed: int = 0,
        device: str | torch.device = "auto",
        progress: Progress = silent,
        say: Callable[[str], None] = lambda sentence: None,
    ) -> None:
        self.data, self.classes, self.seed = data, classes, seed
        self.clock = Clock(budget)
        self.budget, self.progress, self.say = budget, progress, say
        self.prepared = CandidateGraphs(data, len(classes), pick_device(device))
        self.labelled = (data.y >= 0).nonzero().squeeze(-1)
        if torch.unique(data.y[self.labelled]).numel() < 2:
            raise InputError("labelled nodes of at least 2 classes are needed")
        self.decisions: list[str] = []

    def run(self, ids: list[Any], encoder: Any = None) -> FittedModel:
        """Choose, train, measure."""
        y, test, few = self.data.y, None, is_few(self.data.y)
        checked = ""
        self.traits = self._traits(few)
        if any(self.data.get(name) is not None for name in MASKS):
            train, val, test = self._own_split()
            split = [Fold(train, val)] if val.numel() else folds(y, train, self.seed)
            known = torch.cat([train, val])
            self._decide(
                f"The split is the file's own: {train.numel():,} nodes to learn from, {val.numel():,} to choose by, "
                f"{test.numel():,} to test."
            )
            tuned = self._tune(split, self.clock)
            scores = self._scores(*self._answers(tuned, known, test), y[test], HELD_OUT) if test.numel() else None
        elif few:
            known = self.labelled
            self._decide(f"There are only {known.numel():,} labelled nodes: the model learns from all of them.")
            tuner = self._tuner(folds(y, known, self.seed))
            tuned = tuner.tune(candidates(self.traits), self.clock.part(0.55))
            if tuned.judges.numel() == known.numel():
                scores = self._cross_validated()
            else:  # there is no time to do all of it again: what there is, is for this
                tuned = tuner.tune(candidates(self.traits), self.clock.part(0.95))
                scores = self._validated(tuned)
        else:
            kept, test = hold_out(y, self.labelled, self.seed)
            known = kept
            self._decide(
                f"{test.numel():,} of {self.labelled.numel():,} labelled nodes were held out for the estimate."
            )
            tuner = self._tuner(folds(y, kept, self.seed))
            tuned = tuner.tune(candidates(self.traits), self.clock.part(0.7))
            affordable = self._can_learn_again(tuned)
            if not affordable:  # then all of the time is for this
                tuned = tuner.tune(candidates(self.traits), self.clock.part(0.9))
            answer, rivals = self._answers(tuned, known, test)
            scores = self._scores(answer, rivals, y[test], HELD_OUT)
            again = self._again(tuned) if affordable else None
            if again is not None:
                tuned, known = again, self.labelled
            elif tuned.spread[1]:  # which costs nothing
                known = self.labelled
                self._decide("Label propagation also starts from the nodes that were held out for the estimate.")
            tuned = tuned.warmer(temperature_scaling(answer, y[test]))  # changes no answer, so the estimate stands
            checked = f" and the {test.numel():,} held out"
        for sentence in explain_fit(tuned, self.traits, checked):
            self._decide(sentence)
        model = self._model(tuned, known, ids, encoder)
        model.about = {
            "scores": scores,
            "decisions": self.decisions,
            "validation": tuned.validation | {"nodes": tuned.judges.numel()},
            "tried": tuned.seen,
            "split": {"learned": known.numel(), "test": None if test is None else test.tolist()},
            "seconds": time.monotonic() - self.clock.start,
            "interrupted": self.clock.stopped.is_set(),
        }
        return model

    def _own_split(self) -> tuple[Tensor, Tensor, Tensor]:
        """The labelled nodes of each part of the file's split; without a train_mask all others are learned from."""
        nobody, labelled = torch.zeros_like(self.data.y, dtype=torch.bool), self.data.y >= 0
        train, val, test = (self.data.get(name) for name in MASKS)
        val, test = (nobody if mask is None else mask & labelled for mask in (val, test))
        train = labelled & ~val & ~test if train is None else train & labelled
        if torch.unique(self.data.y[train]).numel() < 2:
            raise InputError("train_mask: labelled nodes of at least 2 classes are needed to learn from")
        return train.nonzero().squeeze(-1), val.nonzero().squeeze(-1), test.nonzero().squeeze(-1)

    def _decide(self, sentence: str) -> None:
        self.decisions.append(sentence)
        self.say(sentence)

    def _tell(self) -> None:
        spent = time.monotonic() - self.clock.start
        self.progress(int(min(spent, self.budget)), max(1, int(self.budget)))

    def _traits(self, few: bool) -> Traits:
        x, edge_index = self.data.x, self.data.edge_index
        values = x.values() if x.layout == torch.sparse_csr else x
        sparse, counts = density(x) < SPARSE, bool((values >= 0).all())
        enhance = False
        if edge_index.numel():
            plan = plan_enhancement(x, edge_index)
            memory = plan.output_bytes + plan.working_bytes
            affordable = plan.seconds < 0.05 * self.budget and memory < working_memory(None, torch.device("cpu"))
            enhance = affordable and plan.kept < 5 * edge_index.shape[1]
            if not enhance:
                why = (
                    "most of the graph would become neighbours"
                    if affordable
                    else "it would take too long or too much memory"
                )
                self._decide(f"Enhancement is left out: {plan.kept:,.0f} pairs would be added, {why}.")
        else:
            self._decide("There are no edges: this is an MLP.")
        return Traits(bool(edge_index.numel()), sparse, counts, few, enhance)

    def _tuner(self, split: list[Fold], seed: int | None = None) -> Tuner:
        return Tuner(self.prepared, self.data.y, split, self.seed if seed is None else seed, self._tell)

    def _tune(self, split: list[Fold], clock: Clock, seed: int | None = None) -> Tuned:
        return self._tuner(split, seed).tune(candidates(self.traits), clock)

    def _answers(self, tuned: Tuned, known: Tensor, test: Tensor) -> tuple[Tensor, list[Reference]]:
        """What the model and its rivals say about the test nodes."""
        model = self._model(tuned, known, [], None)
        answer = model.answer(self.prepared.device).both[test]
        y, C = self.data.y, len(self.classes)
        rivals = [Reference("majority", majority_class(y, known, C).expand(test.numel(), C))]
        runs = tuned.plain_runs
        problem = self.prepared.problem(runs[0].job.candidate)
        rivals.append(Reference("MLP", torch.stack([self._said(problem, run, test) for run in runs]).mean(0)))
        if self.traits.has_edges:
            rivals.append(Reference("label propagation", self.prepared.spread(y, known, C, tuned.spread[0])[test]))
        return answer, rivals

    def _said(self, problem: Any, run: Outcome, nodes: Tensor) -> Tensor:
        device = self.prepared.device
        out = output(problem, run.weight1.to(device), run.weight2.to(device), 1.0)
        return out.logits[nodes.to(device)].softmax(-1).cpu()

    def _scores(self, answer: Tensor, rivals: list[Reference], y: Tensor, how: str) -> dict[str, Any]:
        found = score_answers(answer, y, [str(name) for name in self.classes]).asdict()
        return found | {"how": how, "rivals": {each.name: accuracy(each.answer, y) for each in rivals}}

    def _validated(self, tuned: Tuned) -> dict[str, Any]:
        """Scores on the nodes that the mixture was chosen by, by runs that did not learn from them."""
        y, C = self.data.y, len(self.classes)
        found = score_answers(tuned.answer, y[tuned.judges], [str(name) for name in self.classes]).asdict()
        names = {"MLP": "mlp", "label propagation": "label propagation"} if self.traits.has_edges else {"MLP": "mlp"}
        common = majority_class(y, self.labelled, C).expand(tuned.judges.numel(), C)
        rivals = {"majority": accuracy(common, y[tuned.judges])}
        rivals |= {rival: tuned.validation[name] for rival, name in names.items()}
        return found | {"how": "not learned from, but the mixture was chosen by them", "rivals": rivals}

    def _cross_validated(self) -> dict[str, Any] | None:
        """The whole procedure again without each part of the labels, measured there."""
        tests = fold_parts(self.data.y, self.labelled, min(ESTIMATE_FOLDS, self.labelled.numel() // 2), self.seed + 1)
        done: list[tuple[Tensor, Tensor, list[Reference]]] = []
        for number, test in enumerate(tests):
            kept = self.labelled[~torch.isin(self.labelled, test)]
            if self.clock.stopped.is_set() or (done and self.clock.over()):  # one part is measured in any case
                break
            if not test.numel() or torch.unique(self.data.y[kept]).numel() < 2:
                continue
            split = folds(self.data.y, kept, self.seed + 2 + number, count=3)
            try:
                tuned = self._tune(split, self.clock.part(1 / (len(tests) - number)), seed=self.seed + 2 + number)
            except KeyboardInterrupt:
                break
            if self.clock.stopped.is_set():
                break
            done.append((test, *self._answers(tuned, kept, test)))
        if not done:
            return None
        self._decide(f"The estimate is a cross-validation of the whole procedure in {len(tests)} parts.")
        y = torch.cat([self.data.y[test] for test, _, _ in done])
        rivals = [
            Reference(each.name, torch.cat([others[i].answer for _, _, others in done]))
            for i, each in enumerate(done[0][2])
        ]
        how = f"never used for choosing: cross-validation of the whole procedure, {len(done)} of {len(tests)} parts"
        return self._scores(torch.cat([answer for _, answer, _ in done]), rivals, y, how)

    def _can_learn_again(self, tuned: Tuned) -> bool:
        """Whether there is time to train the chosen candidates on two folds at least."""
        needed = sum(run.seconds for run in tuned.outcomes) / max(1, len(tuned.outcomes)) * 2 * len(_chosen(tuned))
        return self.clock.left() * torch.get_num_threads() >= needed

    def _again(self, tuned: Tuned) -> Tuned | None:
        """The chosen candidates once more with the held-out labels, now that they have been measured."""
        tuner = self._tuner(folds(self.data.y, self.labelled, self.seed + 1), self.seed + 1)
        tuner.again(_chosen(tuned), self.clock)
        again = tuner.keep(tuned)
        if again is not None:
            self._decide("After the estimate, the model has also learned from the nodes that were held out for it.")
        return again

    def _model(self, tuned: Tuned, known: Tensor, ids: list[Any], encoder: Any) -> FittedModel:
        runs: dict[str, list[Outcome]] = {}
        for run in [*tuned.outcomes, *(run for run in tuned.partner_runs if tuned.partner not in tuned.weights)]:
            runs.setdefault(run.job.candidate.name, []).append(run)
        members = [
            Member(
                tuned.candidates[name],
                torch.stack([run.weight1 for run in each]),
                torch.stack([run.weight2 for run in each]),
                tuned.weights.get(name, 0.0),
                1.0 if name == tuned.partner else 0.0,
            )
            for name, each in runs.items()
        ]
        state = None if encoder is None else (encoder.asdict(), encoder.arrays())
        return FittedModel(
            self.data, ids, self.classes, members, known, tuned.spread, tuned.temperature,
            tuned.partner_temperature, state, {}, tuned.shift,
        )  # fmt: skip


def _chosen(tuned: Tuned) -> list[Candidate]:
    """The candidates that have a say, on nodes with edges or without."""
    return [tuned.candidates[name] for name in {*tuned.weights, tuned.partner}]


def explain_fit(tuned: Tuned, traits: Traits, checked: str = "") -> Iterator[str]:
    """Whether the graph helps, what the mixture is, whether it is enhanced, how it was calibrated.

    Args:
        tuned: what was decided.
        traits: what was known of the graph before.
        checked: which nodes calibration has seen besides those validated on.
    """
    found, judged = tuned.validation, f"on {tuned.judges.numel():,} validation nodes"
    if traits.has_edges:
        gain = found["mixture"] - found["mlp"]
        verdict = "helps" if gain > 0.005 else "hardly matters" if gain > -0.005 else "hurts"
        yield f"The graph {verdict}: {found['mixture']:.1%} with it, {found['mlp']:.1%} without, {judged}."
    shares = sorted(tuned.weights.items(), key=lambda each: -each[1])
    names = [f"{_described(tuned.candidates[name])} ({weight:.0%})" for name, weight in shares]
    if tuned.spread[1]:
        names.append(f"label propagation ({tuned.spread[1]:.0%})")
    what = f"a mixture of {len(tuned.outcomes)} runs: {', '.join(names)}" if shares else "label propagation alone"
    yield f"The model is {what}."
    if traits.enhance:
        yield _enhancement(tuned)
    yield f"Probabilities are calibrated with temperature {tuned.temperature:.2f}, {judged}{checked}."


def _described(candidate: Candidate) -> str:
    settings = candidate.settings
    if candidate.alone:
        return f"{'a linear model' if candidate.linear else 'an MLP'} that looks at no edge"
    what = ["linear"] if candidate.linear else []
    if settings.alpha < 1:
        what.append(f"{settings.num_steps} propagation steps, α = {settings.alpha:g}")
    if settings.beta < 1:
        what.append(f"enhanced with β = {settings.beta:g}")
    if candidate.hops:
        what.append(f"features of {candidate.hops} hop{'s' * (candidate.hops > 1)}")
    if candidate.links:
        what.append("links as features")
    return " + ".join(what)


def _enhancement(tuned: Tuned) -> str:
    pairs = [(name, name.removesuffix("-enhanced")) for name in tuned.seen if name.endswith("-enhanced")]
    both = [(tuned.seen[one], tuned.seen[other]) for one, other in pairs if other in tuned.seen]
    used = any(name.endswith("-enhanced") for name in tuned.weights)
    seen = f": {both[0][0]:.1%} with it, {both[0][1]:.1%} without, all else equal" if both else ""
    return f"Enhancement is {'part of the mixture' if used else 'not used'}{seen}."
