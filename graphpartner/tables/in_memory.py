"""Graphs that are in memory already: NetworkX graphs, SciPy matrices and PyTorch Geometric's ``Data``, as tables."""

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from graphpartner.graph.checks import MASKS, check_edges, check_features, check_labels
from graphpartner.graph.record import GraphRecord, as_record
from graphpartner.system.errors import InputError
from graphpartner.tables.edges import Ends
from graphpartner.tables.problems import Problems
from graphpartner.tables.reading import Reading
from graphpartner.tables.table import Table, frame_table, read_table, row_numbers


@dataclass
class Sources:
    """What the user gave, as tables; edges whose ends are positions already have no table.

    Attributes:
        nodes: the node table; None if it could not be read.
        edges: the edge table, if there is one.
        ends: the positions of the ends of every edge, if there is no table of them.
        weight: the weights that go with ``ends``.
        edge_name: what messages call the edges.
        known: columns whose meaning is known, by option: id, label, split, source, target, weight.
    """

    nodes: Table | None
    edges: Table | None
    ends: Ends | None
    weight: NDArray[np.float64] | None
    edge_name: str
    known: dict[str, str]


def collect_sources(nodes: Any, edges: Any, reading: Reading, problems: Problems, notes: list[str]) -> Sources:
    """Tables from whatever the user gave as nodes and edges."""
    if _is_data(nodes):
        if edges is not None:
            raise InputError("edges must be None where nodes is a PyTorch Geometric Data, which has its own.")
        return _from_data(as_record(nodes))
    known: dict[str, str] = {}
    if _is_networkx(nodes):
        frame, known["id"] = _networkx_nodes(nodes)
        table = frame_table(frame, "the NetworkX graph's nodes", problems)
        edges = nodes if edges is None else edges
    else:
        table = read_table(nodes, "node", problems, reading)
    if edges is None:
        return Sources(table, None, None, None, "no edges", known)
    if sparse.issparse(edges):
        return Sources(table, None, *_from_matrix(edges, None if table is None else len(table)), "the matrix", known)
    if not _is_networkx(edges):
        edge_table = read_table(edges, "edge", problems, reading)
        return Sources(table, edge_table, None, None, edge_table.name if edge_table else "", known)
    if edges.is_directed():
        notes.append("the NetworkX graph: directed; its edges are read as undirected.")
    frame = _networkx_edges(edges)
    name = "the NetworkX graph's edges"
    known |= {column: column for column in frame.columns}
    return Sources(table, Table(name, frame, row_numbers(name)), None, None, name, known)


def _is_data(nodes: Any) -> bool:
    """Whether this is a PyTorch Geometric ``Data``; nothing is where that was never imported."""
    module = sys.modules.get("torch_geometric.data")
    return module is not None and isinstance(nodes, module.Data)


def _is_networkx(graph: Any) -> bool:
    return (
        hasattr(graph, "nodes") and hasattr(graph, "edges") and hasattr(graph, "is_directed") and callable(graph.nodes)
    )


def _networkx_nodes(graph: Any) -> tuple[Any, str]:
    """Node attributes as columns, and the name of the column with the nodes themselves."""
    import pandas as pd

    attributes = list(dict.fromkeys(name for _, known in graph.nodes(data=True) for name in known))
    id = next(name for name in ("id", "node", "node_id", "the node") if name not in attributes)
    columns: dict[Any, Any] = {id: pd.Series(list(graph.nodes), dtype=_dtype(list(graph.nodes)))}
    columns |= {name: pd.Series([known.get(name) for _, known in graph.nodes(data=True)]) for name in attributes}
    return pd.DataFrame(columns), id


def _networkx_edges(graph: Any) -> Any:
    """Source and target, and the weight if any edge has one; an edge without counts 1, as in NetworkX."""
    import pandas as pd

    edges = list(graph.edges(data="weight"))
    sources, targets, weights = ([edge[part] for edge in edges] for part in range(3))
    frame = pd.DataFrame(
        {
            "source": pd.Series(sources, dtype=_dtype(sources)),
            "target": pd.Series(targets, dtype=_dtype(targets)),
        }
    )
    if any(weight is not None for weight in weights):
        frame["weight"] = pd.Series([1.0 if weight is None else weight for weight in weights])
    return frame


def _dtype(values: list[Any]) -> Any:
    """Integers stay integers; everything else keeps its own type."""
    return np.int64 if values and all(type(value) is int and abs(value) < 2**62 for value in values) else object


def _from_matrix(matrix: Any, num_nodes: int | None) -> tuple[Ends, NDArray[np.float64]]:
    if matrix.shape[0] != matrix.shape[1] or num_nodes not in (None, matrix.shape[0]):
        rows = "square" if num_nodes is None else f"{num_nodes} × {num_nodes}, one row a node in the order of the table"
        raise InputError(f"edges is a matrix of {matrix.shape[0]} × {matrix.shape[1]}, but must be {rows}.")
    entries = sparse.coo_array(matrix)
    weight = np.asarray(entries.data, np.float64)
    wrong = np.flatnonzero(~np.isfinite(weight) | (weight < 0))
    if wrong.size:
        i, j = entries.row[wrong[0]], entries.col[wrong[0]]
        raise InputError(f"edges is {weight[wrong[0]]} at ({i}, {j}), but must be finite and not negative.")
    return (entries.col.astype(np.int64), entries.row.astype(np.int64)), weight


def _from_data(data: GraphRecord) -> Sources:
    """Features as columns x[0], x[1], …; y as the label; three masks as a split."""
    import pandas as pd

    if data.get("edge_index") is None:
        raise InputError("The PyTorch Geometric Data has no edge_index; give one, [2, edges].")
    n = data.num_nodes
    check_edges(data.edge_index, n, data.get("edge_weight"))
    frame, known = pd.DataFrame(index=range(n)), {}
    if data.get("x") is not None:
        check_features(data.x)
        x = data.x.detach().cpu().to_dense().numpy()
        frame = pd.DataFrame(x, columns=[f"x[{place}]" for place in range(x.shape[1])], copy=False)
    if data.get("y") is not None:
        y = data.y.detach().cpu()
        check_labels(y, n)
        frame = frame.assign(y=np.where(y >= 0, y.numpy().astype(np.float64), np.nan))
        known["label"] = "y"
    masks = [name for name in MASKS if data.get(name) is not None]
    if masks:
        split = np.full(n, "", dtype=object)
        for name in masks:
            if data[name].shape != (n,):
                raise InputError(f"data.{name} has shape {tuple(data[name].shape)}, but must be ({n},): one split.")
            split[data[name].cpu().numpy()] = name.removesuffix("_mask")
        frame, known["split"] = frame.assign(split=split), "split"
    source, target = data.edge_index.cpu().numpy().astype(np.int64)
    weight = data.get("edge_weight")
    values = None if weight is None else weight.detach().cpu().numpy().astype(np.float64)
    name = "the PyTorch Geometric Data"
    return Sources(Table(name, frame, row_numbers(name)), None, (source, target), values, name, known)
