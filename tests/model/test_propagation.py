import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor

from graphpartner.graph.adjacency import normalized_adjacency
from graphpartner.kernels.spmm import SparseMatrix
from graphpartner.lab.bench.growth import community_edges
from graphpartner.model import propagation
from graphpartner.model.propagation import (
    REORDER_FROM,
    Propagation,
    propagate_rows,
    propagate_to_depths,
    reordered,
    row_blocks,
)
from graphpartner.system.errors import InputError
from tests.reference import RandomProblem, assert_near, power, problems, to_csr

PLANS = ("steps", "dense", "blocks")
both = settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.mark.parametrize("plan", PLANS)
def test_star_of_four_nodes_by_hand(kernels: str, plan: str) -> None:
    # 0 in the middle, 1 + d = 4 2 2 2: P_00 = 1/4, P_0j = 1/√8, P_jj = 1/2. With H = (0, 1, 0, 0):
    # P H = (1/√8, 1/2, 0, 0) and P² H = (1/(4√8) + 1/(2√8), 1/8 + 1/4, 1/8, 1/8).
    P = normalized_adjacency(torch.tensor([[0, 0, 0, 1, 2, 3], [1, 2, 3, 0, 0, 0]]), 4)
    H = torch.tensor([[0.0], [1.0], [0.0], [0.0]])
    once, twice = (Propagation(P, steps, plan, block_rows=3)(H).squeeze(1) for steps in (1, 2))
    assert once.tolist() == pytest.approx([8**-0.5, 0.5, 0, 0])
    assert twice.tolist() == pytest.approx([0.75 * 8**-0.5, 0.375, 0.125, 0.125])


@both
@given(problem=problems(replicas=2))
def test_every_plan_equals_the_dense_power_forward_and_backward(kernels: str, problem: RandomProblem) -> None:
    H = problem.rng.standard_normal((2, problem.n, problem.weight1.shape[2]))
    G = problem.rng.standard_normal(H.shape)
    for plan in PLANS:
        for block_rows in (1, 5) if plan == "blocks" else (1,):
            operator = Propagation(to_csr(problem.A), problem.steps, plan, block_rows=block_rows)
            given_H = torch.from_numpy(H).float().requires_grad_()
            result = operator(given_H)
            result.backward(torch.from_numpy(G).float())
            for r in range(2):
                for found, A, to in ((result, problem.A, H), (given_H.grad, problem.A.T, G)):
                    sizes = power(A, abs(to[r]), problem.steps)
                    assert_near(found[r], power(A, to[r], problem.steps), sizes=sizes)


@both
@given(problem=problems(replicas=2), own=st.booleans(), count=st.integers(1, 9))
def test_some_rows_equal_those_of_the_dense_power(problem: RandomProblem, own: bool, count: int) -> None:
    H = problem.rng.standard_normal((2, problem.n, 3))
    index = problem.rng.integers(0, problem.n, (2, count) if own else count)  # [2, m] may be more rows than the power
    for plan in PLANS:
        some = propagate_rows(Propagation(to_csr(problem.A), problem.steps, plan), torch.from_numpy(index))
        result = some(torch.from_numpy(H).float())
        for r in range(2):
            expected = power(problem.A, H[r], problem.steps)
            assert torch.allclose(result[r].double(), torch.from_numpy(expected[index[r] if own else index]), atol=1e-4)


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("shape", [(6, 3), (2, 6, 16)])
def test_gradcheck(kernels: str, plan: str, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(3)
    A = to_csr(rng.random((6, 6)) * (rng.random((6, 6)) < 0.5), torch.float64)
    H = torch.from_numpy(rng.standard_normal(shape)).requires_grad_()
    assert torch.autograd.gradcheck(Propagation(A, 3, plan, block_rows=4), (H,), fast_mode=len(shape) > 2)


@pytest.mark.parametrize("plan", PLANS)
def test_deep_float32_stays_near_float64(kernels: str, plan: str) -> None:
    rng = np.random.default_rng(4)
    edges = torch.from_numpy(rng.integers(0, 60, (2, 120)))
    P = normalized_adjacency(torch.cat([edges, edges.flip(0)], 1), 60, dtype=torch.float64)
    H = rng.standard_normal((60, 40))
    operator = Propagation(P.to(torch.float32), 48, plan, block_rows=16)
    assert_near(operator(torch.from_numpy(H).float()), power(P.to_dense().numpy(), H, 48))


@pytest.mark.parametrize("plan", PLANS)
def test_no_steps_is_the_identity(plan: str) -> None:
    H = torch.randn(3, 4, 2)
    assert torch.equal(Propagation(to_csr(np.full((4, 4), 7.0)), 0, plan)(H), H)


@pytest.mark.parametrize("plan", PLANS)
def test_relabelling_nodes_permutes_the_result(plan: str) -> None:
    rng = np.random.default_rng(5)
    A, H, order = rng.random((9, 9)), rng.standard_normal((9, 40)), rng.permutation(9)
    result = Propagation(to_csr(A), 3, plan, block_rows=4)(torch.from_numpy(H).float())
    moved = Propagation(to_csr(A[np.ix_(order, order)]), 3, plan, block_rows=4)(torch.from_numpy(H[order]).float())
    assert_near(moved, result[order])


def test_the_plan_follows_cost_and_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    full, thin = to_csr(np.ones((8, 8))), to_csr(np.eye(400))
    deep = Propagation(full, 1000)
    assert deep.plan.name == "dense"
    assert Propagation(full, 1).plan.name == "steps"
    assert Propagation(thin, 2).plan.name == "steps"
    monkeypatch.setattr(propagation, "DENSE_POWER_BYTES", 8)
    assert Propagation(full, 1000).plan.name == "steps"
    assert "dense" in deep.explain()
    assert "l = 1000" in deep.explain()
    assert "entries = 64" in deep.explain()
    assert "given" in Propagation(full, 2, "blocks").explain()


def test_wrong_arguments_are_named_with_their_value() -> None:
    with pytest.raises(InputError, match="num_steps = -1"):
        Propagation(to_csr(np.eye(2)), -1)
    with pytest.raises(InputError, match=r"plan = 'fast'.*steps, dense, blocks"):
        Propagation(to_csr(np.eye(2)), 1, "fast")


def test_takes_a_sparse_matrix_and_shows_itself() -> None:
    operator = Propagation(SparseMatrix(to_csr(np.eye(3))), 2, "blocks")
    assert repr(operator) == "Propagation(n=3, num_steps=2, plan='blocks')"
    assert torch.equal(operator(torch.ones(3, 1)), torch.ones(3, 1))


@pytest.mark.parametrize("rows", [1, 2, 3, 100])
def test_row_blocks_are_the_rows(rows: int) -> None:
    A = np.arange(15.0).reshape(5, 3) * (np.arange(15).reshape(5, 3) % 2)
    blocks = row_blocks(to_csr(A), rows)
    assert all(block.shape[0] <= rows for block in blocks)
    assert torch.equal(torch.cat([block.to_dense() for block in blocks]), torch.from_numpy(A).float())


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("columns", [2, 40])
def test_rows_that_do_not_fit_are_refused(kernels: str, plan: str, columns: int) -> None:
    operator = Propagation(to_csr(np.eye(50)), 2, plan)
    with pytest.raises(InputError, match="shape"):
        operator(torch.ones(4, columns))


@pytest.mark.parametrize("plan", ["steps", "dense", "blocks"])
@pytest.mark.parametrize("depths", [(5, 0, 2, 5), (3, 3, 3, 3), (4, 4, 4, 4), (7, 1, 4, 2)])
def test_every_replica_has_its_own_depth(kernels: str, plan: str, depths: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    A = rng.random((9, 9)) * (rng.random((9, 9)) < 0.4) / 3
    H, G = rng.standard_normal((4, 9, 8)), rng.standard_normal((4, 9, 8))
    given_H = torch.from_numpy(H).float().requires_grad_()
    result = propagate_to_depths(Propagation(to_csr(A), 4, plan, block_rows=4), depths)(given_H)
    result.backward(torch.from_numpy(G).float())
    for replica, depth in enumerate(depths):
        assert_near(result[replica], power(A, H[replica], depth))
        assert_near(given_H.grad[replica], power(A.T, G[replica], depth))


def test_one_depth_for_all_keeps_the_plan() -> None:
    propagate = Propagation(to_csr(np.eye(3)), 4, "dense")
    assert propagate_to_depths(propagate, [4, 4]) is propagate


@settings(max_examples=30)
@given(st.integers(1, 40), st.integers(0, 4), st.sampled_from([3, 40]), st.integers(0, 10_000))
def test_the_order_stays_inside(n: int, steps: int, columns: int, seed: int) -> None:
    """Directed and undirected, few columns and many: products are the same as before."""
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


def bandwidth(csr: Tensor) -> Tensor:
    rows = torch.repeat_interleave(torch.arange(csr.shape[0]), csr.crow_indices().diff())
    return (rows - csr.col_indices()).abs().float().mean()


def test_a_shuffled_chain_is_put_in_order() -> None:
    n = 600
    chain = torch.stack([torch.arange(n - 1), torch.arange(1, n)])
    shuffled = torch.randperm(n, generator=torch.Generator().manual_seed(0))[chain]
    matrix = SparseMatrix(normalized_adjacency(torch.cat([shuffled, shuffled.flip(0)], 1), n))
    assert bandwidth(matrix.csr) > 100
    assert bandwidth(reordered(matrix).csr) < 2


def test_large_graphs_are_put_in_order_small_ones_are_not() -> None:
    for n, ordered in ((1_000, False), (REORDER_FROM, True)):
        propagate = Propagation(normalized_adjacency(community_edges(n), n), 2, plan="steps")
        assert (propagate.steps_matrix.order is not None) == ordered
        H = torch.rand(n, 32)
        dense = propagate.matrix.csr.to_dense()
        torch.testing.assert_close(propagate(H), dense @ (dense @ H), rtol=1e-4, atol=1e-5)
