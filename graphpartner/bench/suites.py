"""The suites of ``gpnn bench``: which claims each one measures."""

import platform
from collections.abc import Callable
from typing import Any

import torch

from graphpartner.bench.join import join_rows
from graphpartner.bench.scale import Point, scale_points
from graphpartner.bench.scale_join import join_points
from graphpartner.bench.timing import Row
from graphpartner.bench.training import cpu_rows, cuda_rows
from graphpartner.errors import InputError
from graphpartner.progress import Progress, silent

SUITES = ("cpu", "cuda", "join", "scale")


def run_suite(
    suite: str, root: str | None = None, tell: Callable[[Row | Point], None] | None = None, progress: Progress = silent
) -> list[Row | Point]:
    """Measure every claim of a suite.

    Args:
        suite: ``cpu`` and ``cuda`` are about training, ``join`` about the graph enhancement (on a GPU where there is
            one), ``scale`` about how cost grows.
        root: a data root with all six graphs.
        tell: called with every result as soon as it is there.
        progress: called with (claims measured, claims).
    """
    if suite not in SUITES:
        raise InputError(f"--suite {suite}: must be one of {', '.join(SUITES)}")
    if suite == "cuda" and not torch.cuda.is_available():
        raise InputError("--suite cuda: no GPU was found; use cpu, join or scale")
    if suite == "scale":
        on_gpu = torch.cuda.is_available()
        claims: list[Callable[[], Row | Point]] = list(scale_points("cuda" if on_gpu else "cpu"))
        claims += [] if on_gpu else join_points()
    else:
        claims = list({"cpu": cpu_rows, "cuda": cuda_rows, "join": join_rows}[suite](root))
    measured: list[Row | Point] = []
    for done, claim in enumerate(claims):
        progress(done, len(claims))
        measured.append(claim())
        if tell:
            tell(measured[-1])
    progress(len(claims), len(claims))
    return measured


def machine() -> dict[str, Any]:
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
