"""``gpnn reproduce``."""

from pathlib import Path
from typing import Annotated

import typer

from graphpartner.cli.options import (
    DataOption,
    DeviceOption,
    check_count,
    output_file,
    output_folder,
    split_names,
    versions,
)


def reproduce(
    targets: Annotated[
        list[str],
        typer.Argument(
            help="table1 … table4, fig1, fig3, fig4, fig5, bounds, scores, beyond, or all", metavar="TARGET…"
        ),
    ],
    graphs: Annotated[list[str] | None, typer.Option("--graphs", help="only these, separated by commas")] = None,
    methods: Annotated[list[str] | None, typer.Option("--methods", help="only these, separated by commas")] = None,
    seeds: Annotated[int | None, typer.Option(help="runs per cell, else the number in its file")] = None,
    device: DeviceOption = "auto",
    out: Annotated[Path, typer.Option(help="folder of the results", metavar="DIR")] = Path("results"),
    root: DataOption = None,
    quick: Annotated[bool, typer.Option("--quick", help="a preview on the built-in graph, into DIR/quick")] = False,
    no_run: Annotated[
        bool, typer.Option("--no-run", help="train nothing: tables, figures and page from the runs that exist")
    ] = False,
    page: Annotated[
        Path | None, typer.Option(help="where the page of all results is written, else DIR/results.md", metavar="FILE")
    ] = None,
) -> None:
    """Measure the paper's tables and figures beside the published numbers; no run is done twice."""
    from graphpartner.lab.experiments.findings import verdicts
    from graphpartner.lab.experiments.reproduce import read_results
    from graphpartner.lab.experiments.reproduce import reproduce as run_experiments
    from graphpartner.lab.experiments.selection import Selection
    from graphpartner.lab.pages.comparison import terminal_tables, verdict_table
    from graphpartner.lab.pages.result_figures import draw
    from graphpartner.lab.pages.results_page import PREVIEW, write_results_page
    from graphpartner.report.terminal import notes, progress, results, show

    if seeds is not None:
        check_count("--seeds", seeds)
    selection = Selection(
        targets=tuple(targets),
        graphs=tuple(split_names(graphs)) if graphs else None,
        methods=tuple(split_names(methods)) if methods else None,
        seeds=seeds,
        device=device,
        root=root,
        quick=quick,
        run=not no_run,
        version=versions()["graphpartner"],
    )
    selection.experiments()  # errors in it are raised before a folder is made
    folder = output_folder(out / "quick" if quick else out)
    page = output_file(page or folder / "results.md", "--page")
    failures: list[str] = []
    with progress("reproducing") as tell:
        measured = run_experiments(selection, folder, tell, failures.append)
    for target, cells in measured.items():
        draw(target, cells, folder)
        for table in terminal_tables(target, cells, results().width):
            show(table)
    everything = read_results(folder)
    judged = verdicts(everything)
    write_results_page(everything, judged, folder, page, preview=quick)
    if here := [verdict for verdict in judged if verdict.target in measured]:
        show(verdict_table(here))
    if any(cell.saw_test for cells in measured.values() for cell in cells):
        show("† settings chosen with a look at test accuracy: what the method can reach, not what a fair search finds")
    if quick:
        show(PREVIEW)
    for failure in failures:
        notes().print(f"not run: {failure}", markup=False)
    notes().print(f"written to {folder}")
