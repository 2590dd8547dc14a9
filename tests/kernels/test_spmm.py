import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graphpartner.kernels.spmm import spmm_power
from tests.dense import assert_near, power, to_csr

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
def test_powers_equal_dense_ones(kernels, seed, n, columns, steps, density, dtype) -> None:
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
