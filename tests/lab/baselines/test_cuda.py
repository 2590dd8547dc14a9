"""What only a GPU can show: the Triton kernels, the captured step, the planned batch."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from graphpartner.graph.datasets import load_graph
from graphpartner.kernels.edge_products import Edges
from graphpartner.kernels.nt_xent import nt_xent
from graphpartner.lab.baselines.all_baselines import train_baseline
from graphpartner.lab.baselines.grace import GRACESettings
from graphpartner.lab.baselines.self_supervised import Pretrained, pretrain
from tests.kernels.conftest import take_kernels_away
from tests.lab.baselines.graphs import SMALL_SELF_SUPERVISED, SMALL_SUPERVISED, dense_adjacency, odd_graph, pretext_task
from tests.training.graphs import toy

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


@pytest.mark.parametrize(
    ("replicas", "n", "width", "temperature"), [(2, 75, 24, 0.4), (1, 640, 256, 0.2), (3, 65, 16, 0.9)]
)
def test_log_sums_equal_those_in_double_precision(replicas: int, n: int, width: int, temperature: float) -> None:
    torch.manual_seed(0)
    first, second = torch.randn(2, replicas, n, width)
    factor = torch.rand(replicas)

    def everything(device: str, dtype: torch.dtype) -> list[Tensor]:
        views = [Z.to(device, dtype).requires_grad_() for Z in (first, second)]
        loss = nt_xent(*views, temperature)
        return [loss, *torch.autograd.grad((loss * factor.to(loss)).sum(), views)]

    for fast, exact in zip(everything("cuda", torch.float32), everything("cpu", torch.float64), strict=True):
        assert (fast.cpu() - exact).norm() < 2e-3 * exact.norm()


@pytest.mark.parametrize(("groups", "width"), [(1, 1), (3, 5), (24, 8), (5, 150)])
def test_kernels_equal_torch(groups: int, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    edges = Edges(dense_adjacency(odd_graph(40)).to_sparse_csr().cuda())
    values = torch.randn(edges.count, groups, device="cuda", requires_grad=True)
    H = torch.randn(40, groups, width, device="cuda", requires_grad=True)
    direction = torch.randn_like(H)

    def everything() -> tuple[Tensor, ...]:
        out = edges.product(values, H)
        return out, *torch.autograd.grad((out * direction).sum(), (values, H))

    compiled = everything()
    take_kernels_away(monkeypatch)
    for found, expected in zip(compiled, everything(), strict=True):
        assert_close(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", SMALL_SUPERVISED)
def test_gpu_runs_equal_cpu_runs(name: str) -> None:
    changes = SMALL_SUPERVISED[name] | {"epochs": 8, "lr": 0.02}
    gpu, cpu = (train_baseline(name, toy(), range(3), device, changes, keep_layers=True) for device in ("cuda", "cpu"))
    assert_close(gpu.logits, cpu.logits, rtol=1e-2, atol=1e-3)
    assert_close(gpu.val_loss, cpu.val_loss, rtol=1e-3, atol=1e-3)
    assert all(weight.device.type == "cpu" for weight in gpu.weights.values())


@pytest.mark.parametrize("name", SMALL_SUPERVISED)
def test_runs_together_equal_runs_alone_and_survive_compaction(name: str) -> None:
    changes = SMALL_SUPERVISED[name] | {"epochs": 60, "patience": 5, "lr": 0.02}
    together, alone = (train_baseline(name, toy(), range(6), "cuda", changes, batch_size=size) for size in (6, 1))
    assert_close(together.val_loss, alone.val_loss, rtol=2e-2, atol=2e-2)


ENCODERS = SMALL_SELF_SUPERVISED | {
    "grace, wide": GRACESettings(hidden_channels=128, projection_channels=64, lr=0.01, epochs=12)
}


def encoded(name: str, device: str, seeds: list[int], **changes: Any) -> Pretrained:
    settings = ENCODERS[name].replace(**changes)
    return pretrain(pretext_task(settings, toy(), device), seeds, lambda amount: None)


@pytest.mark.parametrize("name", ENCODERS)
def test_encoders_learn_on_a_gpu_as_on_a_cpu(name: str) -> None:
    gpu, cpu = (encoded(name, device, [7, 1, 4], epochs=5) for device in ("cuda", "cpu"))
    assert_close(gpu.loss.cpu(), cpu.loss.cpu(), rtol=1e-2, atol=1e-2)
    assert gpu.epochs.tolist() == cpu.epochs.tolist()


@pytest.mark.parametrize("name", ENCODERS)
def test_encoders_together_learn_as_they_do_alone_and_survive_compaction(name: str) -> None:
    together = encoded(name, "cuda", [7, 1, 4, 9, 2])
    for place, seed in enumerate([7, 1, 4, 9, 2]):
        assert_close(together.loss[place], encoded(name, "cuda", [seed]).loss[0], rtol=2e-2, atol=2e-2)


def test_many_runs_on_a_real_graph() -> None:
    data = load_graph("citeseer")
    runs = train_baseline("gat", data, range(20), "cuda", {"epochs": 200})
    assert runs.accuracy(data.test_mask).mean() > 0.69
