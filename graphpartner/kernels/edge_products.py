"""Products over the edges of a graph, with a value for every edge and every replica.

Attention (GAT) and dropped edges (DropEdge, APPNP) multiply by matrices that differ between replicas in their values
but not in their pattern. Values lie in memory as [E, G] and hidden states as [n, G, c], where G counts replicas, or
replicas × heads: all G values of an edge, and all G rows of a node, are read together.
"""

from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from graphpartner.graph.adjacency import csr
from graphpartner.kernels.spmm import SparseMatrix
from graphpartner.kernels.table import Kernels


class Edges:
    """The pattern of a square torch sparse CSR matrix: edge e goes from node ``col[e]`` to node ``row[e]``."""

    def __init__(self, matrix: Tensor) -> None:
        self.num_nodes, self.count = matrix.shape[0], matrix.values().numel()
        self.crow, self.col = matrix.crow_indices().int(), matrix.col_indices().int()
        device = matrix.device
        self.target = torch.repeat_interleave(torch.arange(self.num_nodes, device=device), self.crow.diff())
        self.row, self.source = self.target.int(), self.col.long()
        self.loop = self.source == self.target
        self.weight = matrix.values()
        self.order = torch.arange(self.count, device=device, dtype=torch.int32)

    @cached_property
    def transposed(self) -> tuple[Tensor, Tensor, Tensor]:
        """Row starts, columns and edges of the transposed pattern in CSR form, for the gradient."""
        numbered = csr(self.crow.long(), self.col.long(), self.order.double(), (self.num_nodes, self.num_nodes))
        csc = numbered.to_sparse_csc()
        return csc.ccol_indices().int(), csc.row_indices().int(), csc.values().int()

    @cached_property
    def into(self) -> SparseMatrix:
        """[n, E]: ``into @ values`` sums over the incoming edges of each node."""
        ones = torch.ones(self.count, device=self.crow.device)
        return SparseMatrix(csr(self.crow, self.order, ones, (self.num_nodes, self.count)))

    @cached_property
    def out_of(self) -> SparseMatrix:
        """[n, E]: ``out_of @ values`` sums over the outgoing edges of each node."""
        crow, _, order = self.transposed
        ones = torch.ones(self.count, device=self.crow.device)
        return SparseMatrix(csr(crow, order, ones, (self.num_nodes, self.count)))

    def sums(self, by_source: Tensor, by_target: Tensor) -> Tensor:
        """Return by_source[source] + by_target[target] for every edge, [E, G], from two tensors [n, G]."""
        return _Sums.apply(by_source, by_target, self)

    def product(self, values: Tensor, H: Tensor) -> Tensor:
        """Return Σ_e value_e H[source] for every target, [n, G, c], differentiable in values [E, G] and H [n, G, c]."""
        return _Product.apply(values, H, self)

    def softmax(self, scores: Tensor) -> Tensor:
        """Return the softmax of scores [E, G] over the incoming edges of each node."""
        return _Softmax.apply(scores, self)


class _Sums(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, by_source: Tensor, by_target: Tensor, edges: Edges) -> Tensor:
        ctx.edges = edges
        return by_source.index_select(0, edges.source).add_(by_target.index_select(0, edges.target))

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None]:
        return ctx.edges.out_of @ gradient, ctx.edges.into @ gradient, None


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, H: Tensor, edges: Edges) -> Tensor:
        values, H = values.contiguous(), H.contiguous()
        ctx.edges = edges
        ctx.save_for_backward(values, H)
        return weighted_sum(edges.crow, edges.col, edges.order, values, H)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        (values, H), gradient = ctx.saved_tensors, gradient.contiguous()
        by_values = dots(ctx.edges, gradient, H) if ctx.needs_input_grad[0] else None
        by_H = None
        if ctx.needs_input_grad[1]:
            crow, col, order = ctx.edges.transposed
            by_H = weighted_sum(crow, col, order, values, gradient)
        return by_values, by_H, None


class _Softmax(torch.autograd.Function):
    """p_e = exp(s_e) / Σ exp(s) over the incoming edges of a node; the gradient is p_e (g_e − Σ p g)."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, edges: Edges) -> Tensor:
        ctx.edges = edges
        place = edges.target[:, None].expand_as(scores)
        most = scores.new_full((edges.num_nodes, scores.shape[1]), -torch.inf).scatter_reduce(0, place, scores, "amax")
        share = (scores - most[edges.target]).exp_()
        share = share / (edges.into @ share)[edges.target]
        ctx.save_for_backward(share)
        return share

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (share,) = ctx.saved_tensors
        weighted = share * gradient
        return weighted - share * (ctx.edges.into @ weighted)[ctx.edges.target], None


def weighted_sum(crow: Tensor, col: Tensor, order: Tensor, values: Tensor, H: Tensor) -> Tensor:
    """Return Σ values[order[p]] H[col[p]] over the places p of row i, for every row i and each of G groups."""
    if (loops := Kernels.on(H.device).edge_products) is not None:
        return loops.weighted_sum(crow, col, order, values, H)
    row = torch.repeat_interleave(torch.arange(H.shape[0], device=H.device), crow.diff(), output_size=col.numel())
    return torch.zeros_like(H).index_add_(0, row, values[order.long(), :, None] * H[col.long()])


def dots(edges: Edges, G: Tensor, H: Tensor) -> Tensor:
    """Return ⟨G[target], H[source]⟩ for every edge, [E, G]."""
    if (loops := Kernels.on(H.device).edge_products) is not None:
        return loops.dots(edges.crow, edges.col, edges.row, G, H)
    return (G[edges.target] * H[edges.source]).sum(-1)
