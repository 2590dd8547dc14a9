import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor

from graphpartner.kernels.mix import canonical, mixed

SEEDS, SIZES, SHARES = st.integers(0, 2**31 - 1), st.integers(1, 9), st.floats(0, 1)


def some(generator: torch.Generator, n: int, share: float) -> Tensor:
    """Return a random matrix of positive weights and zeros."""
    weights = torch.rand(n, n, generator=generator, dtype=torch.float64) + 0.1
    return weights * (torch.rand(n, n, generator=generator) < share)


def dense_mixture(attribute: Tensor, P: Tensor, beta: float) -> Tensor:
    sums = attribute.sum(1, keepdim=True)
    return beta * P + (1 - beta) * attribute / torch.where(sums == 0, 1, sums)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=SEEDS, n=SIZES, kept=SHARES, edges=SHARES, beta=st.sampled_from([0.0, 0.3, 0.9]))
def test_the_sum_is_the_dense_one(kernels: str, seed: int, n: int, kept: float, edges: float, beta: float) -> None:
    generator = torch.Generator().manual_seed(seed)
    attribute, P = some(generator, n, kept).float(), some(generator, n, edges)
    given_values = attribute.clone()
    found = mixed(attribute.to_sparse_csr(), P.to_sparse_csr(), beta)
    torch.testing.assert_close(found.to_dense(), dense_mixture(attribute.double(), P, beta).float())
    entries = (attribute != 0) | ((P != 0) & (beta > 0))
    assert found.values().numel() == int(entries.sum())  # no duplicate, no zero
    assert canonical(found) is found
    assert torch.equal(attribute, given_values)


def test_unsorted_and_doubled_entries_are_put_in_order() -> None:
    crow, column = torch.tensor([0, 3, 3, 5]), torch.tensor([2, 0, 2, 1, 2])
    loose = torch.sparse_csr_tensor(crow, column, torch.tensor([1.0, 2, 3, 4, 5]), (3, 3))
    tidy = canonical(loose)
    assert tidy.col_indices().tolist() == [0, 2, 1, 2]
    assert tidy.values().tolist() == [2, 4, 4, 5]
    assert canonical(tidy) is tidy
