"""Two layouts of npz files: those of the GNN benchmark, and the built-in CiteSeer.

A file of the GNN benchmark (Coauthor CS, Amazon Computers, Amazon Photo) holds two CSR matrices, ``adj`` and ``attr``,
in parts, and ``labels``. Pickled objects are never read: the published Coauthor CS file has one (``class_names``),
which nothing here needs.

The built-in file holds a graph with 0/1 features: feature columns and edges in the smallest integers that hold them,
every edge once. Writing the same graph twice gives the same bytes: the archive carries no time of day.
"""

import io
import zipfile

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from graphpartner.graph.arrays import GraphArrays, canonical
from graphpartner.system.errors import InputError

MATRIX_PARTS = ("data", "indices", "indptr", "shape")
BENCHMARK_NAMES = [f"{matrix}_{part}" for matrix in ("adj", "attr") for part in MATRIX_PARTS] + ["labels"]
PACKED_NAMES = ["shape", "row_lengths", "columns", "edges", "labels", "split"]


def read_benchmark_npz(content: bytes, file: str) -> GraphArrays:
    """Return the graph of a file of the GNN benchmark; Coauthor CS keeps its word counts.

    Args:
        content: the bytes of the file.
        file: where they are from, for messages.

    Raises:
        InputError: the file is not an npz file, lacks an array, or its arrays do not fit together.
    """
    arrays = _load_arrays(content, file, BENCHMARK_NAMES)
    labels = arrays["labels"]
    adjacency, features = (
        _checked_csr(f"{file}: damaged matrix {name}", *(arrays[f"{name}_{part}"] for part in MATRIX_PARTS))
        for name in ("adj", "attr")
    )
    num_nodes = features.shape[0]
    if adjacency.shape != (num_nodes, num_nodes) or labels.shape != (num_nodes,):
        raise InputError(
            f"{file}: adj of shape {adjacency.shape}, attr of shape {features.shape} and labels of shape "
            f"{labels.shape} must describe the same nodes"
        )
    source, target = adjacency.tocoo().coords
    return canonical(features, np.stack([source, target]), labels)


def _load_arrays(content: bytes, file: str, names: list[str]) -> dict[str, NDArray]:
    """Return the named arrays of an npz file; all of them must be there and hold numbers."""
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as npz:
            missing = [name for name in names if name not in npz.files]
            arrays = {name: npz[name] for name in names if name not in missing}
    except Exception as error:  # a damaged archive can raise anything
        raise InputError(f"{file}: cannot be read as an npz file of plain arrays; restore the file") from error
    if missing:
        raise InputError(f"{file}: lacks the array {missing[0]}; must hold {', '.join(names)}")
    for name, array in arrays.items():
        if array.dtype.kind not in "biuf":
            raise InputError(f"{file}: an array {name} of type {array.dtype}; must hold numbers")
    return arrays


def _checked_csr(damaged: str, data: NDArray, indices: NDArray, indptr: NDArray, shape: NDArray) -> sparse.csr_array:
    """Return a CSR matrix, its indices checked: SciPy's loops do not check them again."""
    try:
        matrix = sparse.csr_array((data, indices, indptr), shape=tuple(int(size) for size in shape))
        matrix.check_format(full_check=True)
    except (ValueError, TypeError, OverflowError, IndexError) as error:
        raise InputError(f"{damaged} ({error}); restore the file") from error
    return matrix


def pack(graph: GraphArrays) -> bytes:
    """Return a graph as the bytes of an npz file; ValueError unless its features are 0 or 1 and it has a split."""
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
        for name in PACKED_NAMES:
            member = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            member.create_system, member.external_attr = 3, 0o644 << 16  # the same on every operating system
            array = io.BytesIO()
            np.save(array, arrays[name].astype(arrays[name].dtype.newbyteorder("<")), allow_pickle=False)
            archive.writestr(member, array.getvalue(), zipfile.ZIP_DEFLATED, compresslevel=9)
    return packed.getvalue()


def unpack(content: bytes, file: str) -> GraphArrays:
    """Return the graph that :func:`pack` turned into these bytes; ``file`` is where they are from, for messages."""
    arrays = _load_arrays(content, file, PACKED_NAMES)
    columns = arrays["columns"].astype(np.int64)
    indptr = np.concatenate([[0], np.cumsum(arrays["row_lengths"], dtype=np.int64)])
    ones = np.ones(columns.size, np.float32)
    features = _checked_csr(f"{file}: damaged features", ones, columns, indptr, arrays["shape"])
    return canonical(features, arrays["edges"], arrays["labels"], arrays["split"])


def _narrow(array: NDArray) -> NDArray:
    """Return the integers in the smallest signed type that holds them all."""
    for dtype in (np.int8, np.int16, np.int32):
        if array.min() >= np.iinfo(dtype).min and array.max() <= np.iinfo(dtype).max:
            return array.astype(dtype)
    return array.astype(np.int64)
