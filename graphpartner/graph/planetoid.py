"""The files of Planetoid (Cora, CiteSeer, PubMed): Python 2 pickles, read without trusting them.

A file is unpickled only when its sha256 is the known one, and then only through an unpickler that can build arrays,
sparse matrices, lists and dictionaries, and nothing else.
"""

import hashlib
import io
import pickle
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy._core.multiarray import _reconstruct
from numpy.typing import NDArray
from scipy import sparse

from graphpartner.graph.arrays import OUT_OF_SPLIT, TEST, TRAIN, VAL, GraphArrays, canonical
from graphpartner.system.errors import InputError

NUM_VALIDATION = 500  # the public split validates on the nodes that follow the training nodes

# What the pickles name, and what stands there today: the modules have moved since Python 2.
ADMITTED: dict[tuple[str, str], Any] = {
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
    ("numpy.core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy._core.multiarray", "_reconstruct"): _reconstruct,
    ("scipy.sparse.csr", "csr_matrix"): sparse.csr_matrix,
    ("scipy.sparse._csr", "csr_matrix"): sparse.csr_matrix,
    ("collections", "defaultdict"): defaultdict,
    ("__builtin__", "list"): list,
    ("builtins", "list"): list,
}


class _Unpickler(pickle.Unpickler):
    """Builds what ADMITTED lists; asked for anything else, it stops before that is even imported."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in ADMITTED:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}")
        return ADMITTED[module, name]


def restricted_unpickle(content: bytes, file: str) -> Any:
    """The object in a pickle that holds only arrays, sparse matrices, lists and dictionaries.

    Args:
        content: the bytes of the pickle.
        file: where they are from, for the message.

    Raises:
        InputError: the pickle asks for anything else, or is not a pickle.
    """
    try:
        return _Unpickler(io.BytesIO(content), encoding="latin1").load()
    except Exception as error:  # a broken pickle can raise anything
        raise InputError(
            f"{file} is not a pickle of plain arrays ({error}); give the file as Planetoid published it."
        ) from error


def check_hash(content: bytes, sha256: str, file: str) -> None:
    """Raise an InputError unless ``content``, read from ``file``, has the known sha256."""
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        raise InputError(
            f"{file} has sha256 {found[:12]}…, but the published file has {sha256[:12]}…: restore the original file."
        )


def read_planetoid(contents: Mapping[str, bytes], hashes: Mapping[str, str], folder: str) -> GraphArrays:
    """One graph out of its eight files.

    Args:
        contents: the bytes of each file, by file name (``ind.<graph>.<part>``).
        hashes: the known sha256 of each of them.
        folder: where the files are from, for messages.
    """
    parts: dict[str, Any] = {}
    for file, sha256 in hashes.items():
        where, part = f"{folder}/{file}", file.split(".", 2)[2]
        check_hash(contents[file], sha256, where)
        if part == "test.index":
            parts[part] = np.array(contents[file].split(), dtype=np.int64)
        else:
            parts[part] = restricted_unpickle(contents[file], where)
    return assemble(parts)


def assemble(parts: Mapping[str, Any]) -> GraphArrays:
    """Put the parts together.

    Rows of ``allx`` are the nodes 0, 1, …; row r of ``tx`` is node ``test.index[r]``. Test ids that the index leaves
    out (15 in CiteSeer) are nodes with edges but without features or label: a row of zeros, y = −1, in no mask.
    """
    test = parts["test.index"]
    num_known = parts["allx"].shape[0]
    num_nodes = max(num_known, int(test.max()) + 1)
    node_of_row = np.concatenate([np.arange(num_known), test])

    rows = sparse.vstack([_clean(parts["allx"]), _clean(parts["tx"])], format="coo")
    features = sparse.coo_array(
        (rows.data, (node_of_row[rows.coords[0]], rows.coords[1])), shape=(num_nodes, rows.shape[1])
    )
    labels = np.full(num_nodes, -1)
    labels[node_of_row] = _class_of_row(np.concatenate([parts["ally"], parts["ty"]]))

    num_train = parts["y"].shape[0]
    split = np.full(num_nodes, OUT_OF_SPLIT)
    split[:num_train] = TRAIN
    split[num_train : num_train + NUM_VALIDATION] = VAL
    split[test] = TEST
    split[labels < 0] = OUT_OF_SPLIT

    neighbors = parts["graph"]
    source = np.repeat(list(neighbors), [len(listed) for listed in neighbors.values()])
    target = np.concatenate([np.array(listed, dtype=np.int64) for listed in neighbors.values()])
    return canonical(features, np.stack([source, target]), labels, split)


def _clean(matrix: sparse.csr_matrix) -> sparse.csr_array:
    """The same matrix made anew: an object from an old pickle lacks attributes that SciPy has added since."""
    return sparse.csr_array((matrix.data, matrix.indices, matrix.indptr), shape=matrix.shape)


def _class_of_row(one_hot: NDArray) -> NDArray[np.int64]:
    """The class each row marks; −1 for a row that marks none."""
    return np.where(one_hot.any(axis=1), one_hot.argmax(axis=1), -1)
