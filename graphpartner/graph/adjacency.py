"""Edge lists and the sparse matrices of a graph: A, D⁻¹A, D̃^-½ Ã D̃^-½, and its features normalised by row.

Rows receive: entry (i, j) is the edge j → i, so that one step of propagation is ``A @ H``. In an
``edge_index`` of shape [2, E] the first row holds the sources j and the second the targets i, as
PyTorch Geometric has it.
"""

import warnings

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

# Torch warns once that its CSR layout may change; every sparse matrix of this package has that layout.
warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")


def simple_edges(edge_index: Tensor, num_nodes: int) -> Tensor:
    """Return both directions of every edge, without duplicates and self-loops, sorted by target and source."""
    source, target = edge_index.long()  # in 32 bits the keys below would overflow from 46,341 nodes on
    both = torch.stack([torch.cat([source, target]), torch.cat([target, source])])
    both = both[:, both[0] != both[1]]
    key = torch.unique(both[1] * num_nodes + both[0])
    return torch.stack([key % num_nodes, key // num_nodes])


def adjacency(edge_index: Tensor, num_nodes: int, edge_weight: Tensor | None = None) -> sparse.csr_array:
    """Return A without self-loops, as float64; unweighted duplicates count once, weights of duplicates are added."""
    source, target = edge_index.cpu().numpy()
    weight = np.ones(source.size) if edge_weight is None else edge_weight.detach().cpu().numpy().astype(np.float64)
    keep = source != target
    entries = (weight[keep], (target[keep], source[keep]))
    A = sparse.coo_array(entries, shape=(num_nodes, num_nodes)).tocsr()  # adds duplicates
    if edge_weight is None:
        A.data[:] = 1.0
    return A


def with_loops(edge_index: Tensor, num_nodes: int, edge_weight: Tensor | None = None) -> sparse.csr_array:
    """Return Ã = A + I, as float64."""
    return adjacency(edge_index, num_nodes, edge_weight) + sparse.eye_array(num_nodes)


def normalized_adjacency(
    edge_index: Tensor, num_nodes: int, edge_weight: Tensor | None = None, dtype: torch.dtype = torch.float32
) -> Tensor:
    """Return P = D̃^-½ Ã D̃^-½ with Ã = A + I (Eq. 1), as torch sparse CSR on the device of ``edge_index``."""
    A = with_loops(edge_index, num_nodes, edge_weight)
    scale = sparse.diags_array(1.0 / np.sqrt(A.sum(axis=1)))
    return to_torch(scale @ A @ scale, dtype, edge_index.device)


def neighbor_mean(
    edge_index: Tensor, num_nodes: int, edge_weight: Tensor | None = None, dtype: torch.dtype = torch.float32
) -> Tensor:
    """Return D⁻¹A, without self-loops, as a torch sparse CSR tensor; the row of an isolated node is zero."""
    A = adjacency(edge_index, num_nodes, edge_weight)
    degree = A.sum(axis=1)
    inverse = np.divide(1.0, degree, out=np.zeros_like(degree), where=degree > 0)
    return to_torch(sparse.diags_array(inverse) @ A, dtype, edge_index.device)


def is_symmetric(A: sparse.csr_array) -> bool:
    """Return whether a matrix in canonical form is its own transpose, up to the rounding of its values."""
    T = A.T.tocsr()
    same_pattern = np.array_equal(A.indptr, T.indptr) and np.array_equal(A.indices, T.indices)
    return bool(same_pattern and np.allclose(A.data, T.data))


def to_torch(
    matrix: sparse.csr_array, dtype: torch.dtype = torch.float32, device: torch.device | str = "cpu"
) -> Tensor:
    """Copy a SciPy matrix into a torch sparse CSR tensor, columns sorted within each row, duplicates added."""
    matrix = sparse.csr_array(matrix)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()  # the caller's matrix is left alone
        matrix.sum_duplicates()
    crow, col = (torch.from_numpy(part.astype(np.int64)) for part in (matrix.indptr, matrix.indices))
    return csr(crow, col, torch.tensor(matrix.data, dtype=dtype), matrix.shape).to(device)


def csr(crow: Tensor, col: Tensor, value: Tensor, shape: tuple[int, int] | torch.Size) -> Tensor:
    """Return a torch sparse CSR tensor of parts that are known to fit, so that PyTorch need not check them or warn."""
    return torch.sparse_csr_tensor(crow, col, value, size=shape, check_invariants=False)


def with_values(matrix: Tensor, value: Tensor) -> Tensor:
    """Return a torch sparse CSR tensor with the pattern of ``matrix`` and other values."""
    return csr(matrix.crow_indices(), matrix.col_indices(), value, matrix.shape)


def to_scipy(matrix: Tensor) -> sparse.csr_array:
    """Return a torch sparse CSR tensor as a SciPy matrix; on a CPU the two share their memory."""
    parts = (matrix.values(), matrix.col_indices(), matrix.crow_indices())
    return sparse.csr_array(tuple(part.detach().cpu().numpy() for part in parts), shape=tuple(matrix.shape))


def row_normalized(x: Tensor) -> Tensor:
    """Divide every row of x, dense or sparse CSR, by its sum; a row that sums to zero is left as it is."""
    if x.layout == torch.strided:
        total = x.sum(1, keepdim=True)
        return x / total.masked_fill(total == 0, 1)
    row = torch.repeat_interleave(torch.arange(x.shape[0], device=x.device), x.crow_indices().diff())
    total = x.values().new_zeros(x.shape[0]).index_add_(0, row, x.values())
    return with_values(x, x.values() / total.masked_fill(total == 0, 1)[row])
