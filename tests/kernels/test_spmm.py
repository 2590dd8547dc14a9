import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graphpartner.kernels.spmm import SparseMatrix, fold, spmm_power, unfold
from graphpartner.system.errors import InputError
from tests.reference import RandomProblem, assert_near, power, problems, to_csr

both = settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])


def test_two_steps_by_hand(kernels: str) -> None:
    # A = [[0 1] [2 3]], A² = [[2 3] [6 11]]; H = (1, 10), then A H = (10, 32), A² H = (32, 116).
    A = to_csr(np.array([[0.0, 1.0], [2.0, 3.0]]))
    for columns in (1, 31, 32, 33, 64, 65, 200):
        H = torch.tensor([[1.0], [10.0]]).repeat(1, columns)
        assert torch.equal(spmm_power(A, H, 1), torch.tensor([[10.0], [32.0]]).repeat(1, columns))
        assert torch.equal(spmm_power(A, H, 2), torch.tensor([[32.0], [116.0]]).repeat(1, columns))
        assert torch.equal(spmm_power(A, H, 0), H)


@both
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 20),
    columns=st.sampled_from([1, 5, 32, 47, 64, 130]),
    steps=st.integers(0, 6),
    density=st.sampled_from([0.0, 0.1, 0.5, 1.0]),
    dtype=st.sampled_from([torch.float32, torch.float64]),
)
def test_powers_equal_dense_ones(
    kernels: str, seed: int, n: int, columns: int, steps: int, density: float, dtype: torch.dtype
) -> None:
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, n)) * (rng.random((n, n)) < density) / np.sqrt(n)
    H = rng.standard_normal((n, columns))
    before = torch.from_numpy(H).to(dtype)
    given_H = before.clone()
    result = spmm_power(to_csr(A, dtype), given_H, steps)
    assert result.dtype == dtype
    share = 1e-5 if dtype == torch.float32 else 1e-13
    assert_near(result, power(A, H, steps), share, sizes=power(abs(A), abs(H), steps))
    assert torch.equal(given_H, before)  # the argument is left alone


@pytest.mark.parametrize("columns", [3, 40])
def test_not_square(kernels: str, columns: int) -> None:
    rng = np.random.default_rng(0)
    for shape in ((7, 4), (4, 7)):
        A, H = rng.standard_normal(shape), rng.standard_normal((shape[1], columns))
        assert_near(spmm_power(to_csr(A), torch.from_numpy(H).float(), 1), A @ H)


def test_columns_that_do_not_lie_side_by_side(kernels: str) -> None:
    rng = np.random.default_rng(1)
    A, H = rng.standard_normal((6, 6)), rng.standard_normal((40, 6))
    assert_near(spmm_power(to_csr(A), torch.from_numpy(H).float().T, 3), power(A, H.T, 3))


def test_number_of_threads_does_not_change_a_bit(kernels: str) -> None:
    rng = np.random.default_rng(2)
    A = to_csr(rng.standard_normal((50, 50)) * (rng.random((50, 50)) < 0.2))
    H = torch.from_numpy(rng.standard_normal((50, 128))).float()
    threads = torch.get_num_threads()
    try:
        results = []
        for count in (1, 2):
            torch.set_num_threads(count)
            results.append(spmm_power(A, H, 3))
    finally:
        torch.set_num_threads(threads)
    assert torch.equal(*results)


def test_path_of_four_nodes_by_hand(kernels: str) -> None:
    # 0 → 1 → 2 → 3, rows receive: one step moves every value one node on.
    shift = SparseMatrix(to_csr(np.diag([2.0, 3.0, 5.0], -1)))
    H = torch.tensor([[1.0], [10.0], [100.0], [1000.0]])
    assert (shift @ H).squeeze(1).tolist() == [0, 2, 30, 500]
    assert shift.power(H, 2).squeeze(1).tolist() == [0, 0, 6, 150]
    assert shift.power(H, 3).squeeze(1).tolist() == [0, 0, 0, 30]
    assert shift.power(H, 4).squeeze(1).tolist() == [0, 0, 0, 0]
    assert shift.power(H, 0) is H


def test_gradient_of_the_path_by_hand(kernels: str) -> None:
    # (Mᵀ)² of the gradient (0, 0, 1, 1): node 0 sends 6 to node 2, node 1 sends 15 to node 3.
    shift = SparseMatrix(to_csr(np.diag([2.0, 3.0, 5.0], -1)))
    H = torch.zeros(4, 40, requires_grad=True)
    shift.power(H, 2)[2:].sum().backward()
    assert torch.equal(H.grad, torch.tensor([[6.0], [15.0], [0.0], [0.0]]).repeat(1, 40))


@both
@given(problems(replicas=3))
def test_replicas_forward_and_backward_equal_dense(kernels: str, problem: RandomProblem) -> None:
    H = problem.rng.standard_normal((3, problem.n, problem.weight1.shape[2]))
    G = problem.rng.standard_normal(H.shape)
    matrix = SparseMatrix(to_csr(problem.A))
    wanted = torch.from_numpy(H).float().requires_grad_()
    result = matrix.power(wanted, problem.steps)
    result.backward(torch.from_numpy(G).float())
    for r in range(3):
        for found, A, to in ((result, problem.A, H), (wanted.grad, problem.A.T, G)):
            assert_near(found[r], power(A, to[r], problem.steps), sizes=power(A, abs(to[r]), problem.steps))


@both
@given(problems(replicas=2))
def test_replicas_of_a_matrix_that_is_not_square(kernels: str, problem: RandomProblem) -> None:
    X, W = SparseMatrix(to_csr(problem.X)), torch.from_numpy(problem.weight1).float().requires_grad_()
    G = problem.rng.standard_normal((2, problem.n, W.shape[2]))
    result = X @ W
    result.backward(torch.from_numpy(G).float())
    assert_near(result, problem.X @ problem.weight1, sizes=abs(problem.X) @ abs(problem.weight1))
    assert_near(W.grad, problem.X.T @ G, sizes=abs(problem.X.T) @ abs(G))


@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize("shape", [(5, 2), (2, 5, 2), (2, 2, 5, 8)])
def test_gradcheck(kernels: str, steps: int, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    matrix = SparseMatrix(to_csr(rng.standard_normal((5, 5)) * (rng.random((5, 5)) < 0.5), torch.float64))
    H = torch.from_numpy(rng.standard_normal(shape)).requires_grad_()
    assert torch.autograd.gradcheck(lambda h: matrix.power(h, steps), (H,), fast_mode=len(shape) > 3)


def test_transpose_shape_repr_and_precision() -> None:
    M = np.array([[0.0, 1.0, 0.0], [2.0, 0.0, 3.0]])
    matrix = SparseMatrix(to_csr(M))
    assert torch.equal(matrix.transpose.to_dense(), torch.from_numpy(M.T).float())
    assert matrix.shape == (2, 3)
    assert matrix.nnz == 3
    assert repr(matrix) == "SparseMatrix(2x3, nnz=3)"
    assert matrix.to(dtype=torch.float64).csr.dtype == torch.float64
    assert matrix.csr.dtype == torch.float32


@given(problem=problems())
@settings(max_examples=50)
def test_rows_are_those_of_the_dense_matrix(problem: RandomProblem) -> None:
    rng = np.random.default_rng(problem.n)
    M = rng.standard_normal((problem.n, 5)) * (rng.random((problem.n, 5)) < 0.4)
    which = torch.from_numpy(rng.integers(0, problem.n, rng.integers(0, 2 * problem.n)))  # some twice, others never
    found = SparseMatrix(to_csr(M)).rows(which)
    assert found.shape == (which.numel(), 5)
    assert torch.equal(found.csr.to_dense(), torch.from_numpy(M[which.numpy()]).float())


def test_fold_puts_replicas_side_by_side_and_unfold_takes_them_apart() -> None:
    H = torch.arange(24.0).reshape(2, 3, 4)
    assert torch.equal(fold(H), torch.cat([H[0], H[1]], dim=1))
    assert torch.equal(unfold(fold(H), H.shape), H)
    wide = torch.arange(48.0).reshape(2, 2, 3, 4)
    assert torch.equal(unfold(fold(wide), wide.shape), wide)
    assert torch.equal(fold(H[0]), H[0])


@pytest.mark.parametrize("columns", [2, 40])
def test_rows_that_do_not_fit_are_refused(kernels: str, columns: int) -> None:
    matrix = SparseMatrix(to_csr(np.eye(5)))
    with pytest.raises(InputError, match="shape"):
        matrix @ torch.ones(4, columns)
