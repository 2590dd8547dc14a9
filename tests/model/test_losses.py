import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from graphpartner.graph.adjacency import neighbor_mean
from graphpartner.kernels.spmm import SparseMatrix
from graphpartner.model.gpnn import GPNNOutput, forward
from graphpartner.model.losses import (
    RAMP_EPOCHS,
    agreement_loss,
    consistency_loss,
    consistency_score,
    cross_entropy,
    distillation_loss,
    objective,
    ramp_up,
    rectification_loss,
    sharpened,
)
from graphpartner.model.propagation import Propagation
from graphpartner.system.errors import InputError
from tests.reference import (
    RandomProblem,
    dense_consistency,
    dense_cross_entropy,
    dense_forward,
    dense_rectification,
    dense_score,
    edges_of,
    problems,
    softmax,
    to_csr,
)

SCORES = ("inner", "cosine", "softmax")
LOG2 = math.log(2)
# 4 nodes: 0 − 1 − 2, and 3 alone
PATH = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])


def test_cross_entropy_by_hand() -> None:
    # Node 0: equal logits, nll ln 2. Node 2: odds 3 : 1, nll ln(4/3) for class 0 and ln 4 for class 1.
    logits = torch.tensor([[5.0, 5.0], [9.0, -9.0], [math.log(3), 0.0], [7.0, 0.0]])
    index = torch.tensor([0, 2])
    loss = cross_entropy(logits, index, torch.tensor([1, 0]))
    assert loss.item() == pytest.approx((LOG2 + math.log(4 / 3)) / 2)
    loss = cross_entropy(logits, index, torch.tensor([1, 1]), torch.tensor([0.25, 0.75]))
    assert loss.item() == pytest.approx(0.25 * LOG2 + 0.75 * math.log(4))
    # two replicas with nodes of their own; a node of weight 0 only fills up the row
    both = torch.stack([logits, logits.flip(-1)])
    index, target = torch.tensor([[0, 2], [2, 1]]), torch.tensor([[0, 0], [1, 0]])
    loss = cross_entropy(both, index, target, torch.tensor([[0.5, 0.5], [1.0, 0.0]]))
    assert loss.tolist() == pytest.approx([(LOG2 + math.log(4 / 3)) / 2, math.log(4 / 3)])


@settings(max_examples=40)
@given(problems(replicas=3), st.booleans(), st.booleans())
def test_cross_entropy_equals_dense(problem: RandomProblem, own: bool, weighted: bool) -> None:
    rng, classes, labelled = problem.rng, problem.weight2.shape[2], 4
    logits = rng.standard_normal((3, problem.n, classes)) * 3
    shape = (3, labelled) if own else (labelled,)
    index, target = rng.integers(0, problem.n, shape), rng.integers(0, classes, shape)
    weight = rng.dirichlet(np.ones(labelled), shape[:-1]) if weighted else None
    loss = cross_entropy(
        *map(torch.from_numpy, (logits, index, target)), None if weight is None else torch.from_numpy(weight)
    )
    for r in range(3):
        of_r = tuple(
            None if part is None else np.broadcast_to(part, (3, labelled))[r] for part in (index, target, weight)
        )
        assert loss[r].item() == pytest.approx(dense_cross_entropy(logits[r], *of_r), rel=1e-10)


def test_rectification_by_hand() -> None:
    # At T = 2, p = (3/4, 1/4) and q = (1/2, 1/2): KL = 3/4 ln(3/2) + 1/4 ln(1/2). The other three nodes agree.
    mlp, gcn = torch.zeros(4, 2), torch.zeros(4, 2)
    mlp[1, 0] = 2 * math.log(3)
    divergence = 0.75 * math.log(1.5) + 0.25 * math.log(0.5)
    assert rectification_loss(mlp, gcn, 2.0).item() == pytest.approx(4 * divergence / 4 / 2)
    # the order matters: p is the MLP partner's. KL(q ‖ p) = 1/2 ln(2/3) + 1/2 ln 2.
    turned = 0.5 * math.log(2 / 3) + 0.5 * math.log(2)
    assert rectification_loss(gcn, mlp, 2.0).item() == pytest.approx(4 * turned / 4 / 2)


@settings(max_examples=40)
@given(problems(replicas=3))
def test_rectification_equals_dense(problem: RandomProblem) -> None:
    shape = (3, problem.n, problem.weight2.shape[2])
    mlp, gcn = problem.rng.standard_normal(shape) * 3, problem.rng.standard_normal(shape) * 3
    temperature = np.array([0.5, 2.0, 7.0])
    one = rectification_loss(torch.from_numpy(mlp), torch.from_numpy(gcn), 2.0)
    own = rectification_loss(torch.from_numpy(mlp), torch.from_numpy(gcn), torch.from_numpy(temperature)[:, None, None])
    for r in range(3):
        assert one[r].item() == pytest.approx(dense_rectification(mlp[r], gcn[r], 2.0), rel=1e-9)
        assert own[r].item() == pytest.approx(dense_rectification(mlp[r], gcn[r], temperature[r]), rel=1e-9)
    assert (one >= 0).all()


def test_rectification_of_equal_logits_is_zero() -> None:
    logits = torch.randn(3, 5, 4, dtype=torch.float64)
    assert rectification_loss(logits, logits).tolist() == [0.0, 0.0, 0.0]
    assert rectification_loss(logits, logits + 3.0).abs().max() < 1e-15  # a constant changes no softmax


@pytest.mark.parametrize("temperature", [0.0, -1.0])
def test_rectification_names_a_wrong_temperature(temperature: float) -> None:
    with pytest.raises(InputError, match=f"temperature = {temperature}"):
        rectification_loss(torch.zeros(2, 2), torch.zeros(2, 2), temperature)


H = torch.tensor([[1.0, 0.0], [0.0, 2.0], [3.0, 4.0], [0.0, 0.0]])
G = torch.tensor([[2.0, 1.0], [0.0, 1.0], [4.0, -3.0], [1.0, 1.0]])


def test_inner_score_by_hand() -> None:
    # positives 2, 2, 0, 0: mean 1. Ω = (1, 0): ⟨h_i, g_1⟩ = 0 2 4 0 and ⟨h_i, g_0⟩ = 2 2 10 0, mean of all 8: 20/8.
    assert consistency_score(H, G, torch.tensor([1, 0])).item() == pytest.approx(1 - 2.5)
    assert consistency_loss(H, G, 1.0, torch.tensor([1, 0])).item() == pytest.approx(2.5)
    # Ω is drawn with replacement: a node that comes twice counts twice. ⟨h_i, g_1⟩ 6/4, ⟨h_i, g_0⟩ 14/4.
    assert consistency_score(H, G, torch.tensor([1, 1, 0])).item() == pytest.approx(1 - (1.5 + 1.5 + 3.5) / 3)


def test_cosine_score_by_hand() -> None:
    # cosines with oneself: 2/√5, 1, 0, and 0 for the zero row; with g_1 = (0, 1): 0, 1, 4/5, 0.
    expected = (2 / 5**0.5 + 1) / 4 - (1 + 0.8) / 4
    assert consistency_score(H, G, torch.tensor([1]), "cosine").item() == pytest.approx(expected)


def test_softmax_score_by_hand() -> None:
    # one negative, g_1: node 0 has 2 against 0, node 1 2 against 2, node 2 0 against 4, node 3 0 against 0;
    # a share of 1/(1 + e^−x) against the rest gives tanh(x/2).
    expected = (math.tanh(1) + 0 + math.tanh(-2) + 0) / 4
    assert consistency_score(H, G, torch.tensor([1]), "softmax").item() == pytest.approx(expected)


def test_neighbor_positives_by_hand() -> None:
    # node 0 sees g_1, node 1 the mean of g_0 and g_2, (3, −1), node 2 sees g_1, node 3 nobody: 0, −2, 4, 0: mean 1/2.
    # less the mean of ⟨h_i, g_1⟩, 6/4.
    score = consistency_score(H, G, torch.tensor([1]), "inner", PATH)
    assert score.item() == pytest.approx(0.5 - 1.5)
    # an edge three times as heavy: node 1 sees (3 g_0 + g_2)/4 = (2.5, 0): positives 0, 0, 4, 0.
    weighted = torch.sparse_coo_tensor(
        torch.tensor([[1, 0, 2, 1], [0, 1, 1, 2]]), torch.tensor([3.0, 3.0, 1.0, 1.0]), (4, 4)
    )
    assert consistency_score(H, G, torch.tensor([1]), "inner", weighted.to_sparse_csr()).item() == pytest.approx(
        1 - 1.5
    )


@settings(max_examples=60)
@given(problems(replicas=3), st.sampled_from(SCORES), st.booleans(), st.booleans())
def test_score_and_loss_equal_dense(problem: RandomProblem, score: str, own: bool, neighbors: bool) -> None:
    rng, shape = problem.rng, (3, problem.n, 4)
    h, g = rng.standard_normal(shape), rng.standard_normal(shape)
    h[0, 0] = g[1, -1] = 0  # zero rows
    negatives = rng.integers(0, problem.n, (3, 5) if own else (5,))
    margin = rng.standard_normal(3)
    A = problem.neighbors if neighbors else None
    args = torch.from_numpy(h), torch.from_numpy(g)
    positives = None if A is None else to_csr(A, torch.float64)
    scores = consistency_score(*args, torch.from_numpy(negatives), score, positives)
    losses = consistency_loss(*args, torch.from_numpy(margin), torch.from_numpy(negatives), score, positives)
    assert scores.shape == losses.shape == (3,)
    for r in range(3):
        omega = negatives[r] if own else negatives
        assert scores[r].item() == pytest.approx(dense_score(h[r], g[r], omega, score, A), rel=1e-9, abs=1e-12)
        expected = dense_consistency(h[r], g[r], margin[r], omega, score, A)
        assert losses[r].item() == pytest.approx(expected, rel=1e-9, abs=1e-12)
        alone = consistency_score(args[0][r], args[1][r], torch.from_numpy(omega), score, positives)
        assert alone.item() == pytest.approx(scores[r].item(), rel=1e-12, abs=1e-14)


@settings(max_examples=30)
@given(problems(replicas=2), st.sampled_from(SCORES))
def test_forms_of_neighbors_agree(problem: RandomProblem, score: str) -> None:
    rng, n = problem.rng, problem.n
    h, g = torch.from_numpy(rng.standard_normal((2, 2, n, 3)))
    edges, omega = edges_of(problem.neighbors), torch.from_numpy(rng.integers(0, n, 4))
    loops = torch.arange(n).expand(2, n)
    forms = [
        edges,
        torch.cat([edges, edges[:, :2], loops], 1),  # duplicates and self-loops add nothing
        to_csr(problem.neighbors, torch.float64),
        to_csr(problem.neighbors + np.eye(n), torch.float64),
        to_csr(problem.neighbors, torch.float64).to_sparse_coo(),
        SparseMatrix(neighbor_mean(edges, n, dtype=torch.float64)),
    ]
    results = [consistency_score(h, g, omega, score, form) for form in forms]
    for result in results[1:]:
        torch.testing.assert_close(result, results[0], rtol=1e-12, atol=1e-13)


def test_directed_neighbors_receive() -> None:
    # one edge 0 → 1: only node 1 has a positive, ⟨h_1, g_0⟩ = 2; as CSR that is entry (1, 0).
    edge = torch.tensor([[0], [1]])
    matrix = torch.zeros(4, 4)
    matrix[1, 0] = 1
    for form in (edge, matrix.to_sparse_csr()):
        assert consistency_score(H, G, torch.tensor([1]), "inner", form).item() == pytest.approx(2 / 4 - 1.5)


def test_no_node_has_a_neighbor() -> None:
    nobody = torch.empty(2, 0, dtype=torch.long)
    assert consistency_score(H, G, torch.tensor([1]), "inner", nobody).item() == pytest.approx(-1.5)


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("neighbors", [None, PATH])
def test_zero_rows_have_finite_gradients(score: str, neighbors: torch.Tensor | None) -> None:
    for h, g in ((H.clone(), G.clone()), (torch.zeros(4, 2), torch.zeros(4, 2))):
        h.requires_grad_(), g.requires_grad_()
        consistency_loss(h, g, 5.0, torch.tensor([3, 0]), score, neighbors).backward()
        assert h.grad.isfinite().all()
        assert g.grad.isfinite().all()


@pytest.mark.parametrize("neighbors", [None, PATH])
def test_cosines_do_not_depend_on_lengths(neighbors: torch.Tensor | None) -> None:
    lengths = torch.tensor([[1e-6], [1.0], [1e6], [3.0]])
    plain, scaled = (
        consistency_score(h, g, torch.tensor([1, 2]), "cosine", neighbors)
        for h, g in ((H, G), (H * lengths, G / lengths))
    )
    torch.testing.assert_close(scaled, plain)


def test_the_margin_is_a_hinge_at_zero() -> None:
    # the score of this pair is −1.5 (see above): S below it costs nothing and pulls nowhere, S above it costs S + 1.5.
    omega = torch.tensor([1, 0])
    for margin, loss, pulls in ((-1.6, 0.0, False), (-1.5, 0.0, None), (-1.25, 0.25, True), (0.0, 1.5, True)):
        h = H.clone().requires_grad_()
        value = consistency_loss(h, G, margin, omega)
        value.backward()
        assert value.item() == pytest.approx(loss, abs=1e-6)
        if pulls is not None:
            assert bool(h.grad.abs().sum() > 0) == pulls


def test_replicas_have_margins_of_their_own() -> None:
    losses = consistency_loss(torch.stack([H, H]), torch.stack([G, G]), torch.tensor([-2.0, 0.5]), torch.tensor([1, 0]))
    assert losses.tolist() == pytest.approx([0.0, 2.0])


def test_negatives_are_drawn_where_none_are_given() -> None:
    # each node alone as Ω gives one of four losses; a loss without Ω is one of them, and not always the same.
    known = [consistency_loss(H, G, 9.0, torch.tensor([k])).item() for k in range(4)]
    torch.manual_seed(0)
    seen = {consistency_loss(H, G, 9.0).item() for _ in range(60)}
    assert seen == set(known)


def test_what_does_not_fit_together_is_named() -> None:
    H = torch.randn(4, 3)
    with pytest.raises(InputError, match=r"initial has shape \[4, 3\] and smoothed \[1, 3\]: must be the same"):
        consistency_loss(H, H[:1], negatives=torch.tensor([0]))
    with pytest.raises(InputError, match="negatives is empty"):
        consistency_loss(H, H, negatives=torch.tensor([], dtype=torch.int64))
    with pytest.raises(InputError, match=r"mlp_logits has shape \[4, 3\] and gcn_logits \[4, 2\]"):
        rectification_loss(H, H[:, :2])
    for temperature in (0.0, -1.0, math.nan):
        with pytest.raises(InputError, match=f"temperature = {temperature}: must be greater than 0"):
            rectification_loss(H, H, temperature)


def test_an_unknown_score_is_named() -> None:
    with pytest.raises(InputError, match=r"score = 'dot'.*inner, cosine, softmax"):
        consistency_loss(H, G, score="dot")


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("neighbors", [None, PATH])
def test_gradcheck_of_the_contrastive_loss(score: str, neighbors: torch.Tensor | None) -> None:
    torch.manual_seed(1)
    h, g = torch.randn(2, 2, 4, 3, dtype=torch.float64).requires_grad_().unbind(0)
    omega = torch.tensor([[0, 2, 2], [3, 1, 0]])
    assert torch.autograd.gradcheck(lambda a, b: consistency_loss(a, b, 20.0, omega, score, neighbors), (h, g))


def test_gradcheck_of_the_other_losses() -> None:
    torch.manual_seed(2)
    a, b = torch.randn(2, 2, 4, 3, dtype=torch.float64).requires_grad_().unbind(0)
    temperature = torch.tensor([1.0, 3.0], dtype=torch.float64)[:, None, None]
    assert torch.autograd.gradcheck(lambda p, q: rectification_loss(p, q, temperature), (a, b))
    index, target = torch.tensor([[0, 3], [2, 1]]), torch.tensor([[2, 1], [0, 0]])
    weight = torch.tensor([[0.5, 0.5], [1.0, 0.0]], dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda p: cross_entropy(p, index, target, weight), (a,))


def some_output() -> GPNNOutput:
    torch.manual_seed(0)
    logits, mlp, gcn = torch.randn(3, 2, 4, 3, dtype=torch.float64)
    initial, smoothed = torch.randn(2, 2, 4, 5, dtype=torch.float64)
    return GPNNOutput(logits, mlp, gcn, initial, smoothed)


@settings(max_examples=40)
@given(problems(replicas=2), st.sampled_from(["inner", "cosine", "softmax"]), st.booleans())
def test_objective_equals_dense(problem: RandomProblem, score: str, neighbors: bool) -> None:
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
def test_gradcheck_of_the_objective(plan: str, score: str) -> None:
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


@given(
    views=st.integers(1, 4),
    n=st.integers(1, 6),
    classes=st.integers(2, 5),
    s=st.floats(0.1, 1),
    seed=st.integers(0, 99),
)
def test_agreement_equals_a_loop_over_views_and_nodes(views: int, n: int, classes: int, s: float, seed: int) -> None:
    logits = np.random.default_rng(seed).normal(size=(views, n, classes)) * 3
    p = np.apply_along_axis(softmax, -1, logits)
    total = 0.0
    for i in range(n):
        sharp = p[:, i].mean(0) ** (1 / s)
        sharp /= sharp.sum()
        total += sum(((p[v, i] - sharp) ** 2).sum() for v in range(views))
    assert float(agreement_loss(list(torch.from_numpy(logits)), s)) == pytest.approx(total / views / n, rel=1e-6)


def test_agreement_is_zero_for_equal_views_without_sharpening() -> None:
    logits = torch.randn(2, 5, 3)
    assert agreement_loss([logits, logits], 1.0).abs().max() < 1e-12
    assert (agreement_loss([logits, logits], 0.5) > 0).all()


@pytest.mark.parametrize("temperature", [1e-6, 0.01, 0.5, 1.0])
def test_sharpening_of_many_classes_at_any_temperature(temperature: float) -> None:
    p = torch.rand(50, 10, generator=torch.Generator().manual_seed(0)) + 0.5
    p = p / p.sum(1, keepdim=True)
    exact = p.double().log() / temperature
    expected = (exact - exact.logsumexp(1, keepdim=True)).exp()
    torch.testing.assert_close(sharpened(p, temperature).double(), expected, rtol=1e-3, atol=1e-4)


def test_no_gradient_flows_into_the_target() -> None:
    first, second = torch.randn(4, 3, requires_grad=True), torch.randn(4, 3)
    agreement_loss([first, second], 0.5).backward()
    p = torch.stack([first.detach().softmax(1), second.softmax(1)])
    sharp = (p.mean(0) ** 2) / (p.mean(0) ** 2).sum(1, keepdim=True)
    error = p[0] - sharp
    by_hand = p[0] * (error - (error * p[0]).sum(1, keepdim=True)) * 2 / 4 / 2
    torch.testing.assert_close(first.grad, by_hand, rtol=1e-4, atol=1e-7)


def test_certain_views_have_finite_gradients() -> None:
    logits = torch.tensor([[300.0, 0, 0]], requires_grad=True)
    agreement_loss([logits, logits], 0.1).backward()
    assert torch.isfinite(logits.grad).all()


@given(n=st.integers(1, 6), classes=st.integers(2, 5), seed=st.integers(0, 99))
def test_distillation_equals_a_loop_over_nodes(n: int, classes: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    logits, teacher = (
        rng.normal(size=(2, n, classes)),
        np.apply_along_axis(softmax, -1, rng.normal(size=(2, n, classes))),
    )
    slow = [-sum(teacher[r, i] @ np.log(softmax(logits[r, i])) for i in range(n)) / n for r in range(2)]
    np.testing.assert_allclose(distillation_loss(torch.from_numpy(logits), torch.from_numpy(teacher)), slow)


def test_the_ramp_ends_at_one() -> None:
    assert ramp_up(torch.tensor([0])).item() == pytest.approx(1 / RAMP_EPOCHS)
    assert ramp_up(torch.tensor([RAMP_EPOCHS - 1])).item() == 1
    assert ramp_up(torch.tensor([10 * RAMP_EPOCHS])).item() == 1
