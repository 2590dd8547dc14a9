"""Graph Partner Neural Networks: classify the nodes of a graph from a handful of labels."""

from graphpartner.enhance.join import attribute_graph
from graphpartner.enhance.quality import edge_quality
from graphpartner.enhance.transform import Enhance
from graphpartner.errors import InputError
from graphpartner.fit.node_graph import NodeGraph
from graphpartner.graph.datasets import load_dataset
from graphpartner.graph.splits import per_class_split, per_class_splits
from graphpartner.model.gpnn import GPNN
from graphpartner.model.losses import consistency_loss, rectification_loss
from graphpartner.smoothness.bounds import energy_bounds, partner_bounds
from graphpartner.smoothness.energy import dirichlet_energy
from graphpartner.smoothness.mad_gap import mad, mad_gap
from graphpartner.smoothness.singular_values import singular_values
from graphpartner.train.presets import Preset, preset
from graphpartner.train.runs import Runs
from graphpartner.train.settings import Settings
from graphpartner.train.trainer import train

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


def __getattr__(name: str) -> object:
    """``GPNNClassifier`` is loaded when it is asked for: it needs scikit-learn, the rest does not."""
    if name == "GPNNClassifier":
        from graphpartner.estimator import GPNNClassifier

        return GPNNClassifier
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
