import pytest
import torch

from graphpartner.enhance.join import attribute_graph
from graphpartner.enhance.mixture import enhanced_adjacency
from graphpartner.graph.adjacency import normalized_adjacency
from graphpartner.system.errors import InputError

PATH = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])
WORDS = torch.tensor([[1.0, 1, 0, 0], [1, 0, 0, 0], [0, 1, 1, 0], [1, 1, 1, 1]])


def test_four_nodes_by_hand() -> None:
    A_en = enhanced_adjacency(attribute_graph(WORDS, PATH, k=1), PATH, 4, beta=0.25).to_dense()
    half, sixth = 0.5**0.5, 6**-0.5
    alone = 1 / (1 + half)
    P = torch.tensor([[1 / 2, sixth, 0, 0], [sixth, 1 / 3, 1 / 3, 0], [0, 1 / 3, 1 / 3, sixth], [0, 0, sixth, 1 / 2]])
    attribute = torch.zeros(4, 4)
    for i, j in [(0, 1), (1, 0), (2, 3), (3, 2)]:
        attribute[i, i], attribute[i, j] = alone, half * alone
    torch.testing.assert_close(A_en, 0.25 * P + 0.75 * attribute)


def test_topology_alone_needs_no_attribute_graph() -> None:
    weight = torch.tensor([0.5, 0.5, 2.0, 2.0, 1.0, 1.0])
    A_en, P = enhanced_adjacency(None, PATH, 4, 1.0, weight), normalized_adjacency(PATH, 4, weight)
    assert torch.equal(A_en.to_dense(), P.to_dense())
    assert torch.equal(A_en.col_indices(), P.col_indices())


def test_attributes_alone_sum_to_one() -> None:
    A_en = enhanced_adjacency(attribute_graph(WORDS, PATH), PATH, 4, beta=0)
    torch.testing.assert_close(A_en.to_dense().sum(1), torch.ones(4))
    assert (A_en.values() > 0).all()


def test_stored_as_sorted_float32() -> None:
    A_en = enhanced_adjacency(attribute_graph(WORDS, PATH), PATH, 4)
    assert A_en.dtype == torch.float32
    assert A_en.layout == torch.sparse_csr
    for row in range(4):
        assert (A_en.col_indices()[A_en.crow_indices()[row] : A_en.crow_indices()[row + 1]].diff() > 0).all()


@pytest.mark.parametrize("beta", [-0.1, 1.1, float("nan"), True])
def test_wrong_beta_is_named(beta: float) -> None:
    with pytest.raises(InputError, match=f"^beta = {beta!r}: must be "):
        enhanced_adjacency(None, PATH, 4, beta)


def test_a_missing_or_misshapen_attribute_graph_is_named() -> None:
    with pytest.raises(InputError, match="attribute = None: must be"):
        enhanced_adjacency(None, PATH, 4, 0.5)
    with pytest.raises(InputError, match=r"attribute has shape \[3, 3\]: must be \[4, 4\]"):
        enhanced_adjacency(torch.eye(3).to_sparse_csr(), PATH, 4, 0.5)
