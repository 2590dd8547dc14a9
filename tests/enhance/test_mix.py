"""β P + (1 − β) Ã_attr, by compiled loops and by plain torch, against the dense formula."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from graphpartner.enhance import mix as module
from graphpartner.enhance.mix import canonical, mix

SEEDS, SIZES, SHARES = st.integers(0, 2**31 - 1), st.integers(1, 9), st.floats(0, 1)


def some(generator: torch.Generator, n: int, share: float) -> Tensor:
    """A random matrix of positive weights, so many of its entries 0."""
    weights = torch.rand(n, n, generator=generator, dtype=torch.float64) + 0.1
    return weights * (torch.rand(n, n, generator=generator) < share)


def dense(attribute: Tensor, P: Tensor, beta: float) -> Tensor:
    sums = attribute.sum(1, keepdim=True)
    return beta * P + (1 - beta) * attribute / torch.where(sums == 0, 1, sums)


@pytest.mark.parametrize("loops", ["compiled", "plain"])
@settings(deadline=None)
@given(seed=SEEDS, n=SIZES, kept=SHARES, edges=SHARES, beta=st.sampled_from([0.0, 0.3, 0.9]))
def test_the_sum_is_the_dense_one(loops: str, seed: int, n: int, kept: float, edges: float, beta: float) -> None:
    generator = torch.Generator().manual_seed(seed)
    attribute, P = some(generator, n, kept).float(), some(generator, n, edges)
    given_values = attribute.clone()
    with pytest.MonkeyPatch.context() as patch:
        if loops == "plain":
            patch.setattr(module, "compiled", lambda *_: None)
        found = mix(attribute.to_sparse_csr(), P.to_sparse_csr(), beta)
    torch.testing.assert_close(found.to_dense(), dense(attribute.double(), P, beta).float())
    assert found.values().numel() == int(
        ((attribute != 0) | ((P != 0) & (beta > 0))).sum()
    )  # no entry twice, none idle
    assert canonical(found) is found
    assert torch.equal(attribute, given_values)


def test_unsorted_and_doubled_entries_are_put_in_order() -> None:
    crow, column = torch.tensor([0, 3, 3, 5]), torch.tensor([2, 0, 2, 1, 2])
    loose = torch.sparse_csr_tensor(crow, column, torch.tensor([1.0, 2, 3, 4, 5]), (3, 3))
    tidy = canonical(loose)
    assert tidy.col_indices().tolist() == [0, 2, 1, 2]
    assert tidy.values().tolist() == [2, 4, 4, 5]
    assert canonical(tidy) is tidy
