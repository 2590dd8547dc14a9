import copy
import io

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import HealthCheck, given, settings

from graphpartner.graph.adjacency import normalized_adjacency
from graphpartner.kernels.spmm import SparseMatrix
from graphpartner.model.gpnn import GPNN, forward
from graphpartner.model.losses import consistency_loss, rectification_loss
from graphpartner.model.propagation import Propagation
from graphpartner.system.errors import InputError
from tests.reference import RandomProblem, assert_near, dense_forward, power, problems, to_csr

# 0 − 1 − 2 − 3, both directions
PATH = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])
OUTPUTS = ("logits", "mlp_logits", "gcn_logits", "initial", "smoothed")
both = settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])


def module(hidden: int = 40, **arguments) -> GPNN:
    torch.manual_seed(3)
    return GPNN(5, hidden, 3, **{"num_steps": 2, **arguments}).eval()


def some_features() -> torch.Tensor:
    torch.manual_seed(4)
    return torch.rand(4, 5) * (torch.rand(4, 5) < 0.7)


def test_forward_by_hand() -> None:
    # X W1 = (1, −1), (2, 0), (0, 3), (−1, 1), so H1 = (1, 0), (2, 0), (0, 3), (0, 1).
    # A passes on: node i takes from node i + 1, node 3 from node 0; twice: H3 = (0, 3), (0, 1), (1, 0), (2, 0).
    # W2 = (1, 10)ᵀ with one class: φ1 = 1, 2, 30, 10 and φ2 = 30, 10, 1, 2. α = 1/4: φ1/4 + 3 φ2/4.
    X = torch.tensor([[1.0, -1.0], [2.0, 0.0], [0.0, 3.0], [-1.0, 1.0]])
    A = torch.eye(4).roll(1, dims=1).to_sparse_csr()
    out = forward(X, torch.eye(2), torch.tensor([[1.0], [10.0]]), Propagation(A, 2), 0.25)
    assert out.initial.tolist() == [[1, 0], [2, 0], [0, 3], [0, 1]]
    assert out.smoothed.tolist() == [[0, 3], [0, 1], [1, 0], [2, 0]]
    assert out.mlp_logits.squeeze(1).tolist() == [1, 2, 30, 10]
    assert out.gcn_logits.squeeze(1).tolist() == [30, 10, 1, 2]
    assert out.logits.squeeze(1).tolist() == [22.75, 8, 8.25, 4]


@both
@given(problem=problems(replicas=3))
def test_forward_equals_dense_for_every_replica(kernels: str, problem: RandomProblem) -> None:
    alpha = problem.rng.random(3)
    weights = [torch.from_numpy(weight).float() for weight in (problem.weight1, problem.weight2)]
    column = torch.from_numpy(alpha).float()[:, None, None]
    for X in (torch.from_numpy(problem.X).float(), SparseMatrix(to_csr(problem.X))):
        for plan in ("steps", "dense", "blocks"):
            propagate = Propagation(to_csr(problem.A), problem.steps, plan, block_rows=4)
            out = forward(X, *weights, propagate, column)
            short = forward(X, *weights, propagate, column, smooth=False)  # only C columns travel
            for r in range(3):
                W1, W2 = problem.weight1[r], problem.weight2[r]
                slow = dense_forward(problem.X, W1, W2, problem.A, problem.steps, alpha[r])
                sizes = dense_forward(abs(problem.X), abs(W1), abs(W2), problem.A, problem.steps, alpha[r])
                for result, names in ((out, OUTPUTS), (short, OUTPUTS[:3])):
                    for name in names:
                        assert_near(getattr(result, name)[r], getattr(slow, name), sizes=getattr(sizes, name))


@settings(max_examples=15)
@given(problems(replicas=2))
def test_where_each_dropout_acts(problem: RandomProblem) -> None:
    # any function may stand for dropout: scale X by 2, H1 by 3 for the graph branch and by 5 for the partner.
    weights = [torch.from_numpy(weight) for weight in (problem.weight1, problem.weight2)]
    A = problem.A
    for smooth in (True, False):
        out = forward(
            torch.from_numpy(problem.X),
            *weights,
            Propagation(to_csr(A, torch.float64), problem.steps),
            0.3,
            drop_input=lambda X: 2 * X,
            drop_hidden=lambda H: 3 * H,
            drop_partner=lambda H: 5 * H,
            smooth=smooth,
        )
        for r in range(2):
            hidden = np.maximum(2 * problem.X @ problem.weight1[r], 0)
            mlp, gcn = 5 * hidden @ problem.weight2[r], power(A, 3 * hidden, problem.steps) @ problem.weight2[r]
            assert_near(out.initial[r], 3 * hidden, 1e-12)
            assert_near(out.mlp_logits[r], mlp, 1e-12)
            assert_near(out.gcn_logits[r], gcn, 1e-12)
            assert_near(out.logits[r], 0.3 * mlp + 0.7 * gcn, 1e-12)


@pytest.mark.parametrize("plan", ["steps", "dense", "blocks"])
@pytest.mark.parametrize("smooth", [True, False])
def test_gradcheck(plan: str, smooth: bool) -> None:
    rng = np.random.default_rng(0)
    X = SparseMatrix(to_csr(rng.standard_normal((5, 3)), torch.float64))
    propagate = Propagation(to_csr(rng.random((5, 5)), torch.float64), 2, plan, block_rows=2)
    weight1 = torch.from_numpy(rng.standard_normal((2, 3, 4))).requires_grad_()
    weight2 = torch.from_numpy(rng.standard_normal((2, 4, 3))).requires_grad_()
    alpha = torch.tensor([0.2, 0.7], dtype=torch.float64)[:, None, None]
    assert torch.autograd.gradcheck(
        lambda W1, W2: tuple(forward(X, W1, W2, propagate, alpha, smooth=smooth)), (weight1, weight2), fast_mode=smooth
    )


# Special cases


def test_without_steps_or_with_the_partner_alone_it_is_an_mlp() -> None:
    x = some_features()
    for model in (module(num_steps=0, alpha=0.2), module(num_steps=7, alpha=1.0)):
        mlp = torch.relu(x @ model.weight1) @ model.weight2
        torch.testing.assert_close(model(x, PATH).logits, mlp)


def test_without_partner_it_is_a_linear_deep_gcn() -> None:
    x, model = some_features(), module(num_steps=6, alpha=0.0)
    P = np.array([[1, 1, 0, 0], [1, 1, 1, 0], [0, 1, 1, 1], [0, 0, 1, 1]]) / np.sqrt(
        np.outer([2, 3, 3, 2], [2, 3, 3, 2])
    )
    hidden = np.maximum(x.double().numpy() @ model.weight1.detach().double().numpy(), 0)
    expected = np.linalg.matrix_power(P, 6) @ hidden @ model.weight2.detach().double().numpy()
    assert_near(model(x, PATH).logits, expected)


def test_rectification_is_zero_without_steps() -> None:
    out = module(num_steps=0)(some_features(), PATH)
    assert rectification_loss(out.mlp_logits, out.gcn_logits).item() == 0
    out = module(num_steps=2)(some_features(), PATH)
    assert rectification_loss(out.mlp_logits, out.gcn_logits).item() > 1e-4


def test_relabelling_nodes_permutes_the_result() -> None:
    x, model, order = some_features(), module(), torch.tensor([2, 0, 3, 1])
    place = torch.empty(4, dtype=torch.long).scatter_(0, order, torch.arange(4))  # node i has become node place[i]
    for before, after in zip(model(x, PATH), model(x[order], place[PATH]), strict=True):
        torch.testing.assert_close(after, before[order])


# The module


@pytest.mark.parametrize("hidden", [4, 40])
def test_forms_of_input_agree(hidden: int) -> None:
    x, model = some_features(), module(hidden)
    A = normalized_adjacency(PATH, 4)
    expected = model(x, A)
    assert [tuple(part.shape) for part in expected] == [(4, 3)] * 3 + [(4, hidden)] * 2
    for features in (x, x.to_sparse_csr(), x.to_sparse_coo()):
        forms = (
            PATH,
            PATH.int(),
            A,
            A.to_sparse_coo(),
            *(Propagation(A, 2, plan) for plan in ("steps", "dense", "blocks")),
        )
        for adj in forms:
            for part, other in zip(expected, model(features, adj), strict=True):
                torch.testing.assert_close(other, part)


def test_edge_index_stands_for_the_plain_normalised_adjacency() -> None:
    x, model = some_features(), module(alpha=0.0)
    messy = torch.cat([PATH, PATH[:, :3], torch.arange(4).expand(2, 4)], 1)  # duplicates, self-loops
    torch.testing.assert_close(model(x, messy).logits, model(x, PATH).logits)
    assert not torch.allclose(model(x, PATH[:, :2]).logits, model(x, PATH).logits)


def test_never_a_stale_operator() -> None:
    x, model = some_features(), module()

    def fresh(features: torch.Tensor, adj: torch.Tensor) -> torch.Tensor:
        clone = module(num_steps=model.num_steps)
        return clone(features.clone(), adj.clone()).logits

    A, edges, sparse_x = normalized_adjacency(PATH, 4), PATH.clone(), x.to_sparse_csr()
    for features, adj in ((x, A), (x, edges), (sparse_x, A), (sparse_x, edges)):
        seen = [model(features, adj).logits]

        def changed(features=features, adj=adj, seen=seen) -> None:
            now = model(features, adj).logits
            torch.testing.assert_close(now, fresh(features, adj))
            assert not torch.allclose(now, seen[-1])
            seen.append(now)

        torch.testing.assert_close(seen[0], fresh(features, adj))
        model.num_steps = 3
        changed()
        model.num_steps = 2
        changed()
        if adj is A:
            adj.values().mul_(1.5)
        else:
            adj[1, -2:] = (adj[1, -2:] + 1) % 4  # other edges
        changed()
        if features is x:
            features.mul_(2)
        else:
            features.values().mul_(2)
        changed()
    new = normalized_adjacency(PATH[:, :2], 4)
    torch.testing.assert_close(model(x, new).logits, fresh(x, new))
    larger = torch.cat([x, x])  # the same edges on more nodes
    torch.testing.assert_close(model(larger, edges).logits, fresh(larger, edges))


def test_the_gradient_is_not_stale_either() -> None:
    x, model, A = some_features(), module(), normalized_adjacency(PATH, 4)
    model(x, A).logits.sum().backward()
    A.values().mul_(1.5)
    gradients = []
    for adj in (A, A.clone()):
        model.zero_grad()
        model(x, adj).logits.sum().backward()
        gradients.append(model.weight1.grad)
    torch.testing.assert_close(*gradients)


def test_an_unchanged_graph_is_prepared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from graphpartner.model import gpnn

    calls = []

    def counted(*arguments):
        calls.append(arguments)
        return normalized_adjacency(*arguments)

    monkeypatch.setattr(gpnn, "normalized_adjacency", counted)
    model, x = module(), some_features()
    for _ in range(3):
        model(x, PATH)
    assert len(calls) == 1


def test_works_in_inference_mode_and_without_gradients() -> None:
    model, x = module(), some_features()
    expected = model(x, PATH).logits
    with torch.no_grad():
        torch.testing.assert_close(model(x, PATH).logits, expected)
    with torch.inference_mode():
        made_here, edges = x.clone(), PATH.clone()
        torch.testing.assert_close(model(made_here, edges).logits, expected)
        made_here.mul_(2)
        assert not torch.allclose(model(made_here, edges).logits, expected)


def test_gradients_reach_weights_and_features() -> None:
    model, x = module(), some_features().requires_grad_()
    model(x, PATH).logits.square().sum().backward()
    for tensor in (x, model.weight1, model.weight2):
        assert tensor.grad.abs().sum() > 0


def test_reset_parameters_is_glorot_uniform() -> None:
    torch.manual_seed(0)
    model = GPNN(300, 200, 7)
    before = model.weight1.clone()
    model.reset_parameters()
    assert not torch.equal(model.weight1, before)
    for weight in (model.weight1, model.weight2):
        bound = (6 / sum(weight.shape)) ** 0.5
        assert weight.abs().max() <= bound
        assert weight.abs().max() > 0.98 * bound
        assert weight.var().item() == pytest.approx(bound**2 / 3, rel=0.1)
    assert {name for name, _ in model.named_parameters()} == {"weight1", "weight2"}  # no bias


def test_repr() -> None:
    assert repr(GPNN(5, 4, 3, num_steps=6, alpha=0.3)) == "GPNN(5, 4, 3, num_steps=6, alpha=0.3)"


def test_state_dict_round_trip() -> None:
    model, x = module(), some_features()
    model(x, PATH)
    assert set(model.state_dict()) == {"weight1", "weight2", "class_bias"}
    torch.manual_seed(99)
    other = GPNN(5, 40, 3, num_steps=2).eval()
    assert not torch.equal(other(x, PATH).logits, model(x, PATH).logits)
    other.load_state_dict(model.state_dict())
    assert torch.equal(other(x, PATH).logits, model(x, PATH).logits)


@pytest.mark.parametrize("used", [False, True])
def test_deep_copies_and_pickles_are_independent(used: bool) -> None:
    model, x = module(), some_features()
    sparse_x, A = x.to_sparse_csr(), normalized_adjacency(PATH, 4)
    if used:
        model(sparse_x, A)
    buffer = io.BytesIO()
    torch.save(model, buffer)
    buffer.seek(0)
    expected = model(x, PATH).logits.detach().clone()
    for twin in (copy.deepcopy(model), torch.load(buffer, weights_only=False)):
        assert torch.equal(twin(x, PATH).logits, expected)
        with torch.no_grad():
            twin.weight1.zero_()
        assert torch.equal(model(x, PATH).logits, expected)
        assert twin(x, PATH).logits.abs().max() == 0


@pytest.mark.parametrize("sparse", [False, True])
def test_dropout_in_training_only(sparse: bool) -> None:
    x = torch.rand(4, 5) + 0.5
    features = x.to_sparse_csr() if sparse else x
    model = module(dropout=0.5, input_dropout=0.0)
    assert torch.equal(model(features, PATH).logits, model(features, PATH).logits)
    with torch.no_grad():
        model.weight1.abs_()  # no ReLU is in the way: a zero is a dropped entry
    kept = model(features, PATH).initial
    model.train()
    out = model(features, PATH)
    dropped = out.initial == 0
    assert 0.25 < dropped.float().mean() < 0.75
    torch.testing.assert_close(out.initial[~dropped], 2 * kept[~dropped])
    torch.testing.assert_close(out.mlp_logits, out.initial @ model.weight2)
    torch.testing.assert_close(out.smoothed, Propagation(normalized_adjacency(PATH, 4), 2)(out.initial))


@pytest.mark.parametrize("sparse", [False, True])
def test_input_dropout_in_training_only(sparse: bool) -> None:
    # W1 = I shows X itself: entries are dropped at the rate asked for and the others scaled.
    model = GPNN(60, 60, 2, num_steps=1, dropout=0.0, input_dropout=0.75)
    with torch.no_grad():
        model.weight1.copy_(torch.eye(60))
    x = torch.full((60, 60), 3.0)
    features = x.to_sparse_csr() if sparse else x
    edges = torch.tensor([[0, 1], [1, 0]])
    seen = model.train()(features, edges).initial
    assert set(seen.unique().tolist()) == {0.0, 12.0}
    share = (seen > 0).float().mean().item()
    assert abs(share - 0.25) < 5 * (0.25 * 0.75 / 3600) ** 0.5
    assert not torch.equal(model(features, edges).initial, seen)
    assert torch.equal(model.eval()(features, edges).initial, x)


@pytest.mark.parametrize("name", ["alpha", "dropout", "input_dropout"])
@pytest.mark.parametrize("value", [-0.1, 1.5, float("nan")])
def test_shares_out_of_range_are_named(name: str, value: float) -> None:
    with pytest.raises(InputError, match=f"^{name} = {value}: "):
        GPNN(5, 4, 3, **{name: value})


def test_a_negative_number_of_steps_is_named() -> None:
    with pytest.raises(InputError, match="num_steps = -2"):
        GPNN(5, 4, 3, num_steps=-2)


@pytest.mark.parametrize("hidden", [4, 40])
def test_a_graph_of_another_size_is_refused(kernels: str, hidden: int) -> None:
    large = normalized_adjacency(torch.tensor([[0, 900], [900, 0]]), 1000)
    with pytest.raises(InputError, match=r"\[1000, 1000\]"):
        module(hidden)(some_features(), large)
    with pytest.raises(InputError, match=r"\[4, 6\]"):
        module(hidden)(torch.eye(4, 6).to_sparse_csr(), PATH)


@pytest.mark.parametrize("hidden", [4, 40])
def test_double_precision(kernels: str, hidden: int) -> None:
    x, model = some_features(), module(hidden)
    expected = model(x, PATH).logits
    out = model.double()(x.double(), PATH)
    assert out.logits.dtype == torch.float64
    torch.testing.assert_close(out.logits.float(), expected)
    out.logits.sum().backward()
    assert model.weight1.grad.dtype == torch.float64


def test_double_precision_of_a_graph_with_hubs(kernels: str) -> None:
    generator = torch.Generator().manual_seed(5)
    edges = torch.randint(0, 90, (2, 900), generator=generator)
    edge_index, x = torch.cat([edges, edges.flip(0)], 1).unique(dim=1), torch.rand(90, 5, generator=generator)
    model = module()
    expected = model(x, edge_index).logits
    for adj in (edge_index, normalized_adjacency(edge_index, 90)):
        out = copy.deepcopy(model).double()(x.double(), adj)
        assert out.logits.dtype == torch.float64
        torch.testing.assert_close(out.logits.float(), expected)


def test_a_class_bias_is_added_to_the_logits_and_kept_with_the_weights() -> None:
    x, model = some_features(), module()
    plain = model(x, PATH)
    model.class_bias.copy_(torch.tensor([1.0, -2.0, 0.5]))
    torch.testing.assert_close(model(x, PATH).logits, plain.logits + torch.tensor([1.0, -2.0, 0.5]))
    assert torch.equal(model(x, PATH).gcn_logits, plain.gcn_logits)
    again = module()
    again.load_state_dict(model.state_dict())
    assert torch.equal(again(x, PATH).logits, model(x, PATH).logits)
    assert sum(each.numel() for each in model.parameters()) == model.weight1.numel() + model.weight2.numel()


def test_mixed_precision_leaves_the_model_in_its_own(kernels: str) -> None:
    x, model = some_features(), module()
    expected = model(x, PATH)
    for features in (x, x.to_sparse_csr()):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            out = model(features, PATH)
            loss = F.cross_entropy(out.logits, torch.tensor([0, 1, 2, 0])) + consistency_loss(out.initial, out.smoothed)
        torch.testing.assert_close(out.logits, expected.logits)
        loss.backward()
        assert model.weight1.grad.dtype == torch.float32
