"""Validation of graphs: the first thing wrong is named, with its node or edge and its value."""

from collections.abc import Iterable
from itertools import combinations
from typing import Any

import torch
from torch import Tensor

from graphpartner.graph.record import GraphRecord
from graphpartner.system.errors import InputError

MASKS = ("train_mask", "val_mask", "test_mask")
ROWS_AT_ONCE = 4096  # features are checked in blocks, so that a large x is not doubled in memory


def check_graph(data: GraphRecord, require: Iterable[str] = ()) -> None:
    """Raise an :class:`InputError` of one sentence for the first thing that is wrong with a graph.

    ``x`` and ``edge_index`` are required; ``edge_weight``, ``y`` and the masks are checked where they are present.

    Args:
        data: the graph. Its masks are [n], or [R, n] with one split per replica.
        require: further required attributes: training needs ``("y", "train_mask", "val_mask")``.
    """
    for name in ("x", "edge_index", *require):
        if not isinstance(data.get(name), Tensor):
            raise InputError(f"data.{name} is missing: must be a tensor")
    check_features(data.x)
    num_nodes = data.x.size(0)
    check_edges(data.edge_index, num_nodes, data.get("edge_weight"))
    if data.get("y") is not None:
        check_labels(data.y, num_nodes, data.get("num_classes"))
    masks = {name: data[name] for name in MASKS if data.get(name) is not None}
    for name, mask in masks.items():
        _check_mask(name, mask, num_nodes)
    for (one, first), (other, second) in combinations(masks.items(), 2):
        _check_apart(one, first, other, second)
    if data.get("y") is not None:
        for name in ("train_mask", "val_mask"):  # an unlabelled test node is only left out of the rates
            if name in masks and (node := _first(masks[name] & (data.y < 0))) is not None:
                raise InputError(f"{name} holds node {node[-1]}, which has no label (y = −1): must hold labelled nodes")


def check_features(x: Tensor) -> None:
    """Require ``x`` to be [n, d], floating-point and finite; dense or sparse CSR."""
    if x.dim() != 2 or 0 in x.shape:
        raise InputError(f"x = {_describe(x)}: must be [nodes, features]")
    if not x.is_floating_point():
        raise InputError(f"x = {_describe(x)}: must be floating-point, as x.float() is")
    if x.layout == torch.sparse_csr:
        if (place := _first(~x.values().isfinite())) is not None:
            node = int(torch.searchsorted(x.crow_indices(), place[0], right=True)) - 1
            _raise_not_finite(x.values()[place[0]], node, int(x.col_indices()[place[0]]))
        return
    if x.layout != torch.strided:
        raise InputError(f"x = {_describe(x)}: must be dense or sparse CSR")
    for start in range(0, x.size(0), ROWS_AT_ONCE):
        rows = x[start : start + ROWS_AT_ONCE]
        if (place := _first(~rows.isfinite())) is not None:
            _raise_not_finite(rows[place[0], place[1]], start + place[0], place[1])


def _raise_not_finite(value: Tensor, node: int, column: int) -> None:
    raise InputError(f"x = {float(value)} at node {node}, feature {column}: must be finite")


def check_edges(
    edge_index: Tensor, num_nodes: int, edge_weight: Tensor | None = None, *, name: str = "edge_index"
) -> None:
    """Require edges [2, E] of integers in 0 … n − 1, and weights [E], where given, that are finite and not negative.

    Args:
        edge_index: the edges.
        num_nodes: n.
        edge_weight: the weights of the edges.
        name: what messages call the edges.
    """
    valid = isinstance(edge_index, Tensor) and edge_index.dtype in (torch.int64, torch.int32)
    if not valid or edge_index.layout != torch.strided or edge_index.dim() != 2 or edge_index.shape[0] != 2:
        raise InputError(f"{name} = {_describe(edge_index)}: must be int64 or int32 [2, E]")
    if (place := _first(((edge_index < 0) | (edge_index >= num_nodes)).any(dim=0))) is not None:
        source, target = edge_index[:, place[0]].tolist()
        raise InputError(f"{name} = {source} → {target} at position {place[0]}: must be nodes 0 to {num_nodes - 1}")
    if edge_weight is None:
        return
    if edge_weight.shape != edge_index.shape[1:]:
        raise InputError(
            f"edge_weight = {_describe(edge_weight)}: must be [{edge_index.shape[1]}], one number per edge"
        )
    if (place := _first(~edge_weight.isfinite() | (edge_weight < 0))) is not None:
        source, target = edge_index[:, place[0]].tolist()
        value = float(edge_weight[place[0]])
        raise InputError(f"edge_weight = {value} for the edge {source} → {target}: must be finite and not negative")


def check_labels(y: Tensor, num_nodes: int, num_classes: int | None = None) -> None:
    """Require ``y`` to be [n], of integers from −1 (no label) to C − 1."""
    if y.shape != (num_nodes,):
        raise InputError(f"y = {_describe(y)}: must be [{num_nodes}], one label per node")
    if y.is_floating_point() or y.is_complex() or y.dtype == torch.bool:
        raise InputError(f"y = {_describe(y)}: must be integers, such as int64")
    outside = y < -1 if num_classes is None else (y < -1) | (y >= num_classes)
    if (place := _first(outside)) is not None:
        classes = "from 0 on" if num_classes is None else f"from 0 to {num_classes - 1}"
        raise InputError(f"y = {int(y[place[0]])} at node {place[0]}: must be a class {classes}, or −1 for no label")


def check_embedding(embedding: Tensor) -> None:
    """Require an embedding to be a floating-point tensor [..., n, d]."""
    if not isinstance(embedding, Tensor) or embedding.dim() < 2 or not embedding.is_floating_point():
        raise InputError(f"embedding = {_describe(embedding)}: must be floating-point [..., nodes, columns]")


def _check_mask(name: str, mask: Tensor, num_nodes: int) -> None:
    if mask.dtype != torch.bool:
        raise InputError(f"{name} = {_describe(mask)}: must be bool")
    if mask.dim() not in (1, 2) or mask.size(-1) != num_nodes:
        raise InputError(
            f"{name} = {_describe(mask)}: must be [{num_nodes}], or [R, {num_nodes}] with one split per row"
        )
    if (row := _first(~mask.reshape(-1, num_nodes).any(dim=1))) is not None:
        split = f" in split {row[0]}" if mask.dim() == 2 else ""
        raise InputError(f"{name} is empty{split}: must hold at least one node")


def _check_apart(one: str, first: Tensor, other: str, second: Tensor) -> None:
    if first.dim() == second.dim() == 2 and first.size(0) != second.size(0):
        raise InputError(f"{one} has {first.size(0)} splits, {other} has {second.size(0)}: must have the same number")
    if (place := _first(first & second)) is not None:
        raise InputError(f"{one} and {other} both hold node {place[-1]}: must not overlap")


def _first(wrong: Tensor) -> list[int] | None:
    """Return the index of the first True, or None."""
    if not bool(wrong.any()):
        return None
    flat = int(wrong.reshape(-1).to(torch.uint8).argmax())
    return [int(i) for i in torch.unravel_index(torch.tensor(flat), wrong.shape)]


def _describe(value: Any) -> str:
    """Return type and shape of a tensor for messages, as in ``float32 [4, 2]``; of anything else its type."""
    if not isinstance(value, Tensor):
        return type(value).__name__
    layout = "" if value.layout == torch.strided else f"{value.layout} "
    return f"{layout}{value.dtype} {list(value.shape)}".replace("torch.", "")
