"""Graph Partner Neural Networks: classify the nodes of a graph from a handful of labels.

Every name below is loaded when it is first asked for: PyTorch takes seconds, and ``gpnn --help`` does without.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphpartner.enhance.join import attribute_graph
    from graphpartner.enhance.quality import edge_quality
    from graphpartner.enhance.transform import Enhance
    from graphpartner.graph.datasets import load_dataset
    from graphpartner.graph.splits import per_class_split, per_class_splits
    from graphpartner.model.gpnn import GPNN
    from graphpartner.model.losses import consistency_loss, rectification_loss
    from graphpartner.sklearn import GPNNClassifier, NodeGraph
    from graphpartner.smoothness.bounds import energy_bounds, partner_bounds
    from graphpartner.smoothness.energy import dirichlet_energy
    from graphpartner.smoothness.mad_gap import mad, mad_gap
    from graphpartner.smoothness.singular_values import singular_values
    from graphpartner.system.errors import InputError
    from graphpartner.training.presets import Preset, preset
    from graphpartner.training.runs import Runs
    from graphpartner.training.settings import Settings
    from graphpartner.training.trainer import train

__version__ = "0.1.0"

__all__ = [
    "GPNN",
    "Enhance",
    "GPNNClassifier",
    "InputError",
    "NodeGraph",
    "Preset",
    "Runs",
    "Settings",
    "attribute_graph",
    "consistency_loss",
    "dirichlet_energy",
    "edge_quality",
    "energy_bounds",
    "load_dataset",
    "mad",
    "mad_gap",
    "partner_bounds",
    "per_class_split",
    "per_class_splits",
    "preset",
    "rectification_loss",
    "singular_values",
    "train",
]

_PLACES = {
    "GPNN": "graphpartner.model.gpnn",
    "Enhance": "graphpartner.enhance.transform",
    "GPNNClassifier": "graphpartner.sklearn",
    "InputError": "graphpartner.system.errors",
    "NodeGraph": "graphpartner.sklearn",
    "Preset": "graphpartner.training.presets",
    "Runs": "graphpartner.training.runs",
    "Settings": "graphpartner.training.settings",
    "attribute_graph": "graphpartner.enhance.join",
    "consistency_loss": "graphpartner.model.losses",
    "dirichlet_energy": "graphpartner.smoothness.energy",
    "edge_quality": "graphpartner.enhance.quality",
    "energy_bounds": "graphpartner.smoothness.bounds",
    "load_dataset": "graphpartner.graph.datasets",
    "mad": "graphpartner.smoothness.mad_gap",
    "mad_gap": "graphpartner.smoothness.mad_gap",
    "partner_bounds": "graphpartner.smoothness.bounds",
    "per_class_split": "graphpartner.graph.splits",
    "per_class_splits": "graphpartner.graph.splits",
    "preset": "graphpartner.training.presets",
    "rectification_loss": "graphpartner.model.losses",
    "singular_values": "graphpartner.smoothness.singular_values",
    "train": "graphpartner.training.trainer",
}

if not TYPE_CHECKING:  # to a type checker, a module with __getattr__ has every name there is

    def __getattr__(name: str) -> object:
        """A public name, from the file it lies in."""
        if name not in _PLACES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(_PLACES[name]), name)

    def __dir__() -> list[str]:
        """Public names are there before they are loaded."""
        return sorted({*globals(), *__all__})
