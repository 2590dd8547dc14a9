"""Where a graph lies: in a data root, in the package, in the cache, or only where it is published.

Nothing here reads a graph, so nothing here needs PyTorch: ``gpnn data`` answers at once.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from graphpartner.errors import InputError
from graphpartner.graph.catalogue import GraphEntry, find_entry

ROOT_VARIABLE = "GRAPHPARTNER_DATA"
BUILTIN = Path(__file__).parent / "builtin"


@dataclass(frozen=True)
class Location:
    """Where a graph is read from.

    Attributes:
        kind: "root", "built in" and "cache" are here; "missing" is not where the data root says it is; "download" is
            fetched when it is loaded.
        path: the folder of its files, or the built-in file; for "missing" the first file that is not there; for
            "download" the folder it will be kept in.
    """

    kind: Literal["root", "built in", "cache", "missing", "download"]
    path: Path

    @property
    def is_here(self) -> bool:
        """Whether the graph loads without a download."""
        return self.kind in ("root", "built in", "cache")

    def __str__(self) -> str:
        words = {"root": f"{self.path}", "built in": "built in", "cache": f"in the cache, {self.path}"}
        words |= {"missing": f"missing: {self.path}", "download": "would be downloaded"}
        return words[self.kind]


def locate(name: str, root: str | os.PathLike[str] | None = None) -> Location:
    """Where a graph would be taken from when it is loaded, without reading or downloading it.

    Raises:
        InputError: no such graph, or the data root is not a folder.
    """
    entry = find_entry(name)
    root_path = data_root(root)
    if root_path is not None:
        folder = root_path / entry.folder / "raw"
        missing = _first_missing(entry, folder)
        if missing is None:
            return Location("root", folder)
        if _builtin_file(entry).exists() and not (root_path / entry.folder).exists():
            return Location("built in", _builtin_file(entry))
        return Location("missing", missing)
    if _builtin_file(entry).exists():
        return Location("built in", _builtin_file(entry))
    folder = _cache() / entry.folder / "raw"
    return Location("download" if _first_missing(entry, folder) else "cache", folder)


def data_root(root: str | os.PathLike[str] | None = None) -> Path | None:
    """The data root: the argument, else the environment variable ``GRAPHPARTNER_DATA``, else None.

    Raises:
        InputError: it is not a folder.
    """
    given = os.fspath(root) if root is not None else os.environ.get(ROOT_VARIABLE)
    if not given:
        return None
    path = Path(given).expanduser()
    if not path.is_dir():
        origin = "root, or --data" if root is not None else ROOT_VARIABLE
        raise InputError(f"The data root {given!r} ({origin}) is not a folder; give one that holds Cora/raw and so on.")
    return path


def _builtin_file(entry: GraphEntry) -> Path:
    return BUILTIN / f"{entry.name}.npz"


def _first_missing(entry: GraphEntry, folder: Path) -> Path | None:
    return next((folder / file for file in entry.files if not (folder / file).is_file()), None)


def _cache() -> Path:
    """The folder downloads are kept in, itself a data root."""
    import pooch  # only a graph that is not here needs it

    return Path(pooch.os_cache("graphpartner"))
