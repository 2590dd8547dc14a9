import dataclasses
import functools
import hashlib
import http.server
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pooch
import pytest
import torch

from graphpartner.graph.catalogue import BUILTIN, CATALOGUE, find_entry, locate
from graphpartner.graph.catalogue import data_root as find_data_root
from graphpartner.graph.datasets import load_dataset
from graphpartner.graph.npz import read_benchmark_npz
from graphpartner.system.errors import InputError
from tests.graph.test_npz import npz, parts

REPOSITORY = Path(__file__).parents[2]
FILE = "amazon_electronics_photo.npz"


@pytest.fixture
def photo(monkeypatch: pytest.MonkeyPatch) -> bytes:
    """In the place of A-Photo: a graph of three nodes; gives its published bytes."""
    content = npz(parts())
    tiny = dataclasses.replace(
        CATALOGUE["amazon-photo"],
        files={FILE: hashlib.sha256(content).hexdigest()},
        digest=read_benchmark_npz(content, "tiny").digest(),
        num_classes=2,
    )
    monkeypatch.setitem(CATALOGUE, "amazon-photo", tiny)
    return content


def put(root: Path, content: bytes) -> Path:
    folder = root / "Photo" / "raw"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / FILE).write_bytes(content)
    return folder


def test_built_in(cache: Path) -> None:
    data = load_dataset("citeseer")
    assert data.x.shape == (3327, 3703)
    assert data.x.dtype == torch.float32
    assert set(data.x.unique().tolist()) == {0, 1}
    assert data.edge_index.shape == (2, 9104)
    assert data.edge_index.dtype == torch.int64
    assert data.y.dtype == torch.int64
    assert data.y.min() == -1
    assert int((data.y == -1).sum()) == 15
    assert [int(data[mask].sum()) for mask in ("train_mask", "val_mask", "test_mask")] == [120, 500, 1000]
    assert (data.name, data.num_classes) == ("citeseer", 6)
    assert not cache.exists()


@pytest.mark.parametrize("name", ["cora", "pubmed", "amazon-computers", "amazon-photo"])
def test_what_data_holds(name: str, data_root: Path) -> None:
    data = load_dataset(name, data_root)
    assert locate(name, data_root).kind == "root"
    assert (data.x.dtype, data.edge_index.dtype, data.y.dtype) == (torch.float32, torch.int64, torch.int64)
    assert data.is_undirected()
    assert not data.has_self_loops()
    assert (data.edge_index[1] * data.num_nodes + data.edge_index[0]).diff().min() > 0  # sorted, no duplicates
    assert data.num_classes == int(data.y.max()) + 1
    masks = [int(data[mask].sum()) for mask in ("train_mask", "val_mask", "test_mask") if mask in data]
    assert masks == {"cora": [140, 500, 1000], "pubmed": [60, 500, 1000]}.get(name, [])


def test_unknown_graph() -> None:
    for function in (load_dataset, locate):
        with pytest.raises(InputError, match="graph = 'imdb': must be one of citeseer, "):
            function("imdb")


def test_root_argument_then_variable_then_cache(
    photo: bytes, tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = put(tmp_path / "first", photo), put(tmp_path / "second", photo)
    assert locate("amazon-photo").kind == "download"
    assert str(locate("amazon-photo")) == "would be downloaded"
    monkeypatch.setenv("GRAPHPARTNER_DATA", str(tmp_path / "second"))
    assert locate("amazon-photo").path == second
    assert locate("amazon-photo", tmp_path / "first").path == first
    assert str(locate("amazon-photo", tmp_path / "first")) == str(first)
    assert load_dataset("amazon-photo").num_nodes == 3
    monkeypatch.setenv("GRAPHPARTNER_DATA", "")
    assert find_data_root() is None
    put(cache, photo)
    assert locate("amazon-photo").kind == "cache"
    assert locate("amazon-photo").is_here
    assert load_dataset("amazon-photo").num_nodes == 3


@pytest.mark.parametrize("name", ["citeseer", "cora"])
def test_the_root_is_not_a_folder(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match=r"root \(--data\) = '.*nowhere': must be a folder"):
        load_dataset(name, tmp_path / "nowhere")
    monkeypatch.setenv("GRAPHPARTNER_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(InputError, match=r"GRAPHPARTNER_DATA = '.*nowhere': must be a folder"):
        load_dataset(name)


def test_a_root_without_citeseer_leaves_the_built_in_one(tmp_path: Path) -> None:
    assert locate("citeseer", tmp_path).kind == "built in"
    assert str(locate("citeseer", tmp_path)) == "built in"
    assert load_dataset("citeseer", tmp_path).num_nodes == 3327
    (tmp_path / "CiteSeer" / "raw").mkdir(parents=True)
    with pytest.raises(InputError, match=r"CiteSeer/raw/ind\.citeseer\.x: missing"):
        load_dataset("citeseer", tmp_path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"Cora/raw/ind\.cora\.x: missing; the data root must hold Cora in Cora/raw"):
        load_dataset("cora", tmp_path)
    assert locate("cora", tmp_path).kind == "missing"
    assert not locate("cora", tmp_path).is_here
    assert str(locate("cora", tmp_path)).startswith("missing: ")


def test_one_of_eight_files_is_missing(data_root: Path, tmp_path: Path) -> None:
    shutil.copytree(data_root / "Cora", tmp_path / "Cora")
    (tmp_path / "Cora" / "raw" / "ind.cora.graph").unlink()
    with pytest.raises(InputError, match=r"ind\.cora\.graph: missing"):
        load_dataset("cora", tmp_path)


def test_an_altered_planetoid_file_is_named(data_root: Path, tmp_path: Path) -> None:
    shutil.copytree(data_root / "Cora", tmp_path / "Cora", copy_function=shutil.copyfile)
    file = tmp_path / "Cora" / "raw" / "ind.cora.ally"
    content = bytearray(file.read_bytes())
    content[-100] ^= 1
    file.write_bytes(content)
    found, expected = hashlib.sha256(content).hexdigest()[:12], find_entry("cora").files["ind.cora.ally"][:12]
    with pytest.raises(InputError, match=rf"raw/ind\.cora\.ally: sha256 {found}…, .* {expected}…"):
        load_dataset("cora", tmp_path)


def test_arrays_are_known_by_digest_not_by_file(photo: bytes, tmp_path: Path) -> None:
    folder = put(tmp_path, photo)
    with np.load(folder / FILE) as arrays:
        np.savez_compressed(folder / "again.npz", **arrays)
    shutil.move(folder / "again.npz", folder / FILE)
    assert (folder / FILE).read_bytes() != photo
    assert load_dataset("amazon-photo", tmp_path).num_nodes == 3


@pytest.mark.parametrize(
    "change",
    [
        {"labels": np.array([1, 1, 1])},
        {"labels": np.array([1, 0, 9])},
        {"attr_data": np.array([np.nan, 1], dtype=np.float32)},
        {"adj_indices": np.array([2, 2])},
    ],
)
def test_altered_arrays_are_named(change: dict[str, Any], photo: bytes, tmp_path: Path) -> None:
    put(tmp_path, npz(parts(**change)))
    expected = find_entry("amazon-photo").digest[:12]
    words = rf"raw/{FILE}: other arrays than the published A-Photo \(digest [0-9a-f]{{12}}…, expected {expected}…\)"
    with pytest.raises(InputError, match=words):
        load_dataset("amazon-photo", tmp_path)


def test_an_edge_to_a_node_that_is_not_there(photo: bytes, tmp_path: Path) -> None:
    put(tmp_path, npz(parts(adj_indices=np.array([3, 2]))))
    with pytest.raises(InputError, match=f"{FILE}: damaged matrix adj"):
        load_dataset("amazon-photo", tmp_path)


def test_a_damaged_built_in_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = bytearray((BUILTIN / "citeseer.npz").read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / "citeseer.npz").write_bytes(content)
    monkeypatch.setattr("graphpartner.graph.catalogue.BUILTIN", tmp_path)
    with pytest.raises(InputError, match=r"citeseer\.npz"):
        load_dataset("citeseer")


def test_a_file_that_is_a_folder(tmp_path: Path, photo: bytes) -> None:
    (tmp_path / "Photo" / "raw" / FILE).mkdir(parents=True)
    with pytest.raises(InputError, match=f"{FILE}: missing"):
        load_dataset("amazon-photo", tmp_path)


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A web server on this machine in the place of the published address; gives the folder it serves."""
    folder = tmp_path / "served"
    folder.mkdir()
    handler = functools.partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True).start()
        address = f"http://127.0.0.1:{running.server_port}"
        entry = dataclasses.replace(CATALOGUE["amazon-photo"], source=address)
        monkeypatch.setitem(CATALOGUE, "amazon-photo", entry)
        yield folder
        running.shutdown()


@pytest.fixture
def direct(monkeypatch: pytest.MonkeyPatch) -> None:
    """No proxy between the test and its own server."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


def test_download_once(photo: bytes, server: Path, cache: Path, direct: None) -> None:
    (server / FILE).write_bytes(photo)
    assert load_dataset("amazon-photo").num_nodes == 3
    assert (cache / "Photo" / "raw" / FILE).read_bytes() == photo
    assert str(locate("amazon-photo")) == f"in the cache, {cache / 'Photo' / 'raw'}"
    (server / FILE).unlink()
    assert load_dataset("amazon-photo").num_nodes == 3  # out of the cache


def test_a_damaged_cache_is_fetched_again(photo: bytes, server: Path, cache: Path, direct: None) -> None:
    (server / FILE).write_bytes(photo)
    put(cache, b"half a fi")
    assert load_dataset("amazon-photo").num_nodes == 3
    assert (cache / "Photo" / "raw" / FILE).read_bytes() == photo


def test_other_bytes_than_the_known_ones_are_not_kept(photo: bytes, server: Path, cache: Path, direct: None) -> None:
    (server / FILE).write_bytes(b"something else")
    with pytest.raises(InputError, match=f"{FILE}: could not be downloaded .*give that folder as the data root"):
        load_dataset("amazon-photo")
    assert list((cache / "Photo" / "raw").iterdir()) == []


def test_the_file_is_not_served(photo: bytes, server: Path, cache: Path, direct: None) -> None:
    with pytest.raises(InputError, match=r"could not be downloaded \(404"):
        load_dataset("amazon-photo")


def test_no_network(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ConnectionError("no route\nto host")

    monkeypatch.setattr(pooch, "retrieve", fail)
    with pytest.raises(InputError) as caught:
        load_dataset("cora")
    message = str(caught.value)
    assert "ind.cora.x: could not be downloaded (no route to host)" in message
    assert "put the file under Cora/raw of a folder and give that folder as the data root" in message


def test_published_files_of_the_data_root_pass_the_download(
    data_root: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The Planetoid files are byte-exact, so they stand in for a download with the true hashes."""

    def copy(url: str, known_hash: str, fname: str, path: Path) -> None:
        path.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(data_root / "Cora" / "raw" / url.rsplit("/", 1)[1], path / fname)
        assert pooch.file_hash(path / fname) == known_hash.removeprefix("sha256:")

    monkeypatch.setattr(pooch, "retrieve", copy)
    assert load_dataset("cora").num_nodes == 2708
    assert locate("cora").kind == "cache"


def test_the_built_in_graph_needs_no_downloader() -> None:
    code = "import sys, graphpartner.graph.datasets as d; d.load_dataset('citeseer'); print('pooch' in sys.modules)"
    answer = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "False"
