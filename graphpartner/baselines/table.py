"""All baselines by name, and one function that trains any of them with many seeds at once."""

import copy
from collections.abc import Iterable
from typing import Any

import torch
from torch_geometric.data import Data

from graphpartner.baselines.appnp import APPNP
from graphpartner.baselines.dagnn import DAGNN
from graphpartner.baselines.dgi import DGI
from graphpartner.baselines.dropedge import JKNetDropEdge
from graphpartner.baselines.gat import GAT
from graphpartner.baselines.gcn import GCN
from graphpartner.baselines.gcnii import GCNII
from graphpartner.baselines.grace import GRACE
from graphpartner.baselines.grand import GRAND
from graphpartner.baselines.graph import Graph
from graphpartner.baselines.jknet import JKNet
from graphpartner.baselines.mlp import MLP
from graphpartner.baselines.model import Model
from graphpartner.baselines.mvgrl import MVGRL
from graphpartner.baselines.presets import BaselinePreset, read_preset
from graphpartner.baselines.runs import BaselineRuns
from graphpartner.baselines.self_supervised import train_self_supervised
from graphpartner.baselines.sgc import SGC
from graphpartner.baselines.training import train_model
from graphpartner.errors import InputError
from graphpartner.graph.checks import check_graph
from graphpartner.progress import Progress, silent
from graphpartner.train.trainer import check_batch_size, check_seeds, pick_device

SUPERVISED: dict[str, type[Model]] = {
    "mlp": MLP,
    "gcn": GCN,
    "gat": GAT,
    "jknet": JKNet,
    "jknet-dropedge": JKNetDropEdge,
    "appnp": APPNP,
    "gcnii": GCNII,
    "sgc": SGC,
    "dagnn": DAGNN,
    "grand": GRAND,
}
SELF_SUPERVISED: dict[str, type[DGI | MVGRL | GRACE]] = {"dgi": DGI, "mvgrl": MVGRL, "grace": GRACE}
BASELINES = (*SUPERVISED, *SELF_SUPERVISED)


def baseline_settings(name: str, graph: str) -> BaselinePreset:
    """The settings of a baseline for a graph, with provenance and published accuracy; the defaults for other graphs."""
    _check(name)
    return read_preset(name, graph, SUPERVISED[name].Settings() if name in SUPERVISED else SELF_SUPERVISED[name]())


def train_baseline(
    name: str,
    data: Data,
    seeds: Iterable[int],
    device: str | torch.device = "auto",
    changes: dict[str, Any] | None = None,
    progress: Progress = silent,
    keep_layers: bool = False,
    batch_size: int | None = None,
) -> BaselineRuns:
    """Train one run of a baseline per seed; no test label is read.

    Args:
        name: one of :data:`BASELINES`.
        data: a graph as loaded, with ``train_mask`` and ``val_mask`` of [n], or [R, n]: one split a seed. Where
            ``data.name`` is a graph of the presets, its settings are taken.
        seeds: one run each.
        device: ``"auto"`` takes a GPU where there is one.
        changes: settings that differ from the preset.
        progress: called with (epochs done, epochs at most) over all runs.
        keep_layers: whether to keep the weights and the hidden states after each graph layer; of supervised ones.
        batch_size: how many runs are trained together; chosen by device and memory if not given. Results do not
            depend on it, up to the order of floating-point sums.
    """
    settings = baseline_settings(name, str(data.get("name"))).settings.replace(**(changes or {}))
    if isinstance(settings, DGI | MVGRL | GRACE):
        return train_self_supervised(settings, data, seeds, device, progress, batch_size)
    seeds = check_seeds(seeds)
    check_batch_size(batch_size)
    check_graph(data, require=("y", "train_mask", "val_mask"))
    place = pick_device(device)
    data = copy.copy(data).cpu()  # a shallow copy: the caller's graph stays where it is

    def build() -> Model:
        return SUPERVISED[name](Graph(data, settings.features, place), settings)

    return train_model(name, build, settings, data, seeds, place, progress, keep_layers, batch_size)


def _check(name: str) -> None:
    if name not in BASELINES:
        raise InputError(f"unknown baseline {name!r}: must be one of {', '.join(BASELINES)}")
