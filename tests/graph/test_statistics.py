from pathlib import Path

import pytest
import torch
from torch_geometric.data import Data

from graphpartner.graph.catalogue import find_entry
from graphpartner.graph.datasets import load_dataset
from graphpartner.graph.statistics import GraphStatistics, edge_homophily, graph_statistics


def small() -> Data:
    """A triangle 0 1 2 with a self-loop and a duplicate, the edge 2 – 3, and node 4 alone and empty."""
    return Data(
        x=torch.tensor([[1.0, 0], [0, 2], [3, 3], [0, 1], [0, 0]]),
        edge_index=torch.tensor([[0, 1, 2, 0, 1, 2], [1, 2, 0, 0, 0, 3]]),
        y=torch.tensor([0, 0, 1, -1, 1]),
    )


def test_every_number_of_a_small_graph() -> None:
    expected = GraphStatistics(
        num_nodes=5,
        num_edges=4,
        num_features=2,
        num_classes=2,
        num_isolated=1,
        num_empty=1,
        num_unlabelled=1,
        feature_density=0.5,
        edge_homophily=1 / 3,  # 0 – 1 alone; 2 – 3 is not judged
    )
    assert graph_statistics(small()) == expected
    data = small()
    data.x = data.x.to_sparse_csr()
    assert graph_statistics(data) == expected


def test_number_of_classes() -> None:
    data = small()
    data.y = torch.tensor([0, 4, -1, 2, 0])
    assert graph_statistics(data).num_classes == 5
    data.num_classes = 7
    assert graph_statistics(data).num_classes == 7


def test_homophily_of_known_labels_only() -> None:
    data = small()
    assert edge_homophily(data.edge_index, data.y, torch.tensor([True, True, False, True, True])) == 1
    assert edge_homophily(data.edge_index, data.y, torch.tensor([True, False, True, True, True])) == 0
    assert edge_homophily(data.edge_index, data.y, torch.tensor([True, False, False, True, True])) is None
    hidden = data.y.clone()
    known = torch.tensor([True, True, False, False, False])
    hidden[~known] = 0  # labels outside the mask are not looked at
    assert edge_homophily(data.edge_index, hidden, known) == edge_homophily(data.edge_index, data.y, known)


def test_built_in_citeseer() -> None:
    found = graph_statistics(load_dataset("citeseer"))
    assert (found.num_nodes, found.num_edges, found.num_features, found.num_classes) == (3327, 4552, 3703, 6)
    assert (found.num_isolated, found.num_empty, found.num_unlabelled) == (48, 15, 15)
    assert found.feature_density == 105_165 / (3327 * 3703)
    assert found.edge_homophily == pytest.approx(0.7377, abs=5e-5)


@pytest.mark.parametrize(
    ("name", "sizes", "homophily"),
    [
        ("citeseer", (3327, 4552, 3703, 6, 48), 0.7377),
        ("cora", (2708, 5278, 1433, 7, 0), 0.8100),
        ("pubmed", (19717, 44324, 500, 3, 0), 0.8024),
        ("coauthor-cs", (18333, 81894, 6805, 15, 0), 0.8081),
        ("amazon-computers", (13752, 245861, 767, 10, 281), 0.7772),
        ("amazon-photo", (7650, 119081, 745, 8, 115), 0.8272),
    ],
)
def test_every_graph(name: str, sizes: tuple[int, ...], homophily: float, data_root: Path) -> None:
    found, entry = graph_statistics(load_dataset(name, data_root)), find_entry(name)
    counted = (found.num_nodes, found.num_edges, found.num_features, found.num_classes, found.num_isolated)
    assert counted == sizes
    assert sizes == (entry.num_nodes, entry.num_edges, entry.num_features, entry.num_classes, entry.num_isolated)
    assert found.edge_homophily == pytest.approx(homophily, abs=5e-5)
