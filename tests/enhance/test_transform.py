import pytest
import torch
from torch_geometric.data import Data

from graphpartner.enhance import transform
from graphpartner.enhance.join import attribute_graph
from graphpartner.enhance.mixture import enhanced_adjacency
from graphpartner.enhance.transform import Enhance
from graphpartner.system.errors import InputError

PATH = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])
WORDS = torch.tensor([[1.0, 1, 0, 0], [1, 0, 0, 0], [0, 1, 1, 0], [1, 1, 1, 1]])


def test_sets_the_enhanced_adjacency() -> None:
    data = Data(x=WORDS, edge_index=PATH)
    enhanced = Enhance(k=2, threshold=0.5, beta=0.6)(data)
    expected = enhanced_adjacency(attribute_graph(WORDS, PATH, 2, 0.5), PATH, 4, 0.6)
    assert torch.equal(enhanced.adj_t.to_dense(), expected.to_dense())
    assert "adj_t" not in data


def test_uses_edge_weights() -> None:
    weight = torch.tensor([1.0, 1, 5, 5, 1, 1])
    enhanced = Enhance(beta=0.5)(Data(x=WORDS, edge_index=PATH, edge_weight=weight))
    expected = enhanced_adjacency(attribute_graph(WORDS, PATH), PATH, 4, 0.5, weight)
    assert torch.equal(enhanced.adj_t.to_dense(), expected.to_dense())


def test_no_join_without_attributes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transform, "attribute_graph", lambda *_, **__: pytest.fail("joined"))
    enhanced = Enhance(beta=1)(Data(edge_index=PATH, num_nodes=4))
    assert enhanced.adj_t.shape == (4, 4)


def test_says_what_it_is() -> None:
    assert repr(Enhance(beta=0.5)) == "Enhance(k=3, threshold=0.4, beta=0.5)"


def test_wrong_arguments_are_refused_early() -> None:
    with pytest.raises(InputError, match="beta"):
        Enhance(beta=2)
