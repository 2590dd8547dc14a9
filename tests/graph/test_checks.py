import pytest
import torch
from torch_geometric.data import Data

from graphpartner.graph.checks import check_graph, classes_of_graph
from graphpartner.graph.datasets import load_dataset
from graphpartner.graph.splits import per_class_splits
from graphpartner.system.errors import InputError


def graph(**changes):
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


def entry(tensor, *place, value):
    tensor = tensor.clone()
    tensor[place] = value
    return tensor


def mask(*nodes):
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
def test_fine(fine):
    check_graph(graph(**fine))


def test_the_built_in_graph_is_fine():
    data = load_dataset("citeseer")
    check_graph(data, require=("y", "train_mask", "val_mask"))
    data.train_mask, data.val_mask, data.test_mask = per_class_splits(data.y, range(3))
    check_graph(data)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"x": None}, r"data\.x is missing"),
        ({"edge_index": None}, r"data\.edge_index is missing"),
        ({"x": entry(torch.eye(4), 2, 1, value=torch.nan)}, r"data\.x is nan at node 2, feature 1,"),
        ({"x": entry(torch.eye(4), 3, 0, value=-torch.inf)}, r"data\.x is -inf at node 3, feature 0,"),
        ({"x": entry(torch.eye(4), 2, 2, value=torch.nan).to_sparse_csr()}, r"data\.x is nan at node 2, feature 2,"),
        ({"x": torch.ones(4)}, r"data\.x has shape \(4,\)"),
        ({"x": torch.ones(4, 0)}, r"data\.x has shape \(4, 0\)"),
        ({"x": torch.eye(4).long()}, r"data\.x has type torch\.int64.*data\.x\.float\(\)"),
        ({"x": torch.eye(4).to_sparse_coo()}, r"layout torch\.sparse_coo"),
        ({"edge_index": torch.tensor([[0, 1], [1, 4]])}, "edge 1 → 4 at position 1, but the nodes are 0 to 3"),
        ({"edge_index": torch.tensor([[-1, 1], [1, 2]])}, "edge -1 → 1 at position 0"),
        ({"edge_index": torch.tensor([[0.0], [1.0]])}, r"type torch\.float32"),
        ({"edge_index": torch.tensor([[0, 1, 2]])}, r"shape \(1, 3\), but must be \[2, edges\]"),
        ({"edge_weight": torch.tensor([1.0, 2.0])}, r"edge_weight has shape \(2,\).*\(3,\)"),
        ({"edge_weight": torch.tensor([1.0, -2.0, 0])}, "edge_weight is -2.0 for the edge 1 → 2"),
        ({"edge_weight": torch.tensor([1.0, 2.0, torch.nan])}, "edge_weight is nan for the edge 2 → 3"),
        ({"y": torch.tensor([0, 2, 0, -1])}, "y is 2 at node 1, but must be a class from 0 to 1, or −1"),
        ({"y": torch.tensor([0, 1, -5, -1])}, "y is -5 at node 2"),
        ({"y": torch.tensor([0, 1, -5, -1]), "num_classes": None}, "y is -5 at node 2, .* from 0 on"),
        ({"y": torch.tensor([0, 1])}, r"y has shape \(2,\)"),
        ({"y": torch.tensor([[0], [1], [0], [-1]])}, r"y has shape \(4, 1\)"),
        ({"y": torch.tensor([0.0, 1, 0, -1])}, r"y has type torch\.float32"),
        ({"train_mask": mask(0).long()}, r"train_mask has type torch\.int64"),
        ({"val_mask": torch.tensor([True])}, r"val_mask has shape \(1,\), but must be \(4,\)"),
        ({"val_mask": torch.stack([mask(0), mask(2)]).T}, r"val_mask has shape \(4, 2\).*one split a row"),
        ({"train_mask": mask()}, "train_mask is empty,"),
        ({"val_mask": torch.stack([mask(1), mask()])}, "val_mask is empty in split 1,"),
        ({"val_mask": mask(0, 1)}, r"train_mask and data\.val_mask both have node 0"),
        ({"test_mask": torch.stack([mask(2), mask(2, 1)])}, r"val_mask and data\.test_mask both have node 1"),
        (
            {"train_mask": torch.stack([mask(0)] * 2), "val_mask": torch.stack([mask(1)] * 3)},
            r"train_mask has 2 splits and data\.val_mask has 3",
        ),
        ({"train_mask": mask(0, 3)}, "train_mask has node 3, which has no label"),
        ({"val_mask": torch.stack([mask(1), mask(3)])}, "val_mask has node 3, which has no label"),
    ],
)
def test_wrong(wrong, words):
    with pytest.raises(InputError, match=words) as caught:
        check_graph(graph(**wrong))
    message = str(caught.value)
    assert message.endswith(".")
    assert "\n" not in message


def test_what_training_requires():
    check_graph(graph(train_mask=None))
    with pytest.raises(InputError, match=r"data\.train_mask is missing"):
        check_graph(graph(train_mask=None), require=("y", "train_mask"))


def test_a_later_block_of_features(monkeypatch):
    monkeypatch.setattr("graphpartner.graph.checks.ROWS_AT_ONCE", 3)
    with pytest.raises(InputError, match="at node 3, feature 1"):
        check_graph(graph(x=entry(torch.eye(4), 3, 1, value=torch.nan)))


def test_classes_of_graph():
    assert classes_of_graph(graph()) == 2
    assert classes_of_graph(graph(num_classes=7)) == 7
    assert classes_of_graph(graph(num_classes=None, y=torch.tensor([0, 4, -1, 2]))) == 5
