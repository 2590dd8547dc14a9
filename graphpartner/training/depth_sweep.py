"""Accuracy, Dirichlet energy and MADGap of one trained model at every number of propagation steps."""

import dataclasses
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from graphpartner.graph.record import GraphRecord
from graphpartner.model.metrics import accuracy
from graphpartner.smoothness.energy import dirichlet_energy
from graphpartner.smoothness.mad_gap import mad_gap
from graphpartner.system.errors import InputError
from graphpartner.training.runs import Runs


@dataclass(frozen=True)
class DepthSweep:
    """One trained model, evaluated at l = 1, 2, …; accuracies in percent, energies as tr(HᵀL̃H) (Eq. 5)."""

    seed: int
    trained_steps: int
    """The l of the training."""
    alpha: float
    steps: list[int]
    accuracy: list[float]
    """Of the whole model, α H^φ1 + (1 − α) H^φ2."""
    graph_accuracy: list[float]
    """Of the graph branch alone, H^φ2."""
    partner_accuracy: float
    """Of the MLP partner alone, H^φ1, which does not depend on l."""
    energy: list[float]
    """E(α H^φ1 + (1 − α) H^φ2)."""
    graph_energy: list[float]
    """E(H^φ2)."""
    partner_energy: float
    """E(H^φ1)."""
    mad_gap: list[float] | None = None
    """MADGap of α H^φ1 + (1 − α) H^φ2, if it was measured."""

    def asdict(self) -> dict[str, Any]:
        """Return the fields, for a JSON file."""
        return dataclasses.asdict(self)


def depth_sweep(
    runs: Runs, data: GraphRecord, max_steps: int = 64, run: int | None = None, with_mad_gap: bool = False
) -> DepthSweep:
    """Evaluate one trained model at every l from 1 to ``max_steps``, with one propagation pass.

    H^φ2 = A_en^l (H^(1) W^(2)) by linearity, so each step adds one sparse product on C columns.

    Args:
        runs: the result of :func:`graphpartner.train`.
        data: the graph of that training, with its ``test_mask``.
        max_steps: the largest l.
        run: index of the run; the one with the lowest validation loss if not given.
        with_mad_gap: also measure MADGap, with one search for hops for all depths.
    """
    if max_steps < 1:
        raise InputError(f"max_steps = {max_steps}: must be 1 or more")
    run = int(runs.val_loss.argmin()) if run is None else run
    settings, problem = runs.settings[run], runs.problem
    mask = data.test_mask if data.test_mask.dim() == 1 else data.test_mask[run]
    steps = list(range(1, max_steps + 1))

    def percent(logits: Tensor) -> float:  # 71.4, not 71.39999999999999
        return round(100 * float(accuracy(logits.cpu(), data.y, mask, torch.float64)), 6)

    rows: list[tuple[float, float, float, float]] = []
    embeddings: list[Tensor] = []
    with torch.no_grad():
        partner = torch.relu(problem.X @ runs.weight1[run]) @ runs.weight2[run]  # Eqs. 10 and 11
        graph = partner
        for _ in steps:
            graph = problem.propagate.matrix @ graph
            both = torch.stack([settings.alpha * partner + (1 - settings.alpha) * graph, graph])  # Eq. 14
            embeddings += [both[0]] if with_mad_gap else []
            energy = dirichlet_energy(both, data.edge_index).tolist()
            rows.append((percent(both[0]), percent(graph), energy[0], energy[1]))
        partner_energy = float(dirichlet_energy(partner, data.edge_index))
    whole, graph_branch, energies, graph_energies = (list(column) for column in zip(*rows, strict=True))
    return DepthSweep(
        seed=runs.seeds[run],
        trained_steps=settings.num_steps,
        alpha=settings.alpha,
        steps=steps,
        accuracy=whole,
        graph_accuracy=graph_branch,
        partner_accuracy=percent(partner),
        energy=energies,
        graph_energy=graph_energies,
        partner_energy=partner_energy,
        mad_gap=mad_gap(torch.stack(embeddings), data.edge_index).tolist() if with_mad_gap else None,
    )
