"""``gpnn bench``."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphpartner.cli.options import DataOption, output_file, split_names
from graphpartner.system.errors import InputError

if TYPE_CHECKING:
    from graphpartner.lab.bench.claims import Claim
    from graphpartner.lab.bench.growth import Point


def bench(
    suite: Annotated[str, typer.Option(help="cpu, cuda, join, scale or fit")] = "cpu",
    file: Annotated[Path | None, typer.Option("--json", help="write the results there", metavar="FILE")] = None,
    root: DataOption = None,
    page: Annotated[
        Path | None,
        typer.Option(help="also write a Markdown page, from FILE or all bench-*.json beside it", metavar="FILE"),
    ] = None,
    run: Annotated[bool, typer.Option(help="measure; otherwise only write the page")] = True,
    graphs: Annotated[list[str] | None, typer.Option(help="of fit: these only, separated by commas")] = None,
    cases: Annotated[list[str] | None, typer.Option(help="of fit: these only, separated by commas")] = None,
    budget: Annotated[str, typer.Option(help="of fit: the time that gpnn fit gets")] = "2m",
    again: Annotated[bool, typer.Option(help="of fit: measure anew what FILE has")] = False,
) -> None:
    """Measure speed against plain peers, or gpnn fit on graphs as files; suite fit goes on where FILE ends."""
    from graphpartner.lab.bench.own_graph import measure_fits, own_graph_page, write_line
    from graphpartner.lab.bench.suites import run_suite
    from graphpartner.lab.pages.performance_page import line, write_page
    from graphpartner.report.terminal import progress, show
    from graphpartner.system.device import machine_facts
    from graphpartner.system.files import write_atomically

    if file:
        output_file(file, "--json")
    if page:
        output_file(page, "--page")
    if not run and not (file and page):
        raise InputError("--no-run: must come with --json and --page, to write the one from the other")
    if suite == "fit":
        rows = json.loads(file.read_text()) if file and file.exists() else []

        def keep_row(row: dict[str, Any]) -> None:
            show(write_line(row))
            if file:
                write_atomically(file, json.dumps(rows, indent=1).encode())

        if run:
            chosen = split_names(graphs), split_names(cases)
            with progress("measuring fit") as on_progress:
                measure_fits(
                    rows, *chosen, budget=budget, root=root, again=again, on_row=keep_row, progress=on_progress
                )
        if page:
            write_atomically(page, own_graph_page(rows).encode())
        return
    measured: list[dict[str, Any]] = []

    def keep(row: "Claim | Point") -> None:
        show(line(row))
        measured.append(row.asdict())
        if file:  # after every row, so that an interrupted suite loses one at most
            content = {"suite": suite, "machine": machine_facts(), "results": measured}
            write_atomically(file, json.dumps(content, indent=1).encode())

    if run:
        with progress(f"measuring {suite}") as on_progress:
            run_suite(suite, root, on_result=keep, progress=on_progress)
    if page and file:
        write_page(file.parent, page)
