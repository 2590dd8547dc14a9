"""Fit a graph with some labels: a model, an honest estimate of its accuracy, and what was decided and why."""

import time
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from graphpartner.enhance.plan import plan_enhancement, working_memory
from graphpartner.fitting.candidate_runs import Outcome, output
from graphpartner.fitting.candidates import Candidate, Traits, candidates_for
from graphpartner.fitting.clock import Clock
from graphpartner.fitting.fitted_model import FittedModel, Member
from graphpartner.fitting.folds import Fold, fold_parts, folds, hold_out, is_few
from graphpartner.fitting.layouts import CandidateGraphs, density
from graphpartner.fitting.scores import score_predictions
from graphpartner.fitting.tuning import Tuned, Tuner
from graphpartner.graph.checks import MASKS
from graphpartner.graph.record import GraphRecord
from graphpartner.model.calibration import temperature_scaling
from graphpartner.model.label_propagation import majority_class
from graphpartner.model.metrics import accuracy
from graphpartner.system.device import pick_device
from graphpartner.system.errors import InputError
from graphpartner.system.progress import Progress, silent

ESTIMATE_FOLDS = 5
SPARSE = 0.25  # share of non-zero features below which a graph's features are called sparse
HELD_OUT = "held out, never used for choosing"

References = dict[str, Tensor]
"""Probabilities [m, C] of simple methods for the nodes that the model is scored on, by name."""

Result = tuple[Tuned, Tensor, Tensor | None, dict[str, Any] | None]
"""The mixture, nodes whose labels were learned from, test nodes, and scores."""


class Fitter:
    """One fit of one graph.

    With a split of the file's own, the model is tuned on its training and validation nodes. With few labels, it is
    tuned on all of them, and the estimate comes from cross-validation of the whole procedure. Otherwise a fifth of the
    labelled nodes is held out for the estimate, and learned from afterwards.

    Args:
        data: x, edge_index, y with −1 for unlabelled nodes; train, val and test masks are used where they exist.
        classes: names of the classes.
        budget: seconds.
        seed: of split and training.
        device: ``"auto"``, ``"cpu"`` or ``"cuda"``.
        progress: called with the seconds spent and the budget.
    """

    def __init__(
        self,
        data: GraphRecord,
        classes: list[Any],
        budget: float = 120.0,
        seed: int = 0,
        device: str | torch.device = "auto",
        progress: Progress = silent,
    ) -> None:
        self.data, self.classes, self.seed = data, classes, seed
        self.clock, self.budget, self.progress = Clock(budget), budget, progress
        self.graphs = CandidateGraphs(data, len(classes), pick_device(device))
        self.labelled = (data.y >= 0).nonzero().squeeze(-1)
        if torch.unique(data.y[self.labelled]).numel() < 2:
            raise InputError("y: must have labelled nodes of at least 2 classes")
        self.decisions: list[str] = []

    def fit(self, ids: list[Any], encoder: Any = None) -> FittedModel:
        """Tune, train and score."""
        few, checked = is_few(self.data.y), ""
        self.traits = self._traits(few)
        if any(self.data.get(name) is not None for name in MASKS):
            tuned, learned, test, scores = self._fit_own_split()
        elif few:
            tuned, learned, test, scores = self._fit_few_labels()
        else:
            tuned, learned, test, scores = self._fit_held_out()
            checked = f" and the {test.numel():,} held out"
        self.decisions += explain_fit(tuned, self.traits, checked)
        model = self._model(tuned, learned, ids, encoder)
        model.card = {
            "scores": scores,
            "decisions": self.decisions,
            "validation": tuned.validation | {"nodes": tuned.val_nodes.numel()},
            "tried": tuned.tried,
            "split": {"learned": learned.numel(), "test": None if test is None else test.tolist()},
            "seconds": time.monotonic() - self.clock.start,
            "interrupted": self.clock.stopped.is_set(),
        }
        return model

    def _fit_own_split(self) -> Result:
        train, val, test = self._own_split()
        split = [Fold(train, val)] if val.numel() else folds(self.data.y, train, self.seed)
        learned = torch.cat([train, val])
        self.decisions.append(
            f"The split is the file's own: {train.numel():,} nodes to learn from, {val.numel():,} to choose by, "
            f"{test.numel():,} to test."
        )
        tuned = self._tuner(split).tune(candidates_for(self.traits), self.clock)
        scores = self._scores(*self._test_predictions(tuned, learned, test), test, HELD_OUT) if test.numel() else None
        return tuned, learned, test, scores

    def _fit_few_labels(self) -> Result:
        self.decisions.append(
            f"There are only {self.labelled.numel():,} labelled nodes: the model learns from all of them."
        )
        tuner = self._tuner(folds(self.data.y, self.labelled, self.seed))
        tuned = tuner.tune(candidates_for(self.traits), self.clock.part(0.55))
        if tuned.val_nodes.numel() == self.labelled.numel():
            scores = self._cross_validated()
        else:  # too slow to repeat everything for an estimate: the time is better spent on this
            tuned = tuner.tune(candidates_for(self.traits), self.clock.part(0.95))
            scores = self._validated(tuned)
        return tuned, self.labelled, None, scores

    def _fit_held_out(self) -> tuple[Tuned, Tensor, Tensor, dict[str, Any]]:
        learned, test = hold_out(self.data.y, self.labelled, self.seed)
        self.decisions.append(
            f"{test.numel():,} of {self.labelled.numel():,} labelled nodes were held out for the estimate."
        )
        tuner = self._tuner(folds(self.data.y, learned, self.seed))
        tuned = tuner.tune(candidates_for(self.traits), self.clock.part(0.7))
        affordable = self._can_retrain(tuned)
        if not affordable:  # then all of the time is for this
            tuned = tuner.tune(candidates_for(self.traits), self.clock.part(0.9))
        probabilities, references = self._test_predictions(tuned, learned, test)
        scores = self._scores(probabilities, references, test, HELD_OUT)
        retrained = None
        if affordable:
            tuner = self._tuner(folds(self.data.y, self.labelled, self.seed + 1), self.seed + 1)
            retrained = tuner.retrain(tuned, self.clock)
        if retrained is not None:
            tuned, learned = retrained, self.labelled
            self.decisions.append(
                "After the estimate, the model has also learned from the nodes that were held out for it."
            )
        elif tuned.label_prop[1]:  # which costs nothing
            learned = self.labelled
            self.decisions.append("Label propagation also starts from the nodes that were held out for the estimate.")
        # this changes no predicted class, so the estimate stands
        tuned = tuned.softened(temperature_scaling(probabilities, self.data.y[test]))
        return tuned, learned, test, scores

    def _own_split(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return the labelled nodes of the file's own split; without a train_mask, all others are for training."""
        nobody, labelled = torch.zeros_like(self.data.y, dtype=torch.bool), self.data.y >= 0
        train, val, test = (self.data.get(name) for name in MASKS)
        val, test = (nobody if mask is None else mask & labelled for mask in (val, test))
        train = labelled & ~val & ~test if train is None else train & labelled
        if torch.unique(self.data.y[train]).numel() < 2:
            raise InputError("train_mask: must have labelled nodes of at least 2 classes")
        return train.nonzero().squeeze(-1), val.nonzero().squeeze(-1), test.nonzero().squeeze(-1)

    def _on_run(self) -> None:
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
                cost = "it would take too long or too much memory"
                why = "most of the graph would become neighbours" if affordable else cost
                self.decisions.append(f"Enhancement is left out: {plan.kept:,.0f} pairs would be added, {why}.")
        else:
            self.decisions.append("There are no edges: this is an MLP.")
        return Traits(bool(edge_index.numel()), sparse, counts, few, enhance)

    def _tuner(self, split: list[Fold], seed: int | None = None) -> Tuner:
        return Tuner(self.graphs, self.data.y, split, self.seed if seed is None else seed, self._on_run)

    def _can_retrain(self, tuned: Tuned) -> bool:
        """Return whether there is time to train the chosen candidates on two folds at least."""
        mean = sum(run.seconds for run in tuned.outcomes) / max(1, len(tuned.outcomes))
        return self.clock.left() * torch.get_num_threads() >= mean * 2 * len(tuned.chosen)

    def _test_predictions(self, tuned: Tuned, learned: Tensor, test: Tensor) -> tuple[Tensor, References]:
        """Return the predictions of the model and of the references for the test nodes."""
        device = self.graphs.device
        probabilities = self._model(tuned, learned, [], None).predict(device).both[test]
        y, C = self.data.y, len(self.classes)
        problem = self.graphs.problem(tuned.plain_runs[0].job.candidate)
        plain = []
        for run in tuned.plain_runs:
            logits = output(problem, run.weight1.to(device), run.weight2.to(device), 1.0).logits
            plain.append(logits[test.to(device)].softmax(-1).cpu())
        references = {"majority": self._majority(learned, test), "MLP": torch.stack(plain).mean(0)}
        if self.traits.has_edges:
            references["label propagation"] = self.graphs.spread(y, learned, C, tuned.label_prop[0])[test]
        return probabilities, references

    def _majority(self, learned: Tensor, nodes: Tensor) -> Tensor:
        C = len(self.classes)
        return majority_class(self.data.y, learned, C).expand(nodes.numel(), C)

    def _scores(self, probabilities: Tensor, references: References, nodes: Tensor, how: str) -> dict[str, Any]:
        """Return the scores of predictions for some nodes, and the accuracy of the references there."""
        y = self.data.y[nodes]
        scores = score_predictions(probabilities, y, [str(name) for name in self.classes])
        shares = {name: float(accuracy(each, y)) for name, each in references.items()}
        return scores | {"how": how, "references": shares}

    def _validated(self, tuned: Tuned) -> dict[str, Any]:
        """Return scores on the nodes that the mixture was chosen by, by runs that did not learn from them."""
        majority = {"majority": self._majority(self.labelled, tuned.val_nodes)}
        how = "not learned from, but the mixture was chosen by them"
        scores = self._scores(tuned.val_probabilities, majority, tuned.val_nodes, how)
        scores["references"]["MLP"] = tuned.validation["mlp"]
        if self.traits.has_edges:
            scores["references"]["label propagation"] = tuned.validation["label propagation"]
        return scores

    def _cross_validated(self) -> dict[str, Any] | None:
        """Repeat the whole procedure without each part of the labels; return the scores there."""
        y = self.data.y
        tests = fold_parts(y, self.labelled, min(ESTIMATE_FOLDS, self.labelled.numel() // 2), self.seed + 1)
        done: list[tuple[Tensor, Tensor, References]] = []
        for number, test in enumerate(tests):
            kept = self.labelled[~torch.isin(self.labelled, test)]
            if self.clock.stopped.is_set() or (done and self.clock.over()):  # one part is measured in any case
                break
            if not test.numel() or torch.unique(y[kept]).numel() < 2:
                continue
            seed = self.seed + 2 + number
            tuner = self._tuner(folds(y, kept, seed, count=3), seed)
            try:
                tuned = tuner.tune(candidates_for(self.traits), self.clock.part(1 / (len(tests) - number)))
            except KeyboardInterrupt:
                break
            if self.clock.stopped.is_set():
                break
            done.append((test, *self._test_predictions(tuned, kept, test)))
        if not done:
            return None
        self.decisions.append(f"The estimate is a cross-validation of the whole procedure in {len(tests)} parts.")
        nodes, probabilities = (torch.cat(parts) for parts in ([part[0] for part in done], [part[1] for part in done]))
        references = {name: torch.cat([others[name] for _, _, others in done]) for name in done[0][2]}
        how = f"never used for choosing: cross-validation of the whole procedure, {len(done)} of {len(tests)} parts"
        return self._scores(probabilities, references, nodes, how)

    def _model(self, tuned: Tuned, learned: Tensor, ids: list[Any], encoder: Any) -> FittedModel:
        runs: dict[str, list[Outcome]] = {}
        for run in [*tuned.outcomes, *(run for run in tuned.partner_runs if tuned.partner not in tuned.weights)]:
            runs.setdefault(run.job.candidate.name, []).append(run)
        members = [
            Member(
                tuned.candidates[name],
                torch.stack([run.weight1 for run in outcomes]),
                torch.stack([run.weight2 for run in outcomes]),
                tuned.weights.get(name, 0.0),
                1.0 if name == tuned.partner else 0.0,
            )
            for name, outcomes in runs.items()
        ]
        state = None if encoder is None else (encoder.asdict(), encoder.arrays())
        return FittedModel(
            self.data, ids, self.classes, members, learned, tuned.label_prop, tuned.temperature,
            tuned.partner_temperature, state, {}, tuned.shift,
        )  # fmt: skip


def explain_fit(tuned: Tuned, traits: Traits, checked: str = "") -> Iterator[str]:
    """Yield sentences: whether the graph helps, what the mixture is, whether it is enhanced, how it was calibrated.

    Args:
        tuned: the chosen mixture.
        traits: of the graph.
        checked: which nodes calibration has seen besides validation nodes.
    """
    shares, where = tuned.validation, f"on {tuned.val_nodes.numel():,} validation nodes"
    if traits.has_edges:
        gain = shares["mixture"] - shares["mlp"]
        verdict = "helps" if gain > 0.005 else "hardly matters" if gain > -0.005 else "hurts"
        yield f"The graph {verdict}: {shares['mixture']:.1%} with it, {shares['mlp']:.1%} without, {where}."
    weights = sorted(tuned.weights.items(), key=lambda each: -each[1])
    names = [f"{_described(tuned.candidates[name])} ({weight:.0%})" for name, weight in weights]
    if tuned.label_prop[1]:
        names.append(f"label propagation ({tuned.label_prop[1]:.0%})")
    what = f"a mixture of {len(tuned.outcomes)} runs: {', '.join(names)}" if weights else "label propagation alone"
    yield f"The model is {what}."
    if traits.enhance:
        yield _enhancement(tuned)
    yield f"Probabilities are calibrated with temperature {tuned.temperature:.2f}, {where}{checked}."


def _described(candidate: Candidate) -> str:
    settings = candidate.settings
    if candidate.ignores_graph:
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
    pairs = [(name, name.removesuffix("-enhanced")) for name in tuned.tried if name.endswith("-enhanced")]
    both = [(tuned.tried[one], tuned.tried[other]) for one, other in pairs if other in tuned.tried]
    used = any(name.endswith("-enhanced") for name in tuned.weights)
    shares = f": {both[0][0]:.1%} with it, {both[0][1]:.1%} without, all else equal" if both else ""
    return f"Enhancement is {'part of the mixture' if used else 'not used'}{shares}."
