"""The Graph Partner Neural Network: its forward pass, Eqs. 10 to 14, and the PyTorch module."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from graphpartner.graph.adjacency import normalized_adjacency, row_normalized, with_values
from graphpartner.kernels.narrow_product import matmul_narrow
from graphpartner.kernels.spmm import SparseMatrix
from graphpartner.model.propagation import Propagation
from graphpartner.system.errors import InputError

DropFunction = Callable[[Any], Any]


class GPNNOutput(NamedTuple):
    """Both branches of one forward pass, with the leading replica dimensions of the weights."""

    logits: Tensor
    """α H^φ1 + (1 − α) H^φ2, [..., n, C]: Eq. 14 before its softmax."""
    mlp_logits: Tensor
    """H^φ1, the logits of the MLP partner, Eq. 11."""
    gcn_logits: Tensor
    """H^φ2, the logits of the graph branch, Eq. 13."""
    initial: Tensor
    """H^(1), [..., n, h], after dropout: Eq. 10."""
    smoothed: Tensor
    """H^(l+1) = A_en^l H^(1), Eq. 12."""


def _identity(H: Any) -> Any:
    return H


def forward(
    X: Tensor | SparseMatrix | Any,
    weight1: Tensor,
    weight2: Tensor,
    propagate: Callable[[Tensor], Tensor],
    alpha: float | Tensor,
    drop_input: DropFunction = _identity,
    drop_hidden: DropFunction = _identity,
    drop_partner: DropFunction | None = None,
    smooth: bool = True,
    partner_rows: Callable[[Tensor], Tensor] = _identity,
) -> GPNNOutput:
    """Compute Eqs. 10 to 14 for any number of replicas.

    Args:
        X: features [n, d]: a tensor, or an object that supports ``X @ W``.
        weight1: W^(1), [..., d, h].
        weight2: W^(2), [..., h, C].
        propagate: H ↦ A_en^l H.
        alpha: α, a number or [..., 1, 1].
        drop_input: dropout of X, applied before the product with W^(1).
        drop_hidden: dropout of H^(1).
        drop_partner: separate dropout of H^(1) for the MLP partner; by default both branches share ``drop_hidden``.
        smooth: whether H^(l+1) itself is needed. If not, the C columns of H^φ1 are propagated instead of the h columns
            of H^(1), with the same logits, and ``smoothed`` is H^(1).
        partner_rows: if ``propagate`` returns only some rows of A_en^l H, H ↦ the same rows of H.
    """
    hidden = torch.relu(drop_input(X) @ weight1)  # Eq. 10
    initial = drop_hidden(hidden)
    mlp_logits = matmul_narrow(initial if drop_partner is None else drop_partner(hidden), weight2)  # Eq. 11
    if smooth:
        smoothed = propagate(initial)  # Eq. 12
        gcn_logits = matmul_narrow(smoothed, weight2)  # Eq. 13
    else:
        smoothed = initial
        gcn_logits = propagate(mlp_logits if drop_partner is None else matmul_narrow(initial, weight2))
    logits = torch.lerp(gcn_logits, partner_rows(mlp_logits), alpha)  # Eq. 14
    return GPNNOutput(logits, mlp_logits, gcn_logits, initial, smoothed)


class GPNN(nn.Module):
    r"""Graph Partner Neural Network, from *Graph Partner Neural Networks for Semi-Supervised Learning on Graphs*.

    .. math::
        H^{(1)} = \mathrm{ReLU}(X W^{(1)}), \qquad H^{(l+1)} = A_{en}^l H^{(1)}, \qquad
        O = \mathrm{softmax}(\alpha H^{(1)} W^{(2)} + (1 - \alpha) H^{(l+1)} W^{(2)})

    Args:
        in_channels: d, the number of features.
        hidden_channels: h, the width of H^(1).
        out_channels: C, the number of classes.
        num_steps: l, the number of propagation steps. (default: ``10``)
        alpha: α, the weight of the MLP partner. (default: ``0.2``)
        dropout: dropout probability of H^(1). (default: ``0.5``)
        input_dropout: dropout probability of X. (default: ``0.5``)
        normalize: whether to divide every row of x by its sum first. (default: ``False``)
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_steps: int = 10,
        alpha: float = 0.2,
        dropout: float = 0.5,
        input_dropout: float = 0.5,
        normalize: bool = False,
    ) -> None:
        super().__init__()
        for name, size in zip(("in", "hidden", "out"), (in_channels, hidden_channels, out_channels), strict=True):
            if size < 1:
                raise InputError(f"{name}_channels = {size}: must be 1 or more")
        for name, value in (("alpha", alpha), ("dropout", dropout), ("input_dropout", input_dropout)):
            if not 0 <= value <= 1:
                raise InputError(f"{name} = {value}: must lie between 0 and 1")
        if num_steps < 0:
            raise InputError(f"num_steps = {num_steps}: must be 0 or more")
        self.in_channels, self.hidden_channels, self.out_channels = in_channels, hidden_channels, out_channels
        self.num_steps, self.alpha = num_steps, alpha
        self.dropout, self.input_dropout, self.normalize = dropout, input_dropout, normalize
        self.weight1 = nn.Parameter(torch.empty(in_channels, hidden_channels))
        self.weight2 = nn.Parameter(torch.empty(hidden_channels, out_channels))
        self.class_bias: Tensor
        """Constant added to the logits, [C]: ln π if a run estimates the class prior π, else 0."""
        self.register_buffer("class_bias", torch.zeros(out_channels))
        self._features, self._propagation = _CacheOfOne(_as_features), _CacheOfOne(_as_propagation)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialise the weights Glorot-uniformly; there is no bias."""
        nn.init.xavier_uniform_(self.weight1)
        nn.init.xavier_uniform_(self.weight2)

    def forward(self, x: Tensor, adj: Tensor | Propagation) -> GPNNOutput:
        """Return the outputs of both branches for every node.

        Args:
            x: features, [n, d], dense or torch sparse CSR.
            adj: A_en as torch sparse CSR, rows receive (``data.adj_t`` of :class:`graphpartner.Enhance`); an edge_index
                [2, E], for the plain normalised adjacency; or a :class:`~graphpartner.model.propagation.Propagation`.
        """
        propagate = adj if isinstance(adj, Propagation) else self._propagation(adj, x.shape[0], self.num_steps, x.dtype)
        with torch.autocast(x.device.type, enabled=False):  # sums over neighbourhoods need the precision of the weights
            out = forward(
                self._features(x, self.normalize),
                self.weight1,
                self.weight2,
                propagate,
                self.alpha,
                drop_input=self._drop_input,
                drop_hidden=lambda H: F.dropout(H, self.dropout, self.training),
            )
        return out._replace(logits=out.logits + self.class_bias)

    def _drop_input(self, x: Tensor | SparseMatrix) -> Tensor | SparseMatrix:
        if not self.training or self.input_dropout == 0:
            return x
        if isinstance(x, Tensor):
            return F.dropout(x, self.input_dropout)
        return SparseMatrix(with_values(x.csr, F.dropout(x.csr.values(), self.input_dropout)))

    def __repr__(self) -> str:
        sizes = f"{self.in_channels}, {self.hidden_channels}, {self.out_channels}"
        return f"{type(self).__name__}({sizes}, num_steps={self.num_steps}, alpha={self.alpha})"


class _CacheOfOne:
    """A function of a tensor that reuses its last result while the tensor is the same, as in a training loop."""

    def __init__(self, prepare: Callable[..., Any]) -> None:
        self.prepare = prepare
        self.tensor: Tensor | None = None
        self.key: tuple[Any, ...] = ()

    def __call__(self, tensor: Tensor, *arguments: Any) -> Any:
        if tensor.is_inference():  # has no version counter
            return self.prepare(tensor, *arguments)
        key = (tensor._version, *arguments)
        if self.tensor is not tensor or self.key != key:
            self.prepared = self.prepare(tensor, *arguments)
            self.tensor, self.key = tensor, key
        return self.prepared

    def __getstate__(self) -> dict[str, Any]:
        """Copy or pickle the model without the cached graph."""
        return {"prepare": self.prepare, "tensor": None, "key": ()}


def _as_features(x: Tensor, normalize: bool) -> Tensor | SparseMatrix:
    x = row_normalized(x) if normalize else x
    return x if x.layout == torch.strided else SparseMatrix(x.to_sparse_csr())


def _as_propagation(adj: Tensor, num_nodes: int, num_steps: int, dtype: torch.dtype) -> Propagation:
    if adj.layout == torch.strided and not adj.is_floating_point():
        adj = normalized_adjacency(adj, num_nodes)
    return Propagation(adj.to_sparse_csr().to(dtype), num_steps)
