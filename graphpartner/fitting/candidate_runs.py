"""A linear softmax model as two weight matrices: trained in seconds where a network takes minutes.

It has the form of every other candidate, since X W = relu(X W) − relu(−X W): with W^(1) = [W, −W] and W^(2) = [I; −I],
the MLP partner says X W, and the graph branch A^l X W, which is SGC (Wu et al., 2019).

The runs of a fit: one candidate on one fold each, side by side, none longer than it may take.
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


def as_network(weight: Tensor) -> tuple[Tensor, Tensor]:
    """W^(1) [d, 2C] and W^(2) [2C, C] that do what W [d, C] does."""
    same = torch.eye(weight.shape[1], device=weight.device)
    return torch.cat([weight, -weight], 1), torch.cat([same, -same])


def fit_linear(
    problem: PreparedGraph, alpha: float, train: Labelled, val: Labelled, clock: Clock
) -> tuple[Tensor, Tensor]:
    r"""The weights, as a network's, with the λ after which the loss on validation nodes no longer falls.

    .. math::
        \min_W \; \frac{1}{m} \sum_i - \log \mathrm{softmax}(\hat{y}_i)_{y_i} + \lambda \|W\|^2

    by L-BFGS, from the largest λ to the smallest, each beginning where the last one ended.

    Args:
        problem: the graph.
        alpha: α, the weight of what a node's own features say.
        train: nodes to learn from.
        val: nodes to choose λ by.
        clock: when to stop with the best so far.
    """
    size = problem.X.shape[1], problem.num_classes
    weight = torch.zeros(size, device=train.index.device, requires_grad=True)

    def surprise(nodes: Labelled) -> Tensor:
        own = problem.X @ weight
        logits = own if alpha == 1 else torch.lerp(problem.propagate(own), own, alpha)
        return F.cross_entropy(logits[nodes.index], nodes.target)

    best, kept = float("inf"), weight.detach().clone()
    for decay in DECAYS:
        optimizer = torch.optim.LBFGS([weight], max_iter=STEPS, history_size=MEMORY, line_search_fn="strong_wolfe")

        def loss(optimizer: torch.optim.LBFGS = optimizer, decay: float = decay) -> Tensor:
            optimizer.zero_grad()
            cost = surprise(train) + decay * weight.square().sum()
            cost.backward()
            return cost

        optimizer.step(loss)
        with torch.no_grad():
            found = float(surprise(val))
        if found >= best:  # less restraint is worse, and still less will be
            break
        best, kept = found, weight.detach().clone()
        if clock.over():
            break
    return as_network(kept)


UNSEEN_AT_MOST = 1000


@dataclass(frozen=True)
class Job:
    """One run: a candidate, which fold, which seed."""

    candidate: Candidate
    fold: int
    seed: int


@dataclass(frozen=True)
class Outcome:
    """A finished run: its weights, and what it says about the nodes it did not learn from."""

    job: Job
    weight1: Tensor
    weight2: Tensor
    val: Tensor
    """the fold's judging nodes, by index"""
    answer: Tensor
    """[m, C], probabilities of both branches together there"""
    partner: Tensor
    """[m, C], the MLP partner's probabilities there"""
    elsewhere: Tensor
    """[s, C], both branches' probabilities on nodes that no fold learns from"""
    partner_elsewhere: Tensor
    """[s, C], the MLP partner's there"""
    seconds: float


class Trainer:
    """Runs jobs on one graph and keeps every outcome, also those of a call that was interrupted.

    Args:
        prepared: the graph.
        y: labels [n]; only those of a job's fold are read.
        folds: what a job's number of a fold stands for.
        tell: called after every run.
    """

    def __init__(self, prepared: CandidateGraphs, y: Tensor, folds: list[Fold], tell: Callable[[], None]) -> None:
        self.prepared, self.y, self.folds, self.tell = prepared, y, folds, tell
        self.unseen = _unseen(prepared.num_nodes, folds)
        self.outcomes: list[Outcome] = []
        self.warm = False
        self._lock = threading.Lock()

    def train(self, jobs: list[Job], clock: Clock, at_least: int = 0) -> None:
        """Run the jobs in order as long as there is time: a run is not begun that would probably not end.

        Args:
            jobs: what to run.
            clock: until when.
            at_least: so many are begun in any case, and end with the best they have when the time is over.
        """
        problems = {job.candidate: self.prepared.problem(job.candidate) for job in jobs}
        begun = 0

        def work(job: Job) -> None:
            nonlocal begun
            with self._lock:
                must = begun < at_least and not clock.stopped.is_set()
                if not must and clock.left() < self.expected(job.candidate):
                    return
                begun += 1
            limit = max(clock.left() if not must else 1.5 * max(clock.left(), 2.0), 1.0)
            self._one(job, problems[job.candidate], Clock(limit, clock.stopped))

        try:
            if jobs and not self.warm:
                self._warm(jobs, problems)
            if self.prepared.device.type == "cpu":
                run_on_cores(work, jobs, clock.stopped)
            else:
                for job in jobs:
                    work(job)
        except KeyboardInterrupt:
            clock.stop()  # what has been learned so far is kept

    def expected(self, candidate: Candidate) -> float:
        """Seconds that a run of this candidate may take: as long as its own did, or as all did on average."""
        own = [each.seconds for each in self.outcomes if each.job.candidate == candidate]
        taken = own or [each.seconds for each in self.outcomes]
        return sum(taken) / len(taken) if taken else 0.0

    def _warm(self, jobs: list[Job], problems: dict[Candidate, PreparedGraph]) -> None:
        """One epoch of the last job and one of the first: loops are compiled then, which is no run's own time."""
        for job in (jobs[-1], jobs[0]):
            batch = Batch(problems[job.candidate], [job.candidate.settings], [job.seed], *self._labelled(job))
            batch.step()
            batch.validate()
        self.warm = True

    def _labelled(self, job: Job) -> tuple[Labelled, Labelled]:
        """The nodes a job learns from, and those it judges by."""
        fold, device = self.folds[job.fold], self.prepared.device
        learn, judge = (Labelled(part.to(device), self.y[part].to(device), None) for part in (fold.train, fold.val))
        return learn, judge

    def _weights(self, job: Job, problem: PreparedGraph, clock: Clock) -> tuple[Tensor, Tensor]:
        """W^(1) and W^(2) after training."""
        settings, (learn, judge) = job.candidate.settings, self._labelled(job)
        if job.candidate.alone:
            problem, learn, judge = restrict_to_labelled(problem, learn, judge)
        if job.candidate.linear:
            return fit_linear(problem, settings.alpha, learn, judge, clock)
        batch = Batch(problem, [settings], [job.seed], learn, judge)
        weight1, weight2 = train_replicas(batch, lambda amount: None, clock.over).weights
        return weight1[0], weight2[0]

    def _one(self, job: Job, problem: PreparedGraph, clock: Clock) -> None:
        start = time.monotonic()
        fold, device = self.folds[job.fold], self.prepared.device
        weight1, weight2 = self._weights(job, problem, clock)
        out = output(problem, weight1, weight2, job.candidate.settings.alpha)
        judges, others = fold.val.to(device), self.unseen.to(device)
        both, partner = (logits.softmax(-1) for logits in (out.logits, out.mlp_logits))
        outcome = Outcome(
            job, weight1.cpu(), weight2.cpu(), fold.val, both[judges].cpu(), partner[judges].cpu(),
            both[others].cpu(), partner[others].cpu(), time.monotonic() - start,
        )  # fmt: skip
        with self._lock:
            self.outcomes.append(outcome)
            self.tell()


def _unseen(num_nodes: int, folds: list[Fold]) -> Tensor:
    """At most ``UNSEEN_AT_MOST`` nodes that no fold learns from or judges by, drawn at random."""
    free = torch.ones(num_nodes, dtype=torch.bool)
    for fold in folds:
        free[fold.train] = free[fold.val] = False
    nodes = free.nonzero().squeeze(1)
    return nodes[torch.randperm(nodes.numel(), generator=torch.Generator().manual_seed(0))[:UNSEEN_AT_MOST]]


@torch.no_grad()
def output(problem: PreparedGraph, weight1: Tensor, weight2: Tensor, alpha: float) -> GPNNOutput:
    """Both branches' opinions on every node, without dropout; C columns travel."""
    return forward(problem.X, weight1, weight2, problem.propagate, alpha, smooth=False)
