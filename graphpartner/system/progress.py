"""Progress of long computations, a callback of (done, total); durations and sizes for people."""

from collections.abc import Callable

Progress = Callable[[int, int], None]


def silent(done: int, total: int) -> None:
    """Do nothing: the default of every ``progress`` argument."""


def format_duration(seconds: float) -> str:
    """Return seconds in words: 1.5 ms, 0.42 s, 8.1 s, 42 s, 3 min 20 s, 2 h 5 min."""
    if seconds < 0.1:
        return f"{1000 * seconds:.2g} ms"
    if seconds < 9.95:
        return f"{seconds:.2g} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def format_bytes(size: float) -> str:
    """Return a size in words: 12.3 MB for 12,345,678 bytes."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"
