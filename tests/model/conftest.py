"""Both ways through the compiled loops: with numba, and without."""

import sys

import pytest
import torch

from graphpartner import compiled


def take_kernels_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let everybody who asks for compiled loops hear what is heard without numba."""
    for name, module in list(sys.modules.items()):
        if name.startswith("graphpartner.") and getattr(module, "compiled", None) is compiled.compiled:
            monkeypatch.setattr(module, "compiled", lambda module, device: None)


@pytest.fixture(autouse=True)
def one_thread():
    """Small matrices gain nothing from several threads, and wait for each other on a busy machine."""
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
