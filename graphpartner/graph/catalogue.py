"""The six graphs of the paper: where each is published, how its files are known, and what it counts.

The hashes are of the files as published. The digest is of the arrays in them (see :mod:`graphpartner.graph.arrays`), so
it also holds for a copy that was compressed again.

Where a graph lies: in a data root, in the package, in the cache, or only where it is published.

Nothing here reads a graph, so nothing here needs PyTorch: ``gpnn data`` answers at once.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from graphpartner.system.errors import InputError

PLANETOID = "https://raw.githubusercontent.com/kimiyoung/planetoid/af6abf468a772cc055bec88c52e4d6f51b7c37e3/data"
BENCHMARK = "https://raw.githubusercontent.com/shchur/gnn-benchmark/1e72912a0810cdf27ae54fd589a3b43358a2b161/data/npz"


@dataclass(frozen=True)
class GraphEntry:
    """What is known about one graph without opening it.

    Attributes:
        name: how this package calls it.
        title: how the paper's Table 1 calls it.
        layout: the kind of its files.
        folder: its folder under a data root, as PyTorch Geometric has it; the files lie in ``<folder>/raw``.
        source: the address that the files are published under.
        licence: the licence they are published under.
        files: the sha256 of each published file, by file name.
        num_nodes: its nodes.
        num_edges: its undirected edges, without duplicates and self-loops.
        num_features: the columns of ``x``.
        num_classes: its classes.
        num_isolated: its nodes without an edge.
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
        """Whether its files say who trains, validates and tests."""
        return self.layout == "planetoid"

    def url(self, file: str) -> str:
        """The address that ``file`` is downloaded from."""
        return f"{self.source}/{file}"


def _planetoid_files(graph: str, /, **hashes: str) -> dict[str, str]:
    """File names with their sha256; the part ``test.index`` is written ``test_index`` here."""
    return {f"ind.{graph}.{part.replace('_', '.')}": sha256 for part, sha256 in hashes.items()}


_ENTRIES = (
    GraphEntry(
        name="citeseer",
        title="CiteSeer",
        layout="planetoid",
        folder="CiteSeer",
        source=PLANETOID,
        licence="MIT",
        files=_planetoid_files(
            "citeseer",
            x="d20de19150741e555de0ed037195630fc194114ebc7fd72ced62810148aa22f6",
            tx="539a8906a2da97628d212f2fdd668c109a8b3f0d36574b59e5d3fd5b5303da21",
            allx="2ac30345d95c9ec933a817ee0bdd6a5f077f8c184a20e696910192d534414668",
            y="8ba87e515d8e3ee3cf52f6d2c5b86aa73f11ecad825a808455209ec26cd54924",
            ty="55e5bd1ba1e733a04598753ad1a8d57957f4b8f89e74519f41f4f4938767e4ce",
            ally="f704b2d986dde6c2669934de1f3ae5696a6cf9455c0f6b2646a2d135ea0a1c95",
            graph="d79a4ef9d3e7169aee8946145f6b7306e35bc79bffad26346cfb94e10e9912a7",
            test_index="2af990671580b6b2df5d158d1038f8292e30c9cd821b5453f399659b25b723d4",
        ),
        num_nodes=3_327,
        num_edges=4_552,
        num_features=3_703,
        num_classes=6,
        num_isolated=48,
        digest="0e685b369ea7d6b427b15521e5fb337d0efc39cde076d1b29834ff6c45e2036c",
    ),
    GraphEntry(
        name="cora",
        title="Cora",
        layout="planetoid",
        folder="Cora",
        source=PLANETOID,
        licence="MIT",
        files=_planetoid_files(
            "cora",
            x="23cfa55d91c6f624233f5eb7b6e3f141f1bd2b2ae39608a63cf5d084bb27baab",
            tx="b9afbaa4a400df991f6f02ef677e1e44da55ffc04801fd02f9e673987829226a",
            allx="9419ba2f26f5c35243db64aba110e0f35a04851609e0dc5433450676ca6b8543",
            y="94465c14eb53e04ca262198dcbb2521ee8af60fb3f3d546cd6ca24a511b0e7d1",
            ty="41f5ac76596a1699cc33f53084a2419e92961c42bb75f36fc38e616d348532ad",
            ally="2b998f5cc7fedc86e7f97ca2498f47a1ffc1462c29e2d578b23bf3f62b6e7d71",
            graph="58f13302f39dde8852dad6fe6d15b89b077b6d7f837626bce671ef80344b383d",
            test_index="297ce89af2b51a6a194181c7dbe1796c6a1cf9cd9349a88383b1b1e227867875",
        ),
        num_nodes=2_708,
        num_edges=5_278,
        num_features=1_433,
        num_classes=7,
        num_isolated=0,
        digest="970549c3ef29817626ca78c269cb847f3287a85e2831c605b0d98185edb50090",
    ),
    GraphEntry(
        name="pubmed",
        title="PubMed",
        layout="planetoid",
        folder="PubMed",
        source=PLANETOID,
        licence="MIT",
        files=_planetoid_files(
            "pubmed",
            x="fbe9cb5c47200d1b7769a26e579be3b7130b556831f9d850e77c4c74f2599b33",
            tx="4eb5f5d0f30f26497eb0ac6ac9719d09c67e284f1ed0385c93f3ef27a671da3d",
            allx="508e538e2abdccdd54c4d3e9f49d638b4af7107d85845f66ddea5a5152658b7e",
            y="e6c807633307a07ed659249006536a147c7999c797f11a2560752990181b41b3",
            ty="ee2e0d4819d9fbcc403689c3bf2e49face401b605932f093bc58ab6461130fdd",
            ally="0c37bbe3b5014ec365e9d393cf4791925e5ed94fb194305d74f064a8d7b50f0e",
            graph="5b89f0036ca22909471f1e6558eb42fa06e0c730a577bde5b058b40638f81dc9",
            test_index="b101d421688bbaecbd82e8a18f1e282378d6830f3a37666f28ebc47f844341b5",
        ),
        num_nodes=19_717,
        num_edges=44_324,
        num_features=500,
        num_classes=3,
        num_isolated=0,
        digest="30ba9cf06c2daa97c8ea2f7da972ee9446e4a1dda1bc44b83eef29d75bade2a9",
    ),
    GraphEntry(
        name="coauthor-cs",
        title="Coauthor CS",
        layout="npz",
        folder="CS",
        source=BENCHMARK,
        licence="MIT",
        files={"ms_academic_cs.npz": "933c745734e78908c7eb77172a673fee0503f30e26e5a99b36814d88534c42e3"},
        num_nodes=18_333,
        num_edges=81_894,
        num_features=6_805,
        num_classes=15,
        num_isolated=0,
        digest="70c7d41597608d770cada80ea7c9fad709ddbcce5658f8dc3819d3ea21775c0a",
    ),
    GraphEntry(
        name="amazon-computers",
        title="A-Computers",
        layout="npz",
        folder="Computers",
        source=BENCHMARK,
        licence="MIT",
        files={"amazon_electronics_computers.npz": "736ba1d9fd85eac2da83a5ad25c463f04b0031a6ca01563f90a7099d9e8ffb2c"},
        num_nodes=13_752,
        num_edges=245_861,
        num_features=767,
        num_classes=10,
        num_isolated=281,
        digest="9b4ff282d71fd3cf309a53fd9af7872f3b1517b44ad63baf0652944fe0bbc300",
    ),
    GraphEntry(
        name="amazon-photo",
        title="A-Photo",
        layout="npz",
        folder="Photo",
        source=BENCHMARK,
        licence="MIT",
        files={"amazon_electronics_photo.npz": "bdb1feb8e6ff42ee44024b04479145029c563fd42fc31bff80af20887ba0439a"},
        num_nodes=7_650,
        num_edges=119_081,
        num_features=745,
        num_classes=8,
        num_isolated=115,
        digest="cd41c03b3e744ab99fa0050579fcefbe20d9871e5d72540c16dd130895e8022f",
    ),
)

CATALOGUE: dict[str, GraphEntry] = {entry.name: entry for entry in _ENTRIES}


def find_entry(name: str) -> GraphEntry:
    """The entry of a graph by name.

    Raises:
        InputError: there is no graph of that name.
    """
    if name not in CATALOGUE:
        raise InputError(f"There is no graph named {name!r}; choose one of {', '.join(CATALOGUE)}.")
    return CATALOGUE[name]


def title(graph: str) -> str:
    """How the paper calls a graph."""
    return CATALOGUE[graph].title


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
