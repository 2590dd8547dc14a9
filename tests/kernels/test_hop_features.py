"""[X, S X, S² X] W, without the wide matrix, against the wide matrix."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from graphpartner.kernels.hop_features import HopFeatures
from graphpartner.kernels.spmm import SparseMatrix


@given(hops=st.integers(0, 3), replicas=st.integers(1, 3), seed=st.integers(0, 100))
def test_product_and_gradient(hops, replicas, seed):
    torch.manual_seed(seed)
    n, d, h = 6, 4, 3
    S = (torch.rand(n, n) < 0.4) * torch.rand(n, n)
    X = torch.randn(n, d)
    W = torch.randn(replicas, (hops + 1) * d, h, requires_grad=True)
    wide = torch.cat([torch.linalg.matrix_power(S, k) @ X for k in range(hops + 1)], 1)
    features = HopFeatures(X, SparseMatrix(S.to_sparse_csr()), hops, d)
    assert features.shape == wide.shape
    torch.testing.assert_close(features @ W, wide @ W, atol=1e-5, rtol=1e-4)
    G = torch.randn(replicas, n, h)
    (gradient,) = torch.autograd.grad(((features @ W) * G).sum(), W)
    torch.testing.assert_close(gradient, wide.T @ G, atol=1e-4, rtol=1e-4)


def test_dropout_is_that_of_the_features():
    S = SparseMatrix(torch.eye(3).flip(0).to_sparse_csr())
    features = HopFeatures(torch.ones(3, 2), S, 1, 2)
    doubled = features.dropped(lambda X: 2 * X)
    W = torch.randn(4, 5)
    torch.testing.assert_close(doubled @ W, 2 * (features @ W))
