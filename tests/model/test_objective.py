import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from graphpartner.kernels.spmm import SparseMatrix
from graphpartner.model.gpnn import Output, forward
from graphpartner.model.losses import objective
from graphpartner.model.propagation import Propagation
from tests.dense import (
    RandomProblem,
    dense_consistency,
    dense_cross_entropy,
    dense_forward,
    dense_rectification,
    problems,
    to_csr,
)


def some_output() -> Output:
    torch.manual_seed(0)
    logits, mlp, gcn = torch.randn(3, 2, 4, 3, dtype=torch.float64)
    initial, smoothed = torch.randn(2, 2, 4, 5, dtype=torch.float64)
    return Output(logits, mlp, gcn, initial, smoothed)


@settings(max_examples=40)
@given(problems(replicas=2), st.sampled_from(["inner", "cosine", "softmax"]), st.booleans())
def test_equals_dense(problem: RandomProblem, score: str, neighbors: bool) -> None:
    rng, n, classes = problem.rng, problem.n, problem.weight2.shape[2]
    alpha, lambda_rt, lambda_cs, temperature = rng.random((4, 2)) + 0.1
    margin, negatives = rng.standard_normal(2), rng.integers(0, n, (2, 3))
    index, target = rng.integers(0, n, 5), rng.integers(0, classes, 5)
    A = problem.neighbors if neighbors else None
    t = torch.from_numpy
    out = forward(
        t(problem.X),
        t(problem.weight1),
        t(problem.weight2),
        Propagation(to_csr(problem.A, torch.float64), problem.steps),
        t(alpha)[:, None, None],
    )
    parts = objective(
        out,
        t(index),
        t(target),
        lambda_rt=t(lambda_rt),
        lambda_cs=t(lambda_cs),
        temperature=t(temperature)[:, None, None],
        margin=t(margin),
        negatives=t(negatives),
        score=score,
        neighbors=None if A is None else to_csr(A, torch.float64),
    )
    for r in range(2):
        slow = dense_forward(problem.X, problem.weight1[r], problem.weight2[r], problem.A, problem.steps, alpha[r])
        ce = dense_cross_entropy(slow.logits, index, target)
        rt = dense_rectification(slow.mlp_logits, slow.gcn_logits, temperature[r])
        cs = dense_consistency(slow.initial, slow.smoothed, margin[r], negatives[r], score, A)
        expected = [ce + lambda_rt[r] * rt + lambda_cs[r] * cs, ce, rt, cs]
        assert [part[r].item() for part in parts] == pytest.approx(expected, rel=1e-8, abs=1e-11)


def test_without_contrast_the_other_parts_stay() -> None:
    out, index, target = some_output(), torch.tensor([0, 3]), torch.tensor([1, 2])
    args = {"lambda_rt": 0.3, "lambda_cs": 2.0, "negatives": torch.tensor([1]), "margin": 50.0}
    full, cut = objective(out, index, target, **args), objective(out, index, target, contrast=False, **args)
    assert torch.equal(full.cross_entropy, cut.cross_entropy)
    assert torch.equal(full.rectification, cut.rectification)
    assert cut.consistency.tolist() == [0, 0]
    torch.testing.assert_close(full.total - cut.total, 2.0 * full.consistency)
    assert (full.consistency > 1).all()


@pytest.mark.parametrize(("lambda_rt", "lambda_cs"), [(0.0, 0.0), (1.0, 0.0), (0.0, 1.0)])
def test_each_weight_reaches_its_part(lambda_rt: float, lambda_cs: float) -> None:
    parts = objective(
        some_output(),
        torch.tensor([0]),
        torch.tensor([1]),
        lambda_rt=lambda_rt,
        lambda_cs=lambda_cs,
        negatives=torch.tensor([1]),
        margin=50.0,
    )
    expected = parts.cross_entropy + lambda_rt * parts.rectification + lambda_cs * parts.consistency
    torch.testing.assert_close(parts.total, expected)
    assert (parts.rectification > 0).all()


def test_weights_of_labelled_nodes_are_used() -> None:
    out, index, target = some_output(), torch.tensor([0, 3]), torch.tensor([1, 2])
    first = objective(out, index[:1], target[:1], contrast=False).cross_entropy
    weighted = objective(out, index, target, torch.tensor([1.0, 0.0]), contrast=False).cross_entropy
    torch.testing.assert_close(weighted, first)


@pytest.mark.parametrize("plan", ["steps", "dense", "blocks"])
@pytest.mark.parametrize("score", ["inner", "cosine"])
def test_gradcheck_of_the_whole(plan: str, score: str) -> None:
    rng = np.random.default_rng(0)
    X = SparseMatrix(to_csr(rng.standard_normal((5, 3)), torch.float64))
    A = rng.random((5, 5)) * (rng.random((5, 5)) < 0.6)
    propagate = Propagation(to_csr(A, torch.float64), 2, plan, block_rows=2)
    neighbors = SparseMatrix(to_csr(A / A.sum(1, keepdims=True), torch.float64))
    weight1 = torch.from_numpy(rng.standard_normal((2, 3, 4))).requires_grad_()
    weight2 = torch.from_numpy(rng.standard_normal((2, 4, 3))).requires_grad_()
    alpha = torch.tensor([0.2, 0.7], dtype=torch.float64)[:, None, None]

    def total(W1: torch.Tensor, W2: torch.Tensor) -> torch.Tensor:
        return objective(
            forward(X, W1, W2, propagate, alpha),
            torch.tensor([[0, 2], [1, 4]]),
            torch.tensor([[2, 0], [1, 1]]),
            margin=30.0,
            negatives=torch.tensor([1, 3]),
            score=score,
            neighbors=neighbors,
        ).total

    assert torch.autograd.gradcheck(total, (weight1, weight2))
