"""The six graphs of the paper: where each is published, how its files are verified, its sizes, and where it lies here.

The entries are in ``catalogue.json``. Their hashes are of the files as published; the digest is of the arrays in them
(see :mod:`graphpartner.graph.arrays`), so it also holds for a copy that was compressed again.

Nothing here reads a graph, so nothing here needs PyTorch or NumPy, and ``gpnn data`` starts at once.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from graphpartner.system.errors import InputError

ROOT_VARIABLE = "GRAPHPARTNER_DATA"
BUILTIN = Path(__file__).parent / "builtin"


@dataclass(frozen=True)
class GraphEntry:
    """What is known about one graph without opening it.

    Attributes:
        name: its name in this package.
        title: its name in the paper's Table 1.
        layout: the kind of its files.
        folder: its folder under a data root, as in PyTorch Geometric; the files lie in ``<folder>/raw``.
        source: the address that the files are published under.
        licence: the licence they are published under.
        files: the sha256 of each published file, by file name.
        num_nodes: number of nodes.
        num_edges: number of undirected edges, without duplicates and self-loops.
        num_features: number of columns of ``x``.
        num_classes: number of classes.
        num_isolated: number of nodes without an edge.
        digest: the digest of its canonical arrays.
    """

    name: str
    title: str
    layout: Literal["planetoid", "npz"]
    folder: str
    source: str
    licence: str
    files: Mapping[str, str]
    num_nodes: int
    num_edges: int
    num_features: int
    num_classes: int
    num_isolated: int
    digest: str

    @property
    def has_public_split(self) -> bool:
        """Whether its files hold a split into training, validation and test nodes."""
        return self.layout == "planetoid"

    def url(self, file: str) -> str:
        """Return the address that ``file`` is downloaded from."""
        return f"{self.source}/{file}"


CATALOGUE: dict[str, GraphEntry] = {
    name: GraphEntry(name, **facts)
    for name, facts in json.loads(Path(__file__).with_suffix(".json").read_text("utf-8")).items()
}


def find_entry(name: str) -> GraphEntry:
    """Return the entry of a graph by name.

    Raises:
        InputError: there is no graph of that name.
    """
    if name not in CATALOGUE:
        raise InputError(f"graph = {name!r}: must be one of {', '.join(CATALOGUE)}")
    return CATALOGUE[name]


def title(graph: str) -> str:
    """Return the name of a graph in the paper."""
    return CATALOGUE[graph].title


@dataclass(frozen=True)
class Location:
    """Where a graph is read from.

    Attributes:
        kind: "root", "built in" and "cache" are on this machine; "missing" is not where the data root should hold it;
            "download" is fetched when it is loaded.
        path: the folder of its files, or the built-in file; for "missing" the first missing file; for "download" the
            folder that will hold it.
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
    """Return where a graph would be loaded from, without reading or downloading it.

    Raises:
        InputError: no such graph, or the data root is not a folder.
    """
    entry, root_path = find_entry(name), data_root(root)
    built_in = BUILTIN / f"{name}.npz"
    if root_path is not None:
        folder = root_path / entry.folder / "raw"
        missing = _first_missing(entry, folder)
        if missing is None:
            return Location("root", folder)
        if not built_in.exists() or (root_path / entry.folder).exists():
            return Location("missing", missing)
    if built_in.exists():
        return Location("built in", built_in)
    import pooch  # only a graph that is not here needs it

    folder = Path(pooch.os_cache("graphpartner")) / entry.folder / "raw"
    return Location("download" if _first_missing(entry, folder) else "cache", folder)


def data_root(root: str | os.PathLike[str] | None = None) -> Path | None:
    """Return the data root: the argument, else the environment variable ``GRAPHPARTNER_DATA``, else None.

    Raises:
        InputError: it is not a folder.
    """
    given = os.fspath(root) if root is not None else os.environ.get(ROOT_VARIABLE)
    if not given:
        return None
    path = Path(given).expanduser()
    if not path.is_dir():
        origin = "root (--data)" if root is not None else ROOT_VARIABLE
        raise InputError(f"{origin} = {given!r}: must be a folder that holds Cora/raw and so on")
    return path


def _first_missing(entry: GraphEntry, folder: Path) -> Path | None:
    return next((folder / file for file in entry.files if not (folder / file).is_file()), None)
