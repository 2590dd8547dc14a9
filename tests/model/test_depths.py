import numpy as np
import pytest
import torch

from graphpartner.model.propagation import Propagation, propagate_to_depths
from tests.dense import assert_near, power, to_csr


@pytest.mark.parametrize("plan", ["steps", "dense", "blocks"])
@pytest.mark.parametrize("depths", [(5, 0, 2, 5), (3, 3, 3, 3), (4, 4, 4, 4), (7, 1, 4, 2)])
def test_every_replica_goes_its_own_way(kernels: str, plan: str, depths: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    A = rng.random((9, 9)) * (rng.random((9, 9)) < 0.4) / 3
    H, G = rng.standard_normal((4, 9, 8)), rng.standard_normal((4, 9, 8))
    given = torch.from_numpy(H).float().requires_grad_()
    result = propagate_to_depths(Propagation(to_csr(A), 4, plan, block_rows=4), depths)(given)
    result.backward(torch.from_numpy(G).float())
    for replica, depth in enumerate(depths):
        assert_near(result[replica], power(A, H[replica], depth))
        assert_near(given.grad[replica], power(A.T, G[replica], depth))


def test_one_depth_for_all_keeps_the_plan() -> None:
    propagate = Propagation(to_csr(np.eye(3)), 4, "dense")
    assert propagate_to_depths(propagate, [4, 4]) is propagate
