import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graphpartner.kernels import draws
from graphpartner.kernels.dropout import Dropout, Rate
from graphpartner.kernels.spmm import SparseMatrix
from tests.kernels.conftest import take_kernels_away
from tests.kernels.test_draws import bits_of, key_of
from tests.reference import to_csr

RATES = (0.0, 0.3, 0.5, 0.9, 1.0)


def dropout(
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4), rates: tuple[float, ...] = RATES, stream: str = "hidden"
) -> Dropout:
    return Dropout(draws.keys(list(seeds), stream, 1)[0], Rate(torch.tensor(rates)))


def expected_mask(seed: int, rate: float, rows: int, columns: int, stream: str = "hidden") -> np.ndarray:
    """From Python integers: keep where the draw, as a share of 2³², is below 1 − rate."""
    mask = np.zeros((rows, columns))
    for i in range(rows):
        for j in range(columns):
            drawn = bits_of(key_of(seed, stream, 0), i * columns + j)
            drawn = (drawn + 2**31) % 2**32  # ordered as a signed number
            if drawn / 2**32 < 1 - float(np.float32(rate)):
                mask[i, j] = 1 / (1 - rate)
    return mask


def test_hidden_drops_what_python_integers_say(kernels: str) -> None:
    dropped = dropout().hidden(torch.ones(5, 7, 6))
    for r, rate in enumerate(RATES):
        np.testing.assert_allclose(dropped[r], expected_mask(r, rate, 7, 6), rtol=1e-6)


@pytest.mark.parametrize("form", ["sparse", "dense"])
def test_input_drops_what_python_integers_say(kernels: str, form: str) -> None:
    X = torch.ones(7, 6)
    features = SparseMatrix(X.to_sparse_csr()) if form == "sparse" else X
    seen = dropout(stream="input").input(features) @ torch.eye(6).expand(5, 6, 6)
    for r, rate in enumerate(RATES):
        np.testing.assert_allclose(seen[r], expected_mask(r, rate, 7, 6, "input"), rtol=1e-6)


def test_keep_rates_and_scale(kernels: str) -> None:
    n, h = 400, 250
    dropped = dropout().hidden(torch.full((5, n, h), 3.0))
    for r, rate in enumerate(RATES):
        kept = dropped[r] != 0
        assert abs(kept.double().mean().item() - (1 - rate)) <= 5 * (rate * (1 - rate) / n / h) ** 0.5
        if rate < 1:
            torch.testing.assert_close(dropped[r][kept], torch.full((int(kept.sum()),), 3.0 / (1 - rate)))


def test_rate_zero_keeps_and_rate_one_drops_everything(kernels: str) -> None:
    H = torch.randn(5, 30, 20)
    dropped = dropout().hidden(H)
    assert torch.equal(dropped[0], H[0])
    assert dropped[4].abs().max() == 0
    X = SparseMatrix(to_csr(np.random.default_rng(0).random((30, 20))))
    seen = dropout().input(X) @ torch.eye(20).expand(5, 20, 20)
    torch.testing.assert_close(seen[0], X.csr.to_dense())
    assert seen[4].abs().max() == 0


def test_compiled_and_plain_masks_agree_bit_for_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba")
    H, X = torch.ones(5, 90, 70), torch.ones(90, 70)
    results = []
    for _ in range(2):
        sparse = dropout().input(SparseMatrix(X.to_sparse_csr())) @ torch.eye(70).expand(5, 70, 70).contiguous()
        results.append((dropout().hidden(H), sparse))
        take_kernels_away(monkeypatch)  # the second time in plain torch
    for compiled, plain in zip(*results, strict=True):
        assert torch.equal(compiled, plain)


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 70),
    d=st.integers(1, 70),
    h=st.sampled_from([1, 3, 33]),
    density=st.sampled_from([0.0, 0.2, 1.0]),
)
def test_sparse_and_dense_equal_autograd(kernels, seed, n, d, h, density) -> None:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < density)
    W, G = rng.standard_normal((3, d, h)), rng.standard_normal((3, n, h))
    drop = dropout((seed, 5, 6), (0.2, 0.5, 0.8), "input")
    mask = drop.mask(draws.counters(n * d)).reshape(3, n, d).double().numpy()
    for features in (SparseMatrix(to_csr(X)), torch.from_numpy(X).float()):
        weight = torch.from_numpy(W).float().requires_grad_()
        product = drop.input(features) @ weight
        product.backward(torch.from_numpy(G).float())
        for r in range(3):
            dropped = X * mask[r]
            for found, left, right in ((product[r], dropped, W[r]), (weight.grad[r], dropped.T, G[r])):
                terms = np.abs(left) @ np.abs(right)  # what a sum rounds by, even where it comes out near zero
                assert (np.abs(found.detach().numpy() - left @ right) <= 3e-6 * terms).all()


@pytest.mark.parametrize("layout", ["replica first", "node first"])
def test_gradient_of_hidden_dropout(kernels: str, layout: str) -> None:
    torch.manual_seed(0)
    H, G = torch.randn(2, 5, 9, 4)
    if layout == "node first":  # as it comes from a product
        H, G = (M.transpose(0, 1).contiguous().transpose(0, 1) for M in (H, G))
    H.requires_grad_()
    drop = dropout()
    drop.hidden(H).backward(G)
    mask = drop.mask(draws.counters(36)).reshape(5, 9, 4)
    torch.testing.assert_close(drop.hidden(H), H * mask)
    torch.testing.assert_close(H.grad, G * mask)


def test_a_replica_drops_the_same_alone(kernels: str) -> None:
    H, X = torch.randn(5, 20, 8), SparseMatrix(to_csr(np.random.default_rng(1).random((20, 8))))
    W = torch.randn(5, 8, 4)
    together, product = dropout().hidden(H), dropout(stream="input").input(X) @ W
    for r, rate in enumerate(RATES):
        assert torch.equal(dropout((r,), (rate,)).hidden(H[r : r + 1])[0], together[r])
        alone = dropout((r,), (rate,), "input").input(X) @ W[r : r + 1]
        torch.testing.assert_close(alone[0], product[r])


def test_counters_beyond_32_bits_wrap_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba")
    rows, columns = 70_000, 65_537  # 4.6e9 places
    rng = np.random.default_rng(0)
    row, column = np.sort(rng.integers(60_000, rows, 400)), rng.integers(0, columns, 400)
    X = torch.sparse_coo_tensor(np.stack([row, column]), torch.ones(400), (rows, columns)).coalesce().to_sparse_csr()
    matrix, drop = SparseMatrix(X), dropout((1,), (0.5,), "input")
    results = []
    for _ in range(2):
        W = torch.ones(1, columns, 1, requires_grad=True)
        product = drop.input(matrix) @ W
        product.sum().backward()
        results.append((product.detach().clone(), W.grad.clone()))
        take_kernels_away(monkeypatch)
    for compiled, plain in zip(*results, strict=True):
        assert torch.equal(compiled, plain)
        assert 0 < compiled.count_nonzero() < 400
