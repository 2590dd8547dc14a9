"""``gpnn presets``."""

from pathlib import Path
from typing import Annotated

import typer

from graphpartner.cli.options import DataOption, DeviceOption, check_choice, check_count, split_names

presets = typer.Typer(help="List, show and update the presets of the package.")


@presets.command("list")
def list_presets() -> None:
    """List all presets; a star marks the one that the plain name of its graph stands for."""
    from graphpartner.training.presets import preset, preset_names

    for name in preset_names():
        graph, _, family = name.partition("/")
        print(name + (" *" if preset(graph).family == family else ""))


@presets.command()
def show(name: Annotated[str, typer.Argument(help="e.g. citeseer/tuned, or citeseer for the best")]) -> None:
    """Show the settings of a preset, and where they come from."""
    from graphpartner.report import terminal
    from graphpartner.training.presets import preset

    found = preset(name)
    settings = ((key, str(value)) for key, value in found.settings.asdict().items())
    rows = [("preset", f"{found.graph}/{found.family}"), *settings, ("provenance", found.provenance)]
    terminal.show(terminal.facts(rows))


@presets.command()
def update(
    files: Annotated[
        list[Path] | None, typer.Argument(help="presets that gpnn search wrote", metavar="[FILE …]")
    ] = None,
    graphs: Annotated[list[str] | None, typer.Option(help="judge these graphs too, separated by commas")] = None,
    families: Annotated[list[str] | None, typer.Option(help="judge these alone, and those of the files")] = None,
    new: Annotated[bool, typer.Option("--new", help="keep figures of as many splits")] = False,
    splits: Annotated[int, typer.Option(help="development splits, other ones than those of a search")] = 32,
    device: DeviceOption = "auto",
    root: DataOption = None,
) -> None:
    """Judge presets on development splits, take the better ones into the package, and name the best family."""
    from graphpartner.graph.catalogue import find_entry
    from graphpartner.lab.search.preset_files import update_presets
    from graphpartner.report.terminal import show as show_line
    from graphpartner.system.device import pick_device
    from graphpartner.training.presets import FAMILIES

    chosen = split_names(graphs), split_names(families)
    for graph in chosen[0]:
        find_entry(graph)
    for family in chosen[1]:
        check_choice("--families", family, FAMILIES[:-1])
    check_count("--splits", splits)
    place = pick_device(device)
    update_presets(files or [], *chosen, only_new=new, splits=splits, device=place, root=root, on_line=show_line)
