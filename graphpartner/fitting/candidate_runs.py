"""Train candidates: one candidate on one fold per job, several jobs side by side, none beyond its time.

A linear candidate has the form of every other, since X W = relu(X W) − relu(−X W): with W^(1) = [W, −W] and
W^(2) = [I; −I], the MLP partner computes X W, and the graph branch A^l X W, which is SGC (Wu et al., 2019). It trains
in seconds where a network takes minutes.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from graphpartner.fitting.candidates import Candidate
from graphpartner.fitting.clock import Clock
from graphpartner.fitting.folds import Fold
from graphpartner.fitting.layouts import CandidateGraphs
from graphpartner.model.gpnn import GPNNOutput, forward
from graphpartner.system.parallel import run_on_cores
from graphpartner.training.batch import Batch
from graphpartner.training.loop import train_replicas
from graphpartner.training.prepared import Labelled, PreparedGraph, restrict_to_labelled

DECAYS = (1e-2, 1e-3, 1e-4, 1e-5)
STEPS = 25  # of L-BFGS, for every decay
MEMORY = 10
MAX_UNSEEN = 1000


@dataclass(frozen=True)
class Job:
    """One run: a candidate, the number of a fold, a seed."""

    candidate: Candidate
    fold: int
    seed: int


@dataclass(frozen=True)
class Outcome:
    """A finished run: its weights, and its predictions for nodes it did not learn from."""

    job: Job
    weight1: Tensor
    weight2: Tensor
    val: Tensor
    """[m, C], probabilities for the fold's validation nodes, by both branches together"""
    val_partner: Tensor
    """[m, C], the same by the MLP partner"""
    unseen: Tensor
    """[s, C], probabilities for nodes outside all folds, by both branches together"""
    unseen_partner: Tensor
    """[s, C], the same by the MLP partner"""
    seconds: float


class CandidateRuns:
    """Runs jobs on one graph and keeps every outcome, also those of a call that was interrupted.

    Args:
        graphs: the graph, laid out for the candidates.
        y: labels [n]; only those of a job's fold are read.
        folds: the folds that jobs refer to.
        on_run: called after every run.
    """

    def __init__(self, graphs: CandidateGraphs, y: Tensor, folds: list[Fold], on_run: Callable[[], None]) -> None:
        self.graphs, self.y, self.folds, self.on_run = graphs, y, folds, on_run
        self.unseen = _unseen(graphs.num_nodes, folds)
        self.outcomes: list[Outcome] = []
        self._warm = False
        self._lock = threading.Lock()

    def train(self, jobs: list[Job], clock: Clock, at_least: int = 0) -> None:
        """Run the jobs in order as long as there is time: a run that would probably not end is not begun.

        Args:
            jobs: what to run.
            clock: until when.
            at_least: number of jobs that are begun in any case, and end with their best so far when time is over.
        """
        problems = {job.candidate: self.graphs.problem(job.candidate) for job in jobs}
        begun = 0

        def work(job: Job) -> None:
            nonlocal begun
            with self._lock:
                must = begun < at_least and not clock.stopped.is_set()
                if not must and clock.left() < self.expected_seconds(job.candidate):
                    return
                begun += 1
            limit = max(clock.left() if not must else 1.5 * max(clock.left(), 2.0), 1.0)
            self._run(job, problems[job.candidate], Clock(limit, clock.stopped))

        try:
            if jobs and not self._warm:
                self._warm_up(jobs, problems)
            if self.graphs.device.type == "cpu":
                run_on_cores(work, jobs, clock.stopped)
            else:
                for job in jobs:
                    work(job)
        except KeyboardInterrupt:
            clock.stop()  # what has been learned so far is kept

    def expected_seconds(self, candidate: Candidate) -> float:
        """Return how long a run of this candidate may take: the mean of its own runs, or else of all runs."""
        own = [each.seconds for each in self.outcomes if each.job.candidate == candidate]
        seconds = own or [each.seconds for each in self.outcomes]
        return sum(seconds) / len(seconds) if seconds else 0.0

    def _warm_up(self, jobs: list[Job], problems: dict[Candidate, PreparedGraph]) -> None:
        """Train one epoch of the last job and of the first: compiling loops is not part of any run's time."""
        for job in (jobs[-1], jobs[0]):
            batch = Batch(problems[job.candidate], [job.candidate.settings], [job.seed], *self._labelled(job))
            batch.step()
            batch.validate()
        self._warm = True

    def _labelled(self, job: Job) -> tuple[Labelled, Labelled]:
        """Return a job's training and validation nodes."""
        fold, device = self.folds[job.fold], self.graphs.device
        train, val = (Labelled(part.to(device), self.y[part].to(device), None) for part in (fold.train, fold.val))
        return train, val

    def _weights(self, job: Job, problem: PreparedGraph, clock: Clock) -> tuple[Tensor, Tensor]:
        """Train and return W^(1) and W^(2)."""
        settings, (train, val) = job.candidate.settings, self._labelled(job)
        if job.candidate.ignores_graph:
            problem, train, val = restrict_to_labelled(problem, train, val)
        if job.candidate.linear:
            return fit_linear(problem, settings.alpha, train, val, clock)
        batch = Batch(problem, [settings], [job.seed], train, val)
        weight1, weight2 = train_replicas(batch, lambda amount: None, clock.over).weights
        return weight1[0], weight2[0]

    def _run(self, job: Job, problem: PreparedGraph, clock: Clock) -> None:
        start = time.monotonic()
        weight1, weight2 = self._weights(job, problem, clock)
        out = output(problem, weight1, weight2, job.candidate.settings.alpha)
        val, unseen = self.folds[job.fold].val.to(self.graphs.device), self.unseen.to(self.graphs.device)
        both, partner = (logits.softmax(-1) for logits in (out.logits, out.mlp_logits))
        outcome = Outcome(
            job, weight1.cpu(), weight2.cpu(), both[val].cpu(), partner[val].cpu(), both[unseen].cpu(),
            partner[unseen].cpu(), time.monotonic() - start,
        )  # fmt: skip
        with self._lock:
            self.outcomes.append(outcome)
            self.on_run()


def _unseen(num_nodes: int, folds: list[Fold]) -> Tensor:
    """Draw at most ``MAX_UNSEEN`` nodes that are in no fold."""
    free = torch.ones(num_nodes, dtype=torch.bool)
    for fold in folds:
        free[fold.train] = free[fold.val] = False
    nodes = free.nonzero().squeeze(1)
    return nodes[torch.randperm(nodes.numel(), generator=torch.Generator().manual_seed(0))[:MAX_UNSEEN]]


@torch.no_grad()
def output(problem: PreparedGraph, weight1: Tensor, weight2: Tensor, alpha: float) -> GPNNOutput:
    """Return both branches' logits on every node, without dropout; propagation has C columns."""
    return forward(problem.X, weight1, weight2, problem.propagate, alpha, smooth=False)


def as_network(weight: Tensor) -> tuple[Tensor, Tensor]:
    """Return W^(1) [d, 2C] and W^(2) [2C, C] that together equal W [d, C]."""
    identity = torch.eye(weight.shape[1], device=weight.device)
    return torch.cat([weight, -weight], 1), torch.cat([identity, -identity])


def fit_linear(
    problem: PreparedGraph, alpha: float, train: Labelled, val: Labelled, clock: Clock
) -> tuple[Tensor, Tensor]:
    r"""Fit a linear model and return its weights as a network's.

    .. math::
        \min_W \; \frac{1}{m} \sum_i - \log \mathrm{softmax}(\hat{y}_i)_{y_i} + \lambda \|W\|^2

    by L-BFGS, from the largest λ to the smallest, each beginning where the last one ended, until the loss on validation
    nodes no longer falls.

    Args:
        problem: the graph.
        alpha: α, the weight of a node's own features.
        train: nodes to learn from.
        val: nodes to choose λ by.
        clock: when to stop with the best so far.
    """
    size = problem.X.shape[1], problem.num_classes
    weight = torch.zeros(size, device=train.index.device, requires_grad=True)

    def nll(nodes: Labelled) -> Tensor:
        own = problem.X @ weight
        logits = own if alpha == 1 else torch.lerp(problem.propagate(own), own, alpha)
        return F.cross_entropy(logits[nodes.index], nodes.target)

    best, best_weight = float("inf"), weight.detach().clone()
    for decay in DECAYS:
        optimizer = torch.optim.LBFGS([weight], max_iter=STEPS, history_size=MEMORY, line_search_fn="strong_wolfe")

        def loss(optimizer: torch.optim.LBFGS = optimizer, decay: float = decay) -> Tensor:
            optimizer.zero_grad()
            cost = nll(train) + decay * weight.square().sum()
            cost.backward()
            return cost

        optimizer.step(loss)
        with torch.no_grad():
            val_nll = float(nll(val))
        if val_nll >= best:  # a smaller λ is worse, and one smaller still will be
            break
        best, best_weight = val_nll, weight.detach().clone()
        if clock.over():
            break
    return as_network(best_weight)
