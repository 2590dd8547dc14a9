"""The files of Planetoid (Cora, CiteSeer, PubMed): Python 2 pickles, read without trusting them.

A file is unpickled only if its sha256 is the published one, and then only by an unpickler that can build arrays, sparse
matrices, lists and dictionaries, and nothing else.
"""

import hashlib
import io
import pickle
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy._core.multiarray import _reconstruct
from scipy import sparse

from graphpartner.graph.arrays import OUT_OF_SPLIT, TEST, TRAIN, VAL, GraphArrays, canonical
from graphpartner.system.errors import InputError

NUM_VALIDATION = 500  # the public split validates on the nodes that follow the training nodes

# What the pickles name, and what they get today: the modules have moved since Python 2.
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
    """Builds what ADMITTED lists; anything else ends in an error before it is even imported."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in ADMITTED:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}")
        return ADMITTED[module, name]


def restricted_unpickle(content: bytes, file: str) -> Any:
    """Return the object in a pickle of arrays, sparse matrices, lists and dictionaries, read from ``file``.

    Raises:
        InputError: the pickle asks for anything else, or is not a pickle.
    """
    try:
        return _Unpickler(io.BytesIO(content), encoding="latin1").load()
    except Exception as error:  # a broken pickle can raise anything
        raise InputError(f"{file}: not a pickle of plain arrays ({error}); restore the original file") from error


def read_planetoid(contents: Mapping[str, bytes], hashes: Mapping[str, str], folder: str) -> GraphArrays:
    """Return the graph of eight files.

    Args:
        contents: the bytes of each file, by file name (``ind.<graph>.<part>``).
        hashes: the published sha256 of each file.
        folder: where the files are from, for messages.

    Raises:
        InputError: a file is not the published one.
    """
    parts: dict[str, Any] = {}
    for file, sha256 in hashes.items():
        where, part = f"{folder}/{file}", file.split(".", 2)[2]
        found = hashlib.sha256(contents[file]).hexdigest()
        if found != sha256:
            raise InputError(
                f"{where}: sha256 {found[:12]}…, but the published file has {sha256[:12]}…; restore the original file"
            )
        if part == "test.index":
            parts[part] = np.array(contents[file].split(), dtype=np.int64)
        else:
            parts[part] = restricted_unpickle(contents[file], where)
    return assemble(parts)


def assemble(parts: Mapping[str, Any]) -> GraphArrays:
    """Return the graph of the eight parts.

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
    one_hot = np.concatenate([parts["ally"], parts["ty"]])
    labels[node_of_row] = np.where(one_hot.any(axis=1), one_hot.argmax(axis=1), -1)

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
    """Return a new, equal matrix: an object from an old pickle lacks attributes that SciPy has added since."""
    return sparse.csr_array((matrix.data, matrix.indices, matrix.indptr), shape=matrix.shape)
