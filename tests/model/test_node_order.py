import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from graphpartner.graph.adjacency import normalized_adjacency
from graphpartner.kernels.spmm import SparseMatrix
from graphpartner.lab.bench.growth import community_edges
from graphpartner.model.propagation import REORDER_FROM, Propagation, reordered


@settings(max_examples=30)
@given(st.integers(1, 40), st.integers(0, 4), st.sampled_from([3, 40]), st.integers(0, 10_000))
def test_the_order_stays_inside(n, steps, columns, seed):
    """Directed and undirected, numba's loop (40 columns) and torch's (3): rows come and go as before."""
    random = torch.Generator().manual_seed(seed)
    edges = torch.randint(n, (2, 3 * n), generator=random)
    matrix = SparseMatrix(normalized_adjacency(edges, n))
    H = torch.rand(n, columns, generator=random, requires_grad=True)
    moved = reordered(matrix)
    expected, found = matrix.power(H, steps), moved.power(H, steps)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-6)
    by = torch.rand_like(H)
    gradients = [torch.autograd.grad(out, H, by, retain_graph=True)[0] for out in (expected, found)] if steps else []
    if gradients:
        torch.testing.assert_close(gradients[1], gradients[0], rtol=1e-4, atol=1e-6)


def bandwidth(csr):
    rows = torch.repeat_interleave(torch.arange(csr.shape[0]), csr.crow_indices().diff())
    return (rows - csr.col_indices()).abs().float().mean()


def test_a_shuffled_chain_of_communities_comes_close_again():
    n = 600
    chain = torch.stack([torch.arange(n - 1), torch.arange(1, n)])
    shuffled = torch.randperm(n, generator=torch.Generator().manual_seed(0))[chain]
    matrix = SparseMatrix(normalized_adjacency(torch.cat([shuffled, shuffled.flip(0)], 1), n))
    assert bandwidth(matrix.csr) > 100
    assert bandwidth(reordered(matrix).csr) < 2


def test_large_graphs_are_put_in_order_small_ones_are_not():
    for n, ordered in ((1_000, False), (REORDER_FROM, True)):
        propagate = Propagation(normalized_adjacency(community_edges(n), n), 2, plan="steps")
        assert (propagate.steps_matrix.order is not None) == ordered
        H = torch.rand(n, 32)
        dense = propagate.matrix.csr.to_dense()
        torch.testing.assert_close(propagate(H), dense @ (dense @ H), rtol=1e-4, atol=1e-5)
