"""A graph with 0/1 features as one small npz file without pickles: the form of the built-in CiteSeer.

Feature columns and edges are stored in the smallest integers that hold them, every edge once. Writing the same graph
twice gives the same bytes: the archive carries no time of day.
"""

import io
import os
import tempfile
import zipfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from graphpartner.errors import InputError
from graphpartner.graph.arrays import GraphArrays, canonical
from graphpartner.graph.benchmark_npz import load_arrays

NAMES = ["shape", "row_lengths", "columns", "edges", "labels", "split"]


def pack(graph: GraphArrays) -> bytes:
    """The graph as the bytes of an npz file; ValueError if its features are not all 0 or 1, or it has no split."""
    if graph.split is None or not (graph.features.data == 1).all():
        raise ValueError("only a graph with 0/1 features and a split can be packed")
    source, target = graph.edges
    arrays = {
        "shape": np.array(graph.features.shape, dtype=np.int64),
        "row_lengths": _narrow(np.diff(graph.features.indptr)),
        "columns": _narrow(graph.features.indices),
        "edges": _narrow(graph.edges[:, source < target]),
        "labels": _narrow(graph.labels),
        "split": graph.split,
    }
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name in NAMES:
            member = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            member.create_system, member.external_attr = 3, 0o644 << 16  # the same on every operating system
            array = io.BytesIO()
            np.save(array, arrays[name].astype(arrays[name].dtype.newbyteorder("<")), allow_pickle=False)
            archive.writestr(member, array.getvalue(), zipfile.ZIP_DEFLATED, compresslevel=9)
    return packed.getvalue()


def unpack(content: bytes, file: str) -> GraphArrays:
    """The graph that :func:`pack` turned into these bytes; ``file`` is where they are from, for messages."""
    arrays = load_arrays(content, file, NAMES)
    columns = arrays["columns"].astype(np.int64)
    indptr = np.concatenate([[0], np.cumsum(arrays["row_lengths"], dtype=np.int64)])
    try:
        features = sparse.csr_array((np.ones(columns.size, np.float32), columns, indptr), shape=tuple(arrays["shape"]))
        features.check_format(full_check=True)
    except ValueError as error:
        raise InputError(f"{file} is damaged ({error}); install the package again.") from error
    return canonical(features, arrays["edges"], arrays["labels"], arrays["split"])


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file whole or not at all: beside its place first, then moved there in one step."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.chmod(temporary, 0o644)  # mkstemp lets only the owner read
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _narrow(array: NDArray) -> NDArray:
    """The same integers in the smallest signed type that holds them all."""
    for dtype in (np.int8, np.int16, np.int32):
        if array.min() >= np.iinfo(dtype).min and array.max() <= np.iinfo(dtype).max:
            return array.astype(dtype)
    return array.astype(np.int64)
