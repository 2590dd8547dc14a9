"""Settings of a baseline for a graph, with where they come from and what its authors report.

All baselines by name, and one function that trains any of them with many seeds at once.
"""

import copy
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from graphpartner.graph.checks import check_graph
from graphpartner.graph.record import GraphRecord
from graphpartner.lab.baselines.appnp import APPNP
from graphpartner.lab.baselines.baseline import Baseline
from graphpartner.lab.baselines.dagnn import DAGNN
from graphpartner.lab.baselines.dgi import DGI
from graphpartner.lab.baselines.dropedge import JKNetDropEdge
from graphpartner.lab.baselines.gat import GAT
from graphpartner.lab.baselines.gcn import GCN
from graphpartner.lab.baselines.gcnii import GCNII
from graphpartner.lab.baselines.grace import GRACE
from graphpartner.lab.baselines.grand import GRAND
from graphpartner.lab.baselines.jknet import JKNet
from graphpartner.lab.baselines.layouts import BaselineGraph
from graphpartner.lab.baselines.mlp import MLP
from graphpartner.lab.baselines.mvgrl import MVGRL
from graphpartner.lab.baselines.self_supervised import train_self_supervised
from graphpartner.lab.baselines.sgc import SGC
from graphpartner.lab.baselines.supervised import BaselineRuns, train_model
from graphpartner.system.device import pick_device
from graphpartner.system.errors import InputError
from graphpartner.system.progress import Progress, silent
from graphpartner.training.settings import Checked
from graphpartner.training.trainer import check_batch_size, check_seeds

FOLDER = Path(__file__).parent / "presets"


@dataclass(frozen=True)
class BaselinePreset:
    """Settings of one baseline for one graph.

    Attributes:
        name: of the baseline.
        graph: the graph they were chosen for.
        settings: the hyperparameters.
        provenance: who chose them, and on what.
        published: the accuracy to compare with, in percent: mean and standard deviation (None where none is given);
            None where nobody has published one.
        published_source: where it stands.
    """

    name: str
    graph: str
    settings: Any
    provenance: str
    published: tuple[float, float | None] | None = None
    published_source: str = ""


def read_preset(name: str, graph: str, defaults: Checked) -> BaselinePreset:
    """The preset of a graph; one that the file does not know gets the defaults."""
    import yaml

    content: dict[str, Any] = yaml.safe_load((FOLDER / f"{name}.yaml").read_text())
    entry = content["graphs"].get(graph)
    if entry is None:
        return BaselinePreset(name, graph, defaults, "defaults")
    published = entry.get("published")
    return BaselinePreset(
        name,
        graph,
        defaults.replace(**entry["settings"]),
        entry["source"],
        None if published is None else (float(published[0]), None if len(published) == 1 else float(published[1])),
        entry.get("published_source", content.get("published_source", "")) if published else "",
    )


SUPERVISED: dict[str, type[Baseline]] = {
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
    data: GraphRecord,
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

    def build() -> Baseline:
        return SUPERVISED[name](BaselineGraph(data, settings.features, place), settings)

    return train_model(name, build, settings, data, seeds, place, progress, keep_layers, batch_size)


def _check(name: str) -> None:
    if name not in BASELINES:
        raise InputError(f"unknown baseline {name!r}: must be one of {', '.join(BASELINES)}")
