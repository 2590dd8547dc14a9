"""One graph as torch tensors: the record that every part of the package exchanges.

PyTorch Geometric takes seconds to import, and a few named tensors are all that is needed of it. Its ``Data`` is
converted where it comes in (:func:`as_record`) and where it goes out (:meth:`GraphRecord.to_data`).
"""

import copy
from typing import TYPE_CHECKING, Any, Self

from torch import Tensor

if TYPE_CHECKING:
    from torch_geometric.data import Data


class GraphRecord:
    """A graph; what is known about it is an attribute, what is not known is no attribute.

    Attributes:
        x: features, [n, d] float32, dense or torch sparse CSR.
        edge_index: [2, E] int64, sources above targets.
        edge_weight: [E], where edges have weights.
        y: [n] int64, −1 for a node without a label.
        train_mask: [n] boolean, or [R, n] with one split per replica.
        val_mask: likewise.
        test_mask: likewise.
        num_classes: C, where it is known.
        name: the name of the graph, where it has one.
    """

    FIELDS = ("x", "edge_index", "edge_weight", "y", "train_mask", "val_mask", "test_mask", "num_classes", "name")

    x: Tensor
    edge_index: Tensor
    edge_weight: Tensor
    y: Tensor
    train_mask: Tensor
    val_mask: Tensor
    test_mask: Tensor
    num_classes: int
    name: str

    def __init__(self, num_nodes: int | None = None, **fields: Any) -> None:
        self._num_nodes = num_nodes
        for name, value in fields.items():
            if value is not None:
                setattr(self, name, value)

    @property
    def num_nodes(self) -> int:
        """The number of nodes, n."""
        if self._num_nodes is not None:
            return self._num_nodes
        return int(self.x.shape[0] if "x" in self else self.y.shape[0])

    def get(self, name: str, default: Any = None) -> Any:
        """Return an attribute by name, or ``default`` where it is missing."""
        return getattr(self, name, default)

    def fields(self) -> dict[str, Any]:
        """Return what is known about the graph, by name."""
        return {name: self[name] for name in self.FIELDS if name in self}

    def __contains__(self, name: str) -> bool:
        return hasattr(self, name)

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name)

    def __setitem__(self, name: str, value: Any) -> None:
        setattr(self, name, value)

    def __delitem__(self, name: str) -> None:
        delattr(self, name)

    def cpu(self) -> Self:
        """Return a shallow copy with every tensor on the CPU."""
        moved = copy.copy(self)
        for name, value in vars(self).items():
            if isinstance(value, Tensor):
                setattr(moved, name, value.cpu())
        return moved

    def to_data(self) -> "Data":
        """Return the graph as PyTorch Geometric's ``Data``."""
        from torch_geometric.data import Data

        return Data(**self.fields())

    def __repr__(self) -> str:
        shapes = [f"{name}={list(self[name].shape)}" for name in self.FIELDS if isinstance(self.get(name), Tensor)]
        return f"{type(self).__name__}({', '.join(shapes)})"


def as_record(data: "GraphRecord | Data") -> GraphRecord:
    """Return a graph record as it is, and PyTorch Geometric's ``Data`` as one that shares its tensors."""
    if isinstance(data, GraphRecord):
        return data
    found = {name: data.get(name) for name in GraphRecord.FIELDS}
    return GraphRecord(num_nodes=None if found["x"] is not None else data.num_nodes, **found)
