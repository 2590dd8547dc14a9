"""``gpnn bench``."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphpartner.cli.options import DataOption, output_file

if TYPE_CHECKING:
    from graphpartner.lab.bench.claims import Claim
    from graphpartner.lab.bench.growth import Point


def bench(
    suite: Annotated[str, typer.Option(help="cpu, cuda, join or scale")] = "cpu",
    file: Annotated[Path | None, typer.Option("--json", help="write the results there", metavar="FILE")] = None,
    root: DataOption = None,
    page: Annotated[
        Path | None, typer.Option(help="also write a Markdown page from all bench-*.json beside FILE", metavar="FILE")
    ] = None,
) -> None:
    """Measure how fast it is: ratios against plain peers in the same run, bars, floors."""
    from graphpartner.lab.bench.suites import run_suite
    from graphpartner.lab.pages.performance_page import line, write_page
    from graphpartner.report.terminal import progress, show
    from graphpartner.system.device import machine_facts
    from graphpartner.system.files import write_atomically

    folder = output_file(file, "--json").parent if file else None
    if page:
        output_file(page, "--page")
    measured: list[dict[str, Any]] = []

    def keep(row: "Claim | Point") -> None:
        show(line(row))
        measured.append(row.asdict())
        if file:  # after every row, so that an interrupted suite loses one at most
            content = {"suite": suite, "machine": machine_facts(), "results": measured}
            write_atomically(file, json.dumps(content, indent=1).encode())

    with progress(f"measuring {suite}") as tell:
        run_suite(suite, root, on_result=keep, progress=tell)
    if page and folder:
        write_page(folder, page)
