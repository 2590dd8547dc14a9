"""How much memory the join may take, in bytes."""

import torch

from graphpartner.errors import InputError

ENTRY = 12  # bytes of one entry of the result: an int64 column and a float32 cosine


def free_memory(device: torch.device) -> int:
    """What is free on the device now."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    import psutil

    return int(psutil.virtual_memory().available)


def working_memory(memory: int | None, device: torch.device) -> int:
    """``memory`` if it is given and valid, otherwise a quarter of what is free."""
    if memory is None:
        return free_memory(device) // 4
    if isinstance(memory, bool) or not isinstance(memory, int) or memory <= 0:
        raise InputError(f"memory must be a positive number of bytes, got {memory!r}")
    return memory


def output_memory(memory: int, device: torch.device) -> int:
    """How large the result may be: a quarter of what is free, or ``memory`` where that is more."""
    return max(memory, free_memory(device) // 4)


def readable(size: float) -> str:
    """12,345,678 bytes as 12.3 MB."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"
