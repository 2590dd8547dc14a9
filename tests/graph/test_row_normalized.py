import torch

from graphpartner.graph.adjacency import row_normalized


def test_rows_sum_to_one_and_empty_rows_stay():
    x = torch.tensor([[1.0, 3.0, 0.0], [0.0, 0.0, 0.0], [2.0, -2.0, 0.0]])
    expected = [[0.25, 0.75, 0.0], [0.0, 0.0, 0.0], [2.0, -2.0, 0.0]]
    assert row_normalized(x).tolist() == expected
    assert row_normalized(x.to_sparse_csr()).to_dense().tolist() == expected
