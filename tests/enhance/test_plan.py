import math

import pytest
import torch

from graphpartner.enhance import plan
from graphpartner.enhance.features import read_features
from graphpartner.enhance.join import attribute_graph
from graphpartner.enhance.plan import choose_kernel, plan_enhancement
from graphpartner.graph.adjacency import adjacency
from graphpartner.system.errors import InputError

from .test_join import random_graph

CPU = torch.device("cpu")


def test_every_row_sampled_is_exact() -> None:
    x, edge_index = random_graph("counts")
    planned = plan_enhancement(x, edge_index, 2, 0.3, sample=1000)
    assert planned.sampled_rows == 300
    assert planned.kept == attribute_graph(x, edge_index, 2, 0.3)._nnz() - 300
    assert planned.pairs == attribute_graph(torch.ones(300, 1), edge_index, 2, 1.0)._nnz() - 300
    assert planned.pairs_error == planned.kept_error == 0
    assert planned.output_bytes == 12 * (planned.kept + 300) + 8 * 301


def test_a_sample_is_near_by_its_own_error() -> None:
    x, edge_index = random_graph("binary")
    exact, sampled = plan_enhancement(x, edge_index, sample=300), plan_enhancement(x, edge_index, sample=100, seed=3)
    assert 0 < sampled.kept_error < exact.kept
    assert abs(sampled.kept - exact.kept) < 5 * sampled.kept_error
    assert math.isclose(sampled.pairs, exact.pairs, rel_tol=0.2)


def test_says_what_and_why() -> None:
    x, edge_index = random_graph("binary")
    text = plan_enhancement(x, edge_index).explain()
    assert "300 nodes, 64 rows sampled" in text
    assert "because" in text


def test_the_kernel_follows_the_rows() -> None:
    kernels = {}
    for kind in ("binary", "counts"):
        x, edge_index = random_graph(kind)
        kernels[kind] = plan_enhancement(x, edge_index).kernel
    assert kernels == {"binary": "binary", "counts": "weighted"}


@pytest.mark.parametrize("kind", ["binary", "real"])
def test_without_numba_blocks_are_used(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "HAS_NUMBA", False)
    x, edge_index = random_graph(kind)
    features = read_features(x)
    A = adjacency(edge_index, 300)
    assert choose_kernel(features, A, 3, CPU, 10**8).kernel in ("dense", "scipy")
    assert choose_kernel(features, A, 3, CPU, 1000).kernel == "scipy"


def test_on_cuda_everything_is_a_product() -> None:
    x, edge_index = random_graph("real")
    assert choose_kernel(read_features(x), adjacency(edge_index, 300), 3, torch.device("cuda"), 10**8).kernel == "dense"


def test_wrong_sample_is_named() -> None:
    x, edge_index = random_graph("binary")
    with pytest.raises(InputError, match=r"^sample = 0: must be "):
        plan_enhancement(x, edge_index, sample=0)
