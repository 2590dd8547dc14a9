from typing import Any

import pytest
import torch
from torch_geometric.data import Data

from graphpartner.graph.checks import check_edges, check_graph
from graphpartner.graph.datasets import load_dataset
from graphpartner.graph.splits import per_class_splits
from graphpartner.system.errors import InputError


def graph(**changes: Any) -> Data:
    """Four nodes on a path, two classes, the last node without a label; some of it changed."""
    parts = {
        "x": torch.eye(4),
        "edge_index": torch.tensor([[0, 1, 2], [1, 2, 3]]),
        "y": torch.tensor([0, 1, 0, -1]),
        "train_mask": torch.tensor([True, False, False, False]),
        "val_mask": torch.tensor([False, True, False, False]),
        "test_mask": torch.tensor([False, False, True, False]),
        "num_classes": 2,
    }
    return Data(**{name: value for name, value in (parts | changes).items() if value is not None})


def entry(tensor: torch.Tensor, *place: int, value: float) -> torch.Tensor:
    tensor = tensor.clone()
    tensor[place] = value
    return tensor


def mask(*nodes: int) -> torch.Tensor:
    return torch.tensor([node in nodes for node in range(4)])


@pytest.mark.parametrize(
    "fine",
    [
        {},
        {"y": None, "train_mask": None, "val_mask": None, "test_mask": None, "num_classes": None},
        {"edge_index": torch.empty(2, 0, dtype=torch.long)},
        {"edge_index": torch.tensor([[0], [1]], dtype=torch.int32)},
        {"edge_weight": torch.tensor([0.0, 1, 2])},
        {"x": torch.eye(4).to_sparse_csr()},
        {"num_classes": None},
        {"test_mask": mask(2, 3)},  # an unlabelled test node is left out of the rates
        {"train_mask": torch.stack([mask(0), mask(2)]), "test_mask": None},
    ],
)
def test_fine(fine: dict[str, Any]) -> None:
    check_graph(graph(**fine))


def test_the_built_in_graph_is_fine() -> None:
    data = load_dataset("citeseer")
    check_graph(data, require=("y", "train_mask", "val_mask"))
    data.train_mask, data.val_mask, data.test_mask = per_class_splits(data.y, range(3))
    check_graph(data)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"x": None}, r"data\.x is missing: must be a tensor"),
        ({"edge_index": None}, r"data\.edge_index is missing"),
        ({"x": entry(torch.eye(4), 2, 1, value=torch.nan)}, "x = nan at node 2, feature 1: must be finite"),
        ({"x": entry(torch.eye(4), 3, 0, value=-torch.inf)}, "x = -inf at node 3, feature 0:"),
        ({"x": entry(torch.eye(4), 2, 2, value=torch.nan).to_sparse_csr()}, "x = nan at node 2, feature 2:"),
        ({"x": torch.ones(4)}, r"x = float32 \[4\]: must be \[nodes, features\]"),
        ({"x": torch.ones(4, 0)}, r"x = float32 \[4, 0\]"),
        ({"x": torch.eye(4).long()}, r"x = int64 \[4, 4\]: must be floating-point, as x\.float\(\) is"),
        ({"x": torch.eye(4).to_sparse_coo()}, r"x = sparse_coo float32 \[4, 4\]: must be dense or sparse CSR"),
        ({"edge_index": torch.tensor([[0, 1], [1, 4]])}, "edge_index = 1 → 4 at position 1: must be nodes 0 to 3"),
        ({"edge_index": torch.tensor([[-1, 1], [1, 2]])}, "edge_index = -1 → 1 at position 0"),
        ({"edge_index": torch.tensor([[0.0], [1.0]])}, r"edge_index = float32 \[2, 1\]: must be int64 or int32"),
        ({"edge_index": torch.tensor([[0, 1, 2]])}, r"edge_index = int64 \[1, 3\]: must be int64 or int32 \[2, E\]"),
        ({"edge_index": torch.tensor([[False], [True]])}, r"edge_index = bool \[2, 1\]"),
        ({"edge_index": torch.zeros(2, 4).long().to_sparse_csr()}, r"edge_index = sparse_csr int64 \[2, 4\]"),
        ({"edge_weight": torch.tensor([1.0, 2.0])}, r"edge_weight = float32 \[2\]: must be \[3\], one number per edge"),
        (
            {"edge_weight": torch.tensor([1.0, -2.0, 0])},
            "edge_weight = -2.0 for the edge 1 → 2: must be finite and not",
        ),
        ({"edge_weight": torch.tensor([1.0, 2.0, torch.nan])}, "edge_weight = nan for the edge 2 → 3"),
        ({"y": torch.tensor([0, 2, 0, -1])}, "y = 2 at node 1: must be a class from 0 to 1, or −1"),
        ({"y": torch.tensor([0, 1, -5, -1])}, "y = -5 at node 2"),
        ({"y": torch.tensor([0, 1, -5, -1]), "num_classes": None}, "y = -5 at node 2: .* from 0 on"),
        ({"y": torch.tensor([0, 1])}, r"y = int64 \[2\]: must be \[4\]"),
        ({"y": torch.tensor([[0], [1], [0], [-1]])}, r"y = int64 \[4, 1\]"),
        ({"y": torch.tensor([0.0, 1, 0, -1])}, r"y = float32 \[4\]: must be integers"),
        ({"train_mask": mask(0).long()}, r"train_mask = int64 \[4\]: must be bool"),
        ({"val_mask": torch.tensor([True])}, r"val_mask = bool \[1\]: must be \[4\]"),
        ({"val_mask": torch.stack([mask(0), mask(2)]).T}, r"val_mask = bool \[4, 2\]: .*one split per row"),
        ({"train_mask": mask()}, "train_mask is empty: must hold at least one node"),
        ({"val_mask": torch.stack([mask(1), mask()])}, "val_mask is empty in split 1: must"),
        ({"val_mask": mask(0, 1)}, "train_mask and val_mask both hold node 0: must not overlap"),
        ({"test_mask": torch.stack([mask(2), mask(2, 1)])}, "val_mask and test_mask both hold node 1"),
        (
            {"train_mask": torch.stack([mask(0)] * 2), "val_mask": torch.stack([mask(1)] * 3)},
            "train_mask has 2 splits, val_mask has 3: must have the same number",
        ),
        ({"train_mask": mask(0, 3)}, "train_mask holds node 3, which has no label"),
        ({"val_mask": torch.stack([mask(1), mask(3)])}, "val_mask holds node 3, which has no label"),
    ],
)
def test_wrong(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        check_graph(graph(**wrong))
    message = str(caught.value)
    assert not message.endswith(".")
    assert "\n" not in message


def test_what_training_requires() -> None:
    check_graph(graph(train_mask=None))
    with pytest.raises(InputError, match=r"data\.train_mask is missing"):
        check_graph(graph(train_mask=None), require=("y", "train_mask"))


def test_a_later_block_of_features(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphpartner.graph.checks.ROWS_AT_ONCE", 3)
    with pytest.raises(InputError, match="at node 3, feature 1"):
        check_graph(graph(x=entry(torch.eye(4), 3, 1, value=torch.nan)))


def test_edges_that_are_no_tensor_are_named() -> None:
    with pytest.raises(InputError, match="edge_index = list: must be int64"):
        check_edges([[0], [1]], 2)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="pairs = 0 → 2 at position 0"):
        check_edges(torch.tensor([[0], [2]]), 2, name="pairs")
