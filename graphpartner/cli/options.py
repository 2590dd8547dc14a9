"""Arguments that several commands share, and how they are checked."""

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphpartner.system.errors import InputError

if TYPE_CHECKING:
    from graphpartner.training.presets import Preset

GraphArgument = Annotated[
    str, typer.Argument(help="citeseer, cora, pubmed, coauthor-cs, amazon-computers or amazon-photo")
]
DataOption = Annotated[
    str | None, typer.Option("--data", help="folder with raw files in PyTorch Geometric's layout", metavar="ROOT")
]
SetOption = Annotated[
    list[str] | None, typer.Option("--set", help="change a setting, e.g. --set alpha=0.3", metavar="KEY=VALUE")
]
SepOption = Annotated[
    str | None, typer.Option("--sep", help="what separates the columns of text files; else found", metavar="CHARACTER")
]
JsonOption = Annotated[bool, typer.Option("--json", help="print one JSON object instead of text")]


def parsed(changes: list[str] | None) -> dict[str, Any]:
    """The settings that ``--set`` gives."""
    from graphpartner.training.settings import parse

    parsed = {}
    for change in changes or []:
        name, sign, text = change.partition("=")
        if not sign:
            raise InputError(f"--set {change}: must be KEY=VALUE, e.g. --set alpha=0.3")
        parsed[name] = parse(name, text)
    return parsed


def split_names(given: list[str] | None) -> list[str]:
    """Return the names of an option that may be given several times, each time with names between commas."""
    return [name.strip() for each in given or [] for name in each.split(",") if name.strip()]


def check_choice(option: str, value: str, choices: Sequence[str]) -> None:
    """Refuse a value that is none of the choices."""
    if value not in choices:
        raise InputError(f"{option} {value}: must be {', '.join(choices[:-1])} or {choices[-1]}")


def check_count(option: str, value: int, most: int = 100_000) -> None:
    """Refuse what is no count, and one that no machine would see the end of."""
    if not 1 <= value <= most:
        raise InputError(f"{option} {value}: must be {'1 or more' if value < 1 else f'{most:,} at most'}")


def named(option: str, name: str, find: "Callable[[str], Preset]") -> "Preset":
    """What a function finds by this name; what is wrong with it is said of the option."""
    try:
        return find(name)
    except InputError as error:
        raise InputError(f"{option} {name}: {error}") from None


def output_folder(folder: Path, option: str = "--out") -> Path:
    """The folder, made if need be: better to fail before training than after."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{option} {folder}: cannot be made a folder ({error.strerror}); give another") from None
    if not os.access(folder, os.W_OK):
        raise InputError(f"{option} {folder}: must not be written to; give another")
    return folder


def output_file(file: Path, option: str) -> Path:
    """The file, its folder made if need be."""
    if file.is_dir():
        raise InputError(f"{option} {file}: is a folder; give the name of a file")
    output_folder(file.parent, option)
    return file


def versions() -> dict[str, str]:
    """What a result was made with."""
    import torch
    import torch_geometric

    from graphpartner import __version__

    return {
        "graphpartner": __version__,
        "torch": torch.__version__,
        "torch_geometric": torch_geometric.__version__,
        "python": sys.version.split()[0],
    }
