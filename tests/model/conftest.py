"""Both ways through the compiled loops: with numba, and without."""

import sys

import pytest
import torch


def take_kernels_away(monkeypatch: pytest.MonkeyPatch) -> int:
    """Let every cached function that hands out compiled loops answer as it does without numba; how many there were."""
    found = 0
    for name, module in list(sys.modules.items()):
        if not name.startswith(("graphpartner.model", "graphpartner.train")):
            continue
        for attribute, value in list(vars(module).items()):
            if "kernel" in attribute and hasattr(value, "cache_clear"):
                monkeypatch.setattr(module, attribute, lambda *device: None)
                found += 1
    return found


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
        assert take_kernels_away(monkeypatch) > 0
    return request.param
