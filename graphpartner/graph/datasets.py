"""Loading one of the six graphs: from a data root, the package, the cache, or where it is published."""

import os
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

from graphpartner.graph.arrays import GraphArrays
from graphpartner.graph.catalogue import GraphEntry, Location, find_entry, locate
from graphpartner.graph.npz import read_benchmark_npz, unpack
from graphpartner.graph.planetoid import read_planetoid
from graphpartner.graph.record import GraphRecord
from graphpartner.system.errors import InputError

if TYPE_CHECKING:
    from torch_geometric.data import Data


def load_dataset(name: str, root: str | os.PathLike[str] | None = None) -> "Data":
    """Load one of the paper's six graphs, cleaned and verified.

    Args:
        name: citeseer, cora, pubmed, coauthor-cs, amazon-computers or amazon-photo.
        root: a folder with the raw files in PyTorch Geometric's layout (``Cora/raw/ind.cora.x``, …); the environment
            variable ``GRAPHPARTNER_DATA`` is its default. Without either, CiteSeer is the built-in one and the others
            are downloaded once, by known hash, into the user's cache. CiteSeer is also the built-in one if the root has
            no folder for it.

    Returns:
        ``x`` [n, d] float32, raw features (word counts in Coauthor CS); ``edge_index`` [2, E] int64, both directions of
        every edge, no duplicates, no self-loops; ``y`` [n] int64, −1 for a node without a label; ``train_mask``,
        ``val_mask`` and ``test_mask`` of the public split for Cora, CiteSeer and PubMed, none for the others (see
        :func:`~graphpartner.graph.splits.per_class_split`); ``name``, and ``num_classes``, which PyTorch Geometric has
        on its datasets only.

    Raises:
        InputError: no such graph; a file is missing or altered; the download failed.
    """
    return load_graph(name, root).to_data()


def load_graph(name: str, root: str | os.PathLike[str] | None = None) -> GraphRecord:
    """Load a graph as :func:`load_dataset` does, as a record of this package."""
    entry = find_entry(name)
    location = locate(name, root)
    if location.kind == "missing":
        raise InputError(f"{location.path}: missing; the data root must hold {entry.title} in {entry.folder}/raw")
    if location.kind in ("cache", "download"):
        _download(entry, location.path)
    graph = _read(entry, location)
    found = graph.digest()
    if found != entry.digest:
        file = location.path if location.path.is_file() else location.path / next(iter(entry.files))
        raise InputError(
            f"{file}: other arrays than the published {entry.title} "
            f"(digest {found[:12]}…, expected {entry.digest[:12]}…); restore the original file"
        )
    data = graph.to_record()
    data.name, data.num_classes = name, entry.num_classes
    return data


def _read(entry: GraphEntry, location: Location) -> GraphArrays:
    if location.kind == "built in":
        return unpack(_bytes(location.path), str(location.path))
    contents = {file: _bytes(location.path / file) for file in entry.files}
    if entry.layout == "planetoid":
        return read_planetoid(contents, entry.files, str(location.path))
    ((file, content),) = contents.items()
    return read_benchmark_npz(content, str(location.path / file))


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error


def _download(entry: GraphEntry, folder: Path) -> None:
    """Download the files of a graph that are not in the cache, or not as published."""
    import pooch  # which checks the hash before a file appears under its name

    for file, sha256 in entry.files.items():
        try:
            pooch.retrieve(entry.url(file), known_hash=f"sha256:{sha256}", fname=file, path=folder)
        except (OSError, ValueError) as error:  # no network, or other bytes than the known ones
            reason = textwrap.shorten(str(error), 90, placeholder="…")
            raise InputError(
                f"{entry.url(file)}: could not be downloaded ({reason}); "
                f"put the file under {entry.folder}/raw of a folder and give that folder as the data root"
            ) from error
