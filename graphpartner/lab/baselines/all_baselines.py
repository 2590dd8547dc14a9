"""All baselines by name: their settings for each graph, and one function that trains any of them."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import torch

from graphpartner.graph.checks import check_graph
from graphpartner.graph.record import GraphRecord
from graphpartner.lab.baselines.appnp import APPNP
from graphpartner.lab.baselines.baseline import Baseline, BaselineSettings
from graphpartner.lab.baselines.dagnn import DAGNN
from graphpartner.lab.baselines.dgi import DGI
from graphpartner.lab.baselines.dropedge import JKNetDropEdge
from graphpartner.lab.baselines.gat import GAT
from graphpartner.lab.baselines.gcn import GCN
from graphpartner.lab.baselines.gcnii import GCNII
from graphpartner.lab.baselines.grace import GRACE
from graphpartner.lab.baselines.grand import GRAND
from graphpartner.lab.baselines.jknet import JKNet
from graphpartner.lab.baselines.mlp import MLP
from graphpartner.lab.baselines.mvgrl import MVGRL
from graphpartner.lab.baselines.self_supervised import PretextSettings, PretextTask, train_self_supervised
from graphpartner.lab.baselines.sgc import SGC
from graphpartner.lab.baselines.supervised import BaselineRuns, train_supervised
from graphpartner.system.device import pick_device
from graphpartner.system.errors import InputError
from graphpartner.system.progress import Progress, silent
from graphpartner.system.schema import check_content, read_yaml
from graphpartner.training.trainer import check_batch_size, check_seeds

FOLDER = Path(__file__).parent / "presets"


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
SELF_SUPERVISED: dict[str, type[PretextTask]] = {"dgi": DGI, "mvgrl": MVGRL, "grace": GRACE}
BASELINES: dict[str, type[Baseline] | type[PretextTask]] = {**SUPERVISED, **SELF_SUPERVISED}


@dataclass(frozen=True)
class BaselineEntry:
    """What a preset file holds for one graph.

    Attributes:
        source: who chose the settings, and on what.
        settings: hyperparameters that are not the defaults.
        published: the accuracy to compare with, in percent: mean and perhaps standard deviation.
        published_source: where it is printed, if not where those of most graphs are.
    """

    source: str
    settings: dict[str, Any]
    published: list[float] = field(default_factory=list)
    published_source: str = ""


@dataclass(frozen=True)
class BaselineFile:
    """A file of ``presets/``: the paper of a baseline, an entry per graph, the source of most published accuracies."""

    paper: str
    graphs: dict[str, BaselineEntry]
    published_source: str = ""


@dataclass(frozen=True)
class BaselinePreset:
    """Settings of a baseline for one graph.

    Attributes:
        settings: the hyperparameters.
        provenance: who chose them, and on what.
        published: the accuracy to compare with, in percent: mean and perhaps standard deviation; empty where nobody
            has published one.
        published_source: where it is printed.
    """

    settings: BaselineSettings | PretextSettings
    provenance: str
    published: tuple[float, ...]
    published_source: str


def baseline_settings(name: str, graph: str) -> BaselinePreset:
    """Return the settings of a baseline for a graph; for a graph without a preset, the defaults."""
    if name not in BASELINES:
        raise InputError(f"baseline = {name!r}: must be one of {', '.join(BASELINES)}")
    file = _preset_file(name)
    entry = file.graphs.get(graph, BaselineEntry("defaults", {}))
    settings = BASELINES[name].Settings().replace(**entry.settings)
    source = entry.published_source or file.published_source if entry.published else ""
    return BaselinePreset(settings, entry.source, tuple(entry.published), source)


@cache
def _preset_file(name: str) -> BaselineFile:
    path = FOLDER / f"{name}.yaml"
    return check_content(BaselineFile, read_yaml(path), path)


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
        data: a graph as loaded, with ``train_mask`` and ``val_mask`` of [n], or [R, n]: one split per seed. Where
            ``data.name`` is a graph of the presets, its settings are taken.
        seeds: one per run.
        device: ``"auto"`` takes a GPU where there is one.
        changes: settings that differ from the preset.
        progress: called with the number of epochs done and their maximum, over all runs.
        keep_layers: whether to keep the weights and the hidden states after each graph layer; of supervised ones.
        batch_size: number of runs trained together; chosen by device and memory if not given. Results do not depend on
            it, up to the order of floating-point sums.
    """
    settings = baseline_settings(name, str(data.get("name"))).settings.replace(**(changes or {}))
    seeds = check_seeds(seeds)
    check_batch_size(batch_size)
    check_graph(data, require=("y", "train_mask", "val_mask"))
    place = pick_device(device)
    data = data.cpu()  # a shallow copy: the caller's graph stays where it is
    if isinstance(settings, PretextSettings):
        method = SELF_SUPERVISED[name]
        return train_self_supervised(name, method, settings, data, seeds, place, progress, batch_size)
    return train_supervised(
        name, SUPERVISED[name], settings, data, seeds, place, progress, batch_size, keep_layers=keep_layers
    )
