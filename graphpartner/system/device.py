"""Which device computes, what it is called, and how much of its memory is free."""

import platform
from typing import Any

import torch
from torch import Tensor

from graphpartner.system.errors import InputError

DEVICES = ("auto", "cpu", "cuda")


def pick_device(device: str | torch.device) -> torch.device:
    """Return the device of that name; ``"auto"`` is a GPU where there is one, and the CPU elsewhere."""
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        place = torch.device(device)
    except RuntimeError:
        raise InputError(f"device = {device}: must be {', '.join(DEVICES[:-1])} or {DEVICES[-1]}") from None
    if place.type == "cuda" and not torch.cuda.is_available():
        raise InputError(f"device = {device}: no GPU was found; use cpu or auto")
    return place


def machine_name(device: str | torch.device) -> str:
    """Return the name of the GPU, or of the CPU with the number of threads."""
    if torch.device(device).type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"{_cpu_name()}, {torch.get_num_threads()} threads"


def machine_facts() -> dict[str, Any]:
    """Return what a measurement of speed depends on: CPU, threads, GPU, and versions."""
    return {
        "cpu": _cpu_name(),
        "threads": torch.get_num_threads(),
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "python": platform.python_version(),
        "torch": torch.__version__,
    }


def _cpu_name() -> str:
    try:
        with open("/proc/cpuinfo") as file:
            return next(line.split(":", 1)[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def free_memory(device: torch.device) -> int:
    """Return how many bytes of the device's memory are free now."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    import psutil

    return int(psutil.virtual_memory().available)


def fits_on(matrix: Tensor, device: torch.device) -> bool:
    """Tell whether a sparse matrix and its transpose leave half of a GPU's free memory for the rest."""
    return device.type == "cpu" or 2 * 12 * matrix.values().numel() < free_memory(device) / 2
