"""Fixtures of tests that run with compiled loops and without."""

from collections.abc import Iterator

import pytest
import torch

from graphpartner.kernels.table import Kernels


def take_kernels_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let PyTorch do the work of every operation, as where no compiler is installed."""
    monkeypatch.setattr(Kernels, "on", lambda device: Kernels())


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Use one thread: small matrices gain nothing from several, and wait for them on a busy machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(params=["numba", "torch"])
def kernels(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "numba":
        pytest.importorskip("numba")
    else:
        take_kernels_away(monkeypatch)
    return request.param
