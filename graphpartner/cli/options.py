"""Arguments that several commands share, and their checks."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphpartner.system.errors import InputError

if TYPE_CHECKING:
    from graphpartner.training.presets import Preset


def check_choice(option: str, value: str, choices: Sequence[str]) -> None:
    """Raise an InputError for a value that is none of the choices."""
    if value not in choices:
        raise InputError(f"{option} {value}: must be {', '.join(choices[:-1])} or {choices[-1]}")


def _device(value: str) -> str:
    check_choice("--device", value, ("auto", "cpu", "cuda"))
    return value


GraphArgument = Annotated[
    str, typer.Argument(help="citeseer, cora, pubmed, coauthor-cs, amazon-computers or amazon-photo")
]
DataOption = Annotated[
    str | None, typer.Option("--data", help="folder with raw files in PyTorch Geometric's layout", metavar="ROOT")
]
DeviceOption = Annotated[str, typer.Option("--device", help="auto, cpu or cuda", callback=_device)]
SetOption = Annotated[
    list[str] | None, typer.Option("--set", help="change a setting, e.g. --set alpha=0.3", metavar="KEY=VALUE")
]
SepOption = Annotated[
    str | None,
    typer.Option("--sep", help="column separator of text files; detected if not given", metavar="CHARACTER"),
]
JsonOption = Annotated[bool, typer.Option("--json", help="print one JSON object instead of text")]


def check_count(option: str, value: int, most: int = 100_000) -> None:
    """Raise an InputError unless 1 ≤ value ≤ most."""
    if not 1 <= value <= most:
        raise InputError(f"{option} {value}: must be {'1 or more' if value < 1 else f'{most:,} at most'}")


def parsed(changes: list[str] | None) -> dict[str, Any]:
    """Return the settings given by ``--set``."""
    from graphpartner.training.settings import parse

    settings = {}
    for change in changes or []:
        name, sign, text = change.partition("=")
        if not sign:
            raise InputError(f"--set {change}: must be KEY=VALUE, e.g. --set alpha=0.3")
        settings[name] = parse(name, text)
    return settings


def split_names(given: list[str] | None) -> list[str]:
    """Return the names of an option that may be given several times, each time with names between commas."""
    return [name.strip() for each in given or [] for name in each.split(",") if name.strip()]


def named(option: str, name: str, find: "Callable[[str], Preset]") -> "Preset":
    """Return the preset of this name; errors name the option."""
    try:
        return find(name)
    except InputError as error:
        raise InputError(f"{option} {name}: {error}") from None


def output_folder(folder: Path, option: str = "--out") -> Path:
    """Make a folder before anything is computed that it is for, and return it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{option} {folder}: cannot be made a folder ({error.strerror}); give another") from None
    if not os.access(folder, os.W_OK):
        raise InputError(f"{option} {folder}: must be writable; give another")
    return folder


def output_file(file: Path, option: str) -> Path:
    """Make the folder of a file, and return the file."""
    if file.is_dir():
        raise InputError(f"{option} {file}: is a folder; give the name of a file")
    output_folder(file.parent, option)
    return file


@contextmanager
def writing_to(folder: Path) -> Iterator[None]:
    """Raise an InputError that names ``--out`` where writing fails."""
    try:
        yield
    except OSError as error:
        raise InputError(f"--out {folder}: cannot be written ({error.strerror}); give another") from None


def versions() -> dict[str, str]:
    """Return the versions of what a result is computed with."""
    from graphpartner import __version__

    found = {"graphpartner": __version__}
    for library in ("torch", "torch_geometric"):
        try:
            found[library] = version(library)
        except PackageNotFoundError:  # PyTorch Geometric is not needed
            continue
    return found | {"python": sys.version.split()[0]}
