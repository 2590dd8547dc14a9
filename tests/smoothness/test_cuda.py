import numpy as np
import pytest
import torch

from graphpartner.smoothness.bounds import energy_bounds
from graphpartner.smoothness.energy import dirichlet_energy
from graphpartner.smoothness.mad_gap import mad, mad_gap

from .reference import random_graph

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


def test_a_gpu_gives_the_same() -> None:
    edge_index = random_graph(np.random.default_rng(0), 300, 0.01)
    H, W = torch.randn(2, 300, 16), torch.randn(16, 8)
    there = edge_index.cuda()
    torch.testing.assert_close(dirichlet_energy(H.cuda(), there).cpu(), dirichlet_energy(H, edge_index))
    for edges in (edge_index, there):
        found = mad_gap(H.cuda(), edges, near=2, remote=4)
        assert found.is_cuda
        torch.testing.assert_close(found.cpu(), mad_gap(H, edge_index, near=2, remote=4))
    torch.testing.assert_close(mad(H.cuda(), there).cpu(), mad(H, edge_index))
    here = energy_bounds([H, H @ W], [W], edge_index)
    bounds = energy_bounds([H.cuda(), H.cuda() @ W.cuda()], [W.cuda()], there)
    torch.testing.assert_close(bounds.upper.cpu(), here.upper)
