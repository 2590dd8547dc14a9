"""The npz files of the GNN benchmark (Coauthor CS, Amazon Computers, Amazon Photo).

Each holds two CSR matrices, ``adj`` and ``attr``, in parts, and ``labels``. Pickled objects are never read: the
published Coauthor CS file has one (``class_names``), which nothing here needs.
"""

import io

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from graphpartner.errors import InputError
from graphpartner.graph.arrays import GraphArrays, canonical

PARTS = ("data", "indices", "indptr", "shape")
NAMES = [f"{matrix}_{part}" for matrix in ("adj", "attr") for part in PARTS] + ["labels"]


def read_benchmark_npz(content: bytes, file: str) -> GraphArrays:
    """One graph out of its file. Feature values stay as they are: Coauthor CS has word counts, not 0 and 1.

    Args:
        content: the bytes of the npz file.
        file: where they are from, for messages.

    Raises:
        InputError: the file is not an npz file, lacks an array, or its arrays do not fit together.
    """
    arrays = load_arrays(content, file, NAMES)
    labels = arrays["labels"]
    adjacency, features = _matrix(arrays, "adj", file), _matrix(arrays, "attr", file)
    num_nodes = features.shape[0]
    if adjacency.shape != (num_nodes, num_nodes) or labels.shape != (num_nodes,):
        raise InputError(
            f"{file} has adj of shape {adjacency.shape}, attr of shape {features.shape} and labels of shape "
            f"{labels.shape}, but the three must describe the same nodes."
        )
    source, target = adjacency.tocoo().coords
    return canonical(features, np.stack([source, target]), labels)


def load_arrays(content: bytes, file: str, names: list[str]) -> dict[str, NDArray]:
    """The named arrays of an npz file, numbers only.

    Raises:
        InputError: one of them is missing, damaged, or not an array of numbers.
    """
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as npz:
            missing = [name for name in names if name not in npz.files]
            arrays = {name: npz[name] for name in names if name not in missing}
    except Exception as error:  # a damaged archive can raise anything
        raise InputError(f"{file} cannot be read as an npz file of plain arrays; restore it.") from error
    if missing:
        raise InputError(f"{file} lacks the array {missing[0]}; it must hold {', '.join(names)}.")
    for name, array in arrays.items():
        if array.dtype.kind not in "biuf":
            raise InputError(f"{file} has an array {name} of type {array.dtype}; it must hold numbers.")
    return arrays


def _matrix(arrays: dict[str, NDArray], name: str, file: str) -> sparse.csr_array:
    """The CSR matrix ``name``, its indices checked: SciPy's loops do not check them again."""
    data, indices, indptr, shape = (arrays[f"{name}_{part}"] for part in PARTS)
    try:
        matrix = sparse.csr_array((data, indices, indptr), shape=tuple(int(size) for size in shape))
        matrix.check_format(full_check=True)
    except (ValueError, TypeError, OverflowError, IndexError) as error:
        raise InputError(f"{file} has a damaged matrix {name} ({error}); restore the file.") from error
    return matrix
