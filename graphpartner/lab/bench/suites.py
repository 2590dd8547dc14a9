"""The suites of ``gpnn bench``: which claims each one measures."""

from collections.abc import Callable

import torch

from graphpartner.lab.bench.claims import Claim
from graphpartner.lab.bench.growth import Point, scale_points
from graphpartner.lab.bench.join_claims import join_claims
from graphpartner.lab.bench.join_growth import join_points
from graphpartner.lab.bench.training_claims import cpu_claims, cuda_claims
from graphpartner.system.errors import InputError
from graphpartner.system.progress import Progress, silent

SUITES = ("cpu", "cuda", "join", "scale")


def run_suite(
    suite: str,
    root: str | None = None,
    tell: Callable[[Claim | Point], None] | None = None,
    progress: Progress = silent,
) -> list[Claim | Point]:
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
        claims: list[Callable[[], Claim | Point]] = list(scale_points("cuda" if on_gpu else "cpu"))
        claims += [] if on_gpu else join_points()
    else:
        claims = list({"cpu": cpu_claims, "cuda": cuda_claims, "join": join_claims}[suite](root))
    measured: list[Claim | Point] = []
    for done, claim in enumerate(claims):
        progress(done, len(claims))
        measured.append(claim())
        if tell:
            tell(measured[-1])
    progress(len(claims), len(claims))
    return measured
