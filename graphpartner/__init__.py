"""Graph Partner Neural Networks: classify the nodes of a graph from a handful of labels.

Public names are imported on first use: PyTorch takes seconds to load, and ``gpnn --help`` does not need it.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the names again, for type checkers: "as" makes them public
    from graphpartner.enhance.join import attribute_graph as attribute_graph
    from graphpartner.enhance.quality import edge_quality as edge_quality
    from graphpartner.enhance.transform import Enhance as Enhance
    from graphpartner.graph.datasets import load_dataset as load_dataset
    from graphpartner.graph.splits import per_class_split as per_class_split
    from graphpartner.graph.splits import per_class_splits as per_class_splits
    from graphpartner.model.gpnn import GPNN as GPNN
    from graphpartner.model.losses import consistency_loss as consistency_loss
    from graphpartner.model.losses import rectification_loss as rectification_loss
    from graphpartner.sklearn import GPNNClassifier as GPNNClassifier
    from graphpartner.sklearn import NodeGraph as NodeGraph
    from graphpartner.smoothness.bounds import energy_bounds as energy_bounds
    from graphpartner.smoothness.bounds import partner_bounds as partner_bounds
    from graphpartner.smoothness.energy import dirichlet_energy as dirichlet_energy
    from graphpartner.smoothness.mad_gap import mad as mad
    from graphpartner.smoothness.mad_gap import mad_gap as mad_gap
    from graphpartner.smoothness.singular_values import singular_values as singular_values
    from graphpartner.system.errors import InputError as InputError
    from graphpartner.training.presets import Preset as Preset
    from graphpartner.training.presets import preset as preset
    from graphpartner.training.runs import Runs as Runs
    from graphpartner.training.settings import Settings as Settings
    from graphpartner.training.trainer import train as train

__version__ = "0.1.0"

_PLACES = {
    "GPNN": "model.gpnn",
    "Enhance": "enhance.transform",
    "GPNNClassifier": "sklearn",
    "InputError": "system.errors",
    "NodeGraph": "sklearn",
    "Preset": "training.presets",
    "Runs": "training.runs",
    "Settings": "training.settings",
    "attribute_graph": "enhance.join",
    "consistency_loss": "model.losses",
    "dirichlet_energy": "smoothness.energy",
    "edge_quality": "enhance.quality",
    "energy_bounds": "smoothness.bounds",
    "load_dataset": "graph.datasets",
    "mad": "smoothness.mad_gap",
    "mad_gap": "smoothness.mad_gap",
    "partner_bounds": "smoothness.bounds",
    "per_class_split": "graph.splits",
    "per_class_splits": "graph.splits",
    "preset": "training.presets",
    "rectification_loss": "model.losses",
    "singular_values": "smoothness.singular_values",
    "train": "training.trainer",
}
__all__ = list(_PLACES)

if not TYPE_CHECKING:  # to a type checker, a module with __getattr__ has every name there is

    def __getattr__(name: str) -> object:
        """Import a public name from its module."""
        if name not in _PLACES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)

    def __dir__() -> list[str]:
        """List public names before they are imported, too."""
        return sorted({*globals(), *__all__})
