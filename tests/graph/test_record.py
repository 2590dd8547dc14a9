import pytest
import torch
from torch_geometric.data import Data

from graphpartner.graph.record import GraphRecord, as_record


def small() -> GraphRecord:
    edges = torch.tensor([[0, 1], [1, 0]])
    return GraphRecord(x=torch.eye(3), edge_index=edges, y=torch.tensor([0, 1, -1]), num_classes=2, name="small")


def test_what_is_not_known_is_missing() -> None:
    graph = small()
    assert list(graph.fields()) == ["x", "edge_index", "y", "num_classes", "name"]
    assert "train_mask" not in graph
    assert graph.get("train_mask") is None
    with pytest.raises(AttributeError, match="train_mask"):
        _ = graph.train_mask
    graph["train_mask"] = graph.y >= 0
    assert graph["train_mask"].tolist() == [True, True, False]
    del graph["train_mask"]
    assert "train_mask" not in graph


def test_number_of_nodes() -> None:
    assert small().num_nodes == 3
    assert GraphRecord(y=torch.zeros(4)).num_nodes == 4
    assert GraphRecord(num_nodes=7, edge_index=torch.zeros(2, 0)).num_nodes == 7


def test_there_and_back() -> None:
    data = small().to_data()
    assert isinstance(data, Data)
    assert data.num_nodes == 3
    again = as_record(data)
    assert list(again.fields()) == list(small().fields())
    assert again.x is data.x
    assert as_record(again) is again
    assert as_record(Data(edge_index=torch.tensor([[0], [4]]))).num_nodes == 5


def test_cpu_is_a_copy() -> None:
    graph = small()
    moved = graph.cpu()
    moved.y = torch.zeros(3)
    assert graph.y.tolist() == [0, 1, -1]
    assert repr(graph) == "GraphRecord(x=[3, 3], edge_index=[2, 2], y=[3])"
