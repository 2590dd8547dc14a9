"""Tests that need a GPU: the Triton kernels, the captured step, batches that do not fit."""

from collections.abc import Callable

import pytest
import torch

from graphpartner import load_dataset, preset, train
from graphpartner.kernels import draws, dropout
from graphpartner.kernels.adam import Adam
from graphpartner.kernels.dropout import Dropout, Rate
from graphpartner.kernels.row_products import row_products
from graphpartner.kernels.spmm import SparseMatrix
from graphpartner.model.propagation import Propagation
from graphpartner.training import trainer
from graphpartner.training.batch import Batch
from graphpartner.training.loop import Trained, train_replicas
from tests.kernels.conftest import take_kernels_away

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


Parts = tuple[SparseMatrix, torch.Tensor, torch.Tensor, Dropout]


@pytest.fixture
def parts() -> Parts:
    torch.manual_seed(0)
    X = torch.rand(300, 120) * (torch.rand(300, 120) < 0.1)
    drop = Dropout(draws.keys([1, 2, 3], "input", 1)[0].cuda(), Rate(torch.tensor([0.0, 0.4, 0.9]).cuda()))
    return SparseMatrix(X.to_sparse_csr().cuda()), torch.randn(3, 120, 40).cuda(), torch.randn(3, 300, 40).cuda(), drop


@pytest.mark.parametrize("form", ["sparse", "dense"])
def test_dropout_kernels_equal_torch(parts: Parts, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    X, W, H, drop = parts
    X = X if form == "sparse" else X.csr.to_dense()
    compiled = [
        dropout.dropped(H, drop),
        dropout.dropped_product(X, W, drop),
        dropout.dropped_product_gradient(X, H, drop),
    ]
    take_kernels_away(monkeypatch)
    plain = [
        dropout.dropped(H, drop),
        dropout.dropped_product(X, W, drop),
        dropout.dropped_product_gradient(X, H, drop),
    ]
    torch.testing.assert_close(compiled[0], plain[0], rtol=0, atol=0)
    for found, expected in zip(compiled[1:], plain[1:], strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


def test_adam_kernel_equals_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    weight, gradient = torch.randn(2, 30, 7).cuda(), torch.randn(2, 30, 7).cuda()
    rate, decay = torch.tensor([0.01, 0.1]).cuda(), torch.tensor([0.0, 0.5]).cuda()
    ours, plain = Adam(weight.clone(), rate, decay), Adam(weight.clone(), rate, decay)
    for _ in range(3):
        ours.step(gradient)
    take_kernels_away(monkeypatch)
    for _ in range(3):
        plain.step(gradient)
    torch.testing.assert_close(ours.weight, plain.weight, rtol=1e-5, atol=1e-6)


def test_row_products_equal_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    H, G = torch.randn(3, 50, 33).cuda(), torch.randn(50, 3, 33).cuda().transpose(0, 1)
    compiled = row_products(H, G)
    take_kernels_away(monkeypatch)
    for found, expected in zip(compiled, row_products(H, G), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("plan", ["steps", "dense", "blocks"])
def test_plans_agree_with_the_cpu(plan: str) -> None:
    torch.manual_seed(0)
    A = (torch.rand(200, 200) * (torch.rand(200, 200) < 0.05)).to_sparse_csr()
    H = torch.randn(2, 200, 24)
    expected = Propagation(A, 3, plan="steps")(H)
    place = "cpu" if plan == "blocks" else "cuda"
    found = Propagation(A.to(place), 3, plan=plan, block_rows=64)(H.cuda()).cpu()
    assert (found - expected).abs().max() <= 1e-5 * expected.abs().max()


def test_gpu_runs_equal_cpu_runs() -> None:
    data = load_dataset("citeseer")
    settings = preset("citeseer/tuned").settings.replace(epochs=12, num_steps=4)
    gpu, cpu = (train(data, settings, range(3), device) for device in ("cuda", "cpu"))
    for name in ("loss", "val_loss"):
        for ours, theirs in zip(gpu.history, cpu.history, strict=True):
            assert abs(ours[name] - theirs[name]).max() < 1e-3


def test_runs_together_equal_runs_alone_and_survive_compaction() -> None:
    data = load_dataset("citeseer")
    settings = preset("citeseer/tuned").settings.replace(epochs=60, num_steps=4, patience=5, lr=0.05)
    together, alone = (train(data, settings, range(6), "cuda", batch_size=size) for size in (6, 1))
    for ours, theirs in zip(together.history, alone.history, strict=True):
        shared = min(len(ours["loss"]), len(theirs["loss"]), 10)
        assert abs(ours["loss"][:shared] - theirs["loss"][:shared]).max() < 1e-2
    assert len(together) == 6


def test_out_of_memory_halves_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[int] = []

    def small(batch: Batch, advance: Callable[[int], None]) -> Trained:
        tried.append(batch.weights[0].shape[0])
        if tried[-1] > 2:
            raise torch.cuda.OutOfMemoryError("too much")
        return train_replicas(batch, advance)

    monkeypatch.setattr(trainer, "train_replicas", small)
    data = load_dataset("citeseer")
    runs = train(data, preset("citeseer/tuned").settings.replace(epochs=2), range(5), "cuda", batch_size=5)
    assert tried == [5, 3, 2, 2, 1]
    assert runs.batches == [2, 2, 1]
