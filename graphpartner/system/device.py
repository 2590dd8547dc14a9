"""What computes here, and how much of it is free?"""

import platform
from typing import Any

import torch
from torch import Tensor

from graphpartner.system.errors import InputError


def pick_device(device: str | torch.device) -> torch.device:
    """The device of that name; ``"auto"`` is a GPU where there is one."""
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        place = torch.device(device)
    except RuntimeError:
        raise InputError(f"device = {device}: must be auto, cpu or cuda") from None
    if place.type == "cuda" and not torch.cuda.is_available():
        raise InputError(f"device = {device}: no GPU was found; use cpu or auto")
    return place


def device_name(device: torch.device) -> str:
    """What the row says it was measured on."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"cpu, {torch.get_num_threads()} threads"


def machine_name(device: str) -> str:
    """What a number was measured on."""
    if device == "cuda":
        return torch.cuda.get_device_name()
    try:
        with open("/proc/cpuinfo") as file:
            name = next(line.split(":", 1)[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        name = "CPU"
    return f"{name}, {torch.get_num_threads()} threads"


def machine_facts() -> dict[str, Any]:
    """What the numbers were measured on."""
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
            names = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
    except OSError:
        names = []
    return names[0] if names else platform.processor() or platform.machine()


def free_memory(device: torch.device) -> int:
    """What is free on the device now."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    import psutil

    return int(psutil.virtual_memory().available)


def fits_on(matrix: Tensor, device: torch.device) -> bool:
    """Whether a sparse matrix and its transpose leave half of a GPU's free memory for the rest."""
    if device.type == "cpu":
        return True
    free, _ = torch.cuda.mem_get_info(device)
    return 2 * 12 * matrix.values().numel() < free / 2
