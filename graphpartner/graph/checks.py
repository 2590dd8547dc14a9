"""Is this graph fit to be trained on? The first thing wrong is named, with its node or edge and its value."""

from collections.abc import Iterable
from itertools import combinations

import torch
from torch import Tensor

from graphpartner.graph.record import GraphRecord
from graphpartner.system.errors import InputError

MASKS = ("train_mask", "val_mask", "test_mask")
ROWS_AT_ONCE = 4096  # features are checked in blocks, so that a large x is not doubled in memory


def check_graph(data: GraphRecord, require: Iterable[str] = ()) -> None:
    """Raise an InputError of one sentence at the first thing that is wrong with a graph.

    ``x`` and ``edge_index`` must be there and are always checked; ``edge_weight``, ``y`` and the masks are checked
    where they are there.

    Args:
        data: the graph. Its masks are [n], or [R, n] with one split a replica.
        require: what else must be there: training asks for ``("y", "train_mask", "val_mask")``.
    """
    for name in ("x", "edge_index", *require):
        if not isinstance(data.get(name), Tensor):
            raise InputError(f"data.{name} is missing; give it as a tensor.")
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
                raise InputError(
                    f"data.{name} has node {node[-1]}, which has no label (y = −1); take it out of the mask."
                )


def classes_of_graph(data: GraphRecord) -> int:
    """The number of classes: ``data.num_classes`` where it is set, else the largest label + 1."""
    given = data.get("num_classes")
    return int(given) if given is not None else int(data.y.max()) + 1


def check_features(x: Tensor) -> None:
    """``x`` is [n, d], floating-point and finite; dense or sparse CSR."""
    if x.dim() != 2 or 0 in x.shape:
        raise InputError(f"data.x has shape {tuple(x.shape)}, but must be [nodes, features].")
    if not x.is_floating_point():
        raise InputError(f"data.x has type {x.dtype}, but must be floating-point; convert it with data.x.float().")
    if x.layout == torch.sparse_csr:
        if (place := _first(~x.values().isfinite())) is not None:
            node = int(torch.searchsorted(x.crow_indices(), place[0], right=True)) - 1
            value, column = float(x.values()[place[0]]), int(x.col_indices()[place[0]])
            raise InputError(f"data.x is {value} at node {node}, feature {column}, but must be finite.")
        return
    if x.layout != torch.strided:
        raise InputError(f"data.x has layout {x.layout}, but must be dense or sparse CSR.")
    for start in range(0, x.size(0), ROWS_AT_ONCE):
        rows = x[start : start + ROWS_AT_ONCE]
        if (place := _first(~rows.isfinite())) is not None:
            row, column = place
            value = float(rows[row, column])
            raise InputError(f"data.x is {value} at node {start + row}, feature {column}, but must be finite.")


def check_edges(edge_index: Tensor, num_nodes: int, edge_weight: Tensor | None = None) -> None:
    """``edge_index`` is [2, E], of integers in 0 … n − 1; ``edge_weight`` is [E], finite and not negative."""
    if edge_index.dim() != 2 or edge_index.size(0) != 2 or edge_index.layout != torch.strided:
        raise InputError(f"data.edge_index has shape {tuple(edge_index.shape)}, but must be [2, edges].")
    if edge_index.dtype not in (torch.int64, torch.int32):
        raise InputError(f"data.edge_index has type {edge_index.dtype}, but must hold integers (torch.int64).")
    if (place := _first(((edge_index < 0) | (edge_index >= num_nodes)).any(dim=0))) is not None:
        source, target = edge_index[:, place[0]].tolist()
        raise InputError(
            f"data.edge_index has the edge {source} → {target} at position {place[0]}, "
            f"but the nodes are 0 to {num_nodes - 1}."
        )
    if edge_weight is None:
        return
    if edge_weight.shape != edge_index.shape[1:]:
        raise InputError(
            f"data.edge_weight has shape {tuple(edge_weight.shape)}, but must have one number an edge: "
            f"{tuple(edge_index.shape[1:])}."
        )
    if (place := _first(~edge_weight.isfinite() | (edge_weight < 0))) is not None:
        source, target = edge_index[:, place[0]].tolist()
        raise InputError(
            f"data.edge_weight is {float(edge_weight[place[0]])} for the edge {source} → {target}, "
            "but must be finite and not negative."
        )


def check_labels(y: Tensor, num_nodes: int, num_classes: int | None = None) -> None:
    """``y`` is [n], of integers from −1 (no label) to C − 1."""
    if y.shape != (num_nodes,):
        raise InputError(f"data.y has shape {tuple(y.shape)}, but must have one label a node: ({num_nodes},).")
    if y.is_floating_point() or y.is_complex() or y.dtype == torch.bool:
        raise InputError(f"data.y has type {y.dtype}, but must hold integers (torch.int64).")
    outside = y < -1 if num_classes is None else (y < -1) | (y >= num_classes)
    if (place := _first(outside)) is not None:
        classes = "a class from 0 on" if num_classes is None else f"a class from 0 to {num_classes - 1}"
        raise InputError(f"data.y is {int(y[place[0]])} at node {place[0]}, but must be {classes}, or −1 for no label.")


def _check_mask(name: str, mask: Tensor, num_nodes: int) -> None:
    if mask.dtype != torch.bool:
        raise InputError(f"data.{name} has type {mask.dtype}, but must be boolean (torch.bool).")
    if mask.dim() not in (1, 2) or mask.size(-1) != num_nodes:
        raise InputError(
            f"data.{name} has shape {tuple(mask.shape)}, but must be ({num_nodes},), or (splits, {num_nodes}) "
            "with one split a row."
        )
    if (row := _first(~mask.reshape(-1, num_nodes).any(dim=1))) is not None:
        split = f" in split {row[0]}" if mask.dim() == 2 else ""
        raise InputError(f"data.{name} is empty{split}, but must have at least one node.")


def _check_apart(one: str, first: Tensor, other: str, second: Tensor) -> None:
    if first.dim() == second.dim() == 2 and first.size(0) != second.size(0):
        raise InputError(
            f"data.{one} has {first.size(0)} splits and data.{other} has {second.size(0)}, but both must have as many."
        )
    if (place := _first(first & second)) is not None:
        raise InputError(f"data.{one} and data.{other} both have node {place[-1]}, but must not overlap.")


def _first(wrong: Tensor) -> list[int] | None:
    """The index of the first True, or None."""
    if not bool(wrong.any()):
        return None
    flat = int(wrong.reshape(-1).to(torch.uint8).argmax())
    return [int(i) for i in torch.unravel_index(torch.tensor(flat), wrong.shape)]


def check_embedding(embedding: Tensor) -> None:
    """An embedding is a floating-point tensor [..., n, d]."""
    if embedding.dim() < 2 or not embedding.is_floating_point():
        found = f"{list(embedding.shape)} of {embedding.dtype}"
        raise InputError(f"embedding is {found}; it should be a floating-point tensor [..., nodes, columns].")


def checked_edges(edge_index: Tensor, num_nodes: int) -> Tensor:
    """The edge list as int64, once it is [2, E] and names no node outside 0 … num_nodes − 1."""
    integral = edge_index.layout == torch.strided and not (edge_index.is_floating_point() or edge_index.is_complex())
    if not integral or edge_index.dtype == torch.bool or edge_index.dim() != 2 or edge_index.shape[0] != 2:
        found = f"{list(edge_index.shape)} of {edge_index.dtype}"
        raise InputError(f"edge_index is {found}; it should be an integer tensor [2, edges].")
    if edge_index.numel() > 0:
        low, high = (int(end) for end in edge_index.aminmax())
        if low < 0 or high >= num_nodes:
            wrong = low if low < 0 else high
            raise InputError(f"edge_index names node {wrong}, but the nodes are 0 to {num_nodes - 1}.")
    return edge_index.long()
