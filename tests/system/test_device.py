"""Devices by name, and how machines are named where numbers are recorded."""

import pytest
import torch

from graphpartner.system.device import DEVICES, fits_on, free_memory, machine_facts, machine_name, pick_device
from graphpartner.system.errors import InputError

CPU = torch.device("cpu")


@pytest.mark.parametrize("name", [name for name in DEVICES if name != "cuda"])
def test_devices_by_name(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert pick_device(name) == CPU
    assert pick_device(CPU) == CPU


def test_auto_is_a_gpu_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert pick_device("auto") == pick_device("cuda") == torch.device("cuda")


def test_devices_that_are_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(InputError, match="device = tpu: must be auto, cpu or cuda"):
        pick_device("tpu")
    with pytest.raises(InputError, match="device = cuda: no GPU was found; use cpu or auto"):
        pick_device("cuda")


def test_the_name_of_a_machine_is_made_of_its_facts() -> None:
    facts = machine_facts()
    assert machine_name("cpu") == machine_name(CPU) == f"{facts['cpu']}, {facts['threads']} threads"
    assert facts["threads"] == torch.get_num_threads()
    assert facts["torch"] == torch.__version__


def test_a_cpu_has_free_memory_and_room() -> None:
    assert free_memory(CPU) > 1_000_000
    assert fits_on(torch.eye(3).to_sparse_csr(), CPU)
