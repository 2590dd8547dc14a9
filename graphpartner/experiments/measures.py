"""What is measured of a finished run besides its accuracy: smoothness of its embeddings, bounds, layers."""

from typing import Any

import torch
from torch import Tensor

from graphpartner.baselines.runs import BaselineRuns
from graphpartner.experiments.graphs import Graph
from graphpartner.graph.features import row_normalized
from graphpartner.model.depths import to_depths
from graphpartner.model.gpnn import Output, forward
from graphpartner.smoothness.bounds import energy_bounds, partner_bounds
from graphpartner.smoothness.energy import dirichlet_energy
from graphpartner.smoothness.mad_gap import mad_gap_details
from graphpartner.smoothness.singular_values import squared_extremes
from graphpartner.train.runs import Runs

Measured = dict[str, Any]

GAPS = {"mad_gap", "mad_gap_smoothed"}
ENERGIES = {"energy", "relative_energy"}
PARTNER = {"graph_energy", "mixed_energy", "published_lower", "published_upper", "lower", "upper"}
LAYERS = {"layer_energy", "layer_s_min", "layer_s_max", "layer_lower", "layer_upper", "input_energy", "picture"}

PICTURED = 4  # the layer whose embedding the paper's Figure 1 shows


def of_gpnn(runs: Runs, run: int, graph: Graph, wanted: frozenset[str]) -> Measured:
    """The wanted measures of one run of GPNN.

    ``mad_gap`` is of the last layer's embedding α H^φ1 + (1 − α) H^φ2, ``mad_gap_smoothed`` of H^(l+1); ``energy`` is
    E(H^(l+1)), ``relative_energy`` the same over ‖H^(l+1)‖². The energies and bounds of Proposition 2 are in units of
    E(H^φ1).
    """
    if not wanted & (GAPS | ENERGIES | PARTNER):
        return {}
    settings, problem, edges = runs.settings[run], runs.problem, graph.data.edge_index
    with torch.no_grad():
        weights = runs.weight1[run : run + 1], runs.weight2[run : run + 1]
        propagate = to_depths(problem.propagate, [settings.num_steps])  # the runs beside it may have gone deeper
        out = Output(*(part[0].cpu() for part in forward(problem.X, *weights, propagate, settings.alpha)))
    found: Measured = {}
    if wanted & GAPS:
        found["mad_gap"] = float(mad_gap_details(out.logits, graph.pairs).gap)
        found["mad_gap_smoothed"] = float(mad_gap_details(out.smoothed, graph.pairs).gap)
    if wanted & ENERGIES:
        found["energy"] = float(dirichlet_energy(out.smoothed.double(), edges))
        found["relative_energy"] = found["energy"] / max(float(out.smoothed.double().square().sum()), 1e-300)
    if wanted & PARTNER:
        branches = torch.stack([out.mlp_logits, out.gcn_logits, out.logits]).double()
        own, smooth, mixed = dirichlet_energy(branches, edges).tolist()
        bounds = partner_bounds(settings.alpha, settings.num_steps, 1.0, graph.extremes)
        found |= {"graph_energy": smooth / own, "mixed_energy": mixed / own}
        for name in ("published_lower", "published_upper", "lower", "upper"):
            found[name] = float(getattr(bounds, name))
    return found


def of_baseline(runs: BaselineRuns, run: int, graph: Graph, wanted: frozenset[str], settings: Measured) -> Measured:
    """The wanted measures of one run of a baseline; lists hold one value a layer."""
    found: Measured = {}
    if wanted & GAPS:
        found["mad_gap"] = float(mad_gap_details(runs.logits[run], graph.pairs).gap)
    if wanted & LAYERS:
        found |= _of_layers(runs, run, graph, settings, draw="picture" in wanted)
    return found


def _of_layers(runs: BaselineRuns, run: int, graph: Graph, settings: Measured, draw: bool) -> Measured:
    """Energy, squared singular values and the bounds of Eq. 6 of every layer, and a picture of the fourth."""
    data = graph.data
    weights = [weight[run].cpu() for weight in runs.weights.values() if weight.dim() == 3 and weight.shape[1] > 1]
    layers = [layer[run].cpu() for layer in runs.layers]
    if len(layers) == len(weights) - 1:  # hidden layers alone: the last one are the logits
        layers.append(runs.logits[run])
    start = row_normalized(data.x.to_sparse_csr()).to_dense() if settings.get("features") == "row" else data.x
    bounds = energy_bounds([start, *layers], weights, data.edge_index, extremes=graph.extremes)
    squares = [squared_extremes(weight)["weight"] for weight in weights]
    found: Measured = {
        "layer_energy": bounds.energy.tolist(),
        "layer_lower": bounds.published_lower.tolist(),
        "layer_upper": bounds.published_upper.tolist(),
        "layer_s_min": [float(smallest) for smallest, _ in squares],
        "layer_s_max": [float(largest) for _, largest in squares],
        "input_energy": float(dirichlet_energy(start.double(), data.edge_index)),
    }
    if draw:  # one picture is enough
        points = picture(layers[min(PICTURED, len(layers)) - 1]) if runs.seeds[run] == 0 else None
        found["picture"] = {"points": points, "classes": data.y.tolist()} if points else None
    return found


def picture(embedding: Tensor) -> list[list[float]]:
    """The nodes in a plane by t-SNE, [n, 2], to one digit after the point."""
    from sklearn.manifold import TSNE

    scaled = embedding.double() / embedding.abs().max().clamp_min(1e-300)  # an embedding may have all but vanished
    perplexity = min(30.0, (len(scaled) - 1) / 3)
    plane = TSNE(init="random", perplexity=perplexity, random_state=0).fit_transform(scaled.numpy())
    return [[round(float(x), 1), round(float(y), 1)] for x, y in plane]
