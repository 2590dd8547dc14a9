"""Graphs that are in memory already: NetworkX graphs, SciPy matrices and PyTorch Geometric's ``Data``, as tables."""

import sys
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from graphpartner.graph.checks import MASKS, check_edges, check_features, check_labels
from graphpartner.graph.record import GraphRecord, as_record
from graphpartner.system.errors import InputError
from graphpartner.tables.edges import Ends
from graphpartner.tables.problems import Problems
from graphpartner.tables.read_table import Table, frame_table, read_table, row_numbers
from graphpartner.tables.text_table import ReadContext


@dataclass
class Sources:
    """The nodes and edges that the user gave, as tables; edges between positions have no table.

    Attributes:
        nodes: the node table.
        edges: the edge table, if there is one.
        ends: the positions of the ends of every edge, if there is no table of them.
        weight: the weights that belong to ``ends``.
        edge_name: the name of the edges in messages.
        roles: columns whose role is known, by role: id, label, split, source, target, weight.
    """

    nodes: Table
    edges: Table | None
    ends: Ends | None
    weight: NDArray[np.float64] | None
    edge_name: str
    roles: dict[str, str]


def collect_sources(nodes: Any, edges: Any, context: ReadContext, problems: Problems, notes: list[str]) -> Sources:
    """Return tables of whatever the user gave as nodes and edges.

    Raises:
        InputError: a table cannot be read, or an object does not fit.
    """
    if _is_data(nodes):
        if edges is not None:
            raise InputError(
                f"edges = a {type(edges).__name__}: must be None where nodes is a PyTorch Geometric Data, "
                "which has edges of its own"
            )
        return _from_data(as_record(nodes))
    roles: dict[str, str] = {}
    if _is_networkx(nodes):
        frame, roles["id"] = _networkx_nodes(nodes)
        table = frame_table(frame, "the NetworkX graph's nodes", problems)
        edges = nodes if edges is None else edges
    else:
        table = read_table(nodes, "node", problems, context)
    edge_table, ends, weight, name = None, None, None, "no edges"
    if sparse.issparse(edges):
        name = "the matrix"
        ends, weight = _from_matrix(edges, None if table is None else len(table))
    elif _is_networkx(edges):
        name = "the NetworkX graph's edges"
        if edges.is_directed():
            notes.append("the NetworkX graph: directed; its edges are read as undirected.")
        edge_table = Table(name, _networkx_edges(edges), row_numbers(name))
        roles |= {column: column for column in edge_table.columns}
    elif edges is not None:
        edge_table = read_table(edges, "edge", problems, context)
        name = edge_table.name if edge_table else ""
    problems.stop_if_any()
    return Sources(cast(Table, table), edge_table, ends, weight, name, roles)  # a table not read is a problem


def _is_data(nodes: Any) -> bool:
    """Return whether this is a PyTorch Geometric ``Data``, without importing the library."""
    module = sys.modules.get("torch_geometric.data")
    return module is not None and isinstance(nodes, module.Data)


def _is_networkx(graph: Any) -> bool:
    return all(hasattr(graph, name) for name in ("edges", "is_directed")) and callable(getattr(graph, "nodes", None))


def _networkx_nodes(graph: Any) -> tuple[Any, str]:
    """Return node attributes as columns, and the name of the column with the nodes themselves."""
    import pandas as pd

    attributes = list(dict.fromkeys(name for _, known in graph.nodes(data=True) for name in known))
    id = next(name for name in ("id", "node", "node_id", "the node") if name not in attributes)
    columns: dict[Any, Any] = {id: _series(list(graph.nodes))}
    columns |= {name: pd.Series([known.get(name) for _, known in graph.nodes(data=True)]) for name in attributes}
    return pd.DataFrame(columns), id


def _networkx_edges(graph: Any) -> Any:
    """Return source and target, and the weight if any edge has one; an edge without counts 1, as in NetworkX."""
    import pandas as pd

    edges = list(graph.edges(data="weight"))
    sources, targets, weights = ([edge[part] for edge in edges] for part in range(3))
    frame = pd.DataFrame({"source": _series(sources), "target": _series(targets)})
    if any(weight is not None for weight in weights):
        frame["weight"] = pd.Series([1.0 if weight is None else weight for weight in weights])
    return frame


def _series(nodes: list[Any]) -> Any:
    """Return nodes as a pandas column: integers stay integers, everything else keeps its own type."""
    import pandas as pd

    integers = bool(nodes) and all(type(node) is int and abs(node) < 2**62 for node in nodes)
    return pd.Series(nodes, dtype=np.int64 if integers else object)


def _from_matrix(matrix: Any, num_nodes: int | None) -> tuple[Ends, NDArray[np.float64]]:
    if matrix.shape[0] != matrix.shape[1] or num_nodes not in (None, matrix.shape[0]):
        size = f"{num_nodes} × {num_nodes}, one row per node in the order of the table"
        raise InputError(
            f"edges = a {matrix.shape[0]} × {matrix.shape[1]} matrix: must be {'square' if num_nodes is None else size}"
        )
    entries = sparse.coo_array(matrix)
    weight = np.asarray(entries.data, np.float64)
    wrong = np.flatnonzero(~np.isfinite(weight) | (weight < 0))
    if wrong.size:
        i, j = entries.row[wrong[0]], entries.col[wrong[0]]
        raise InputError(f"edges[{i}, {j}] = {weight[wrong[0]]}: must be finite and not negative")
    return (entries.col.astype(np.int64), entries.row.astype(np.int64)), weight


def _from_data(data: GraphRecord) -> Sources:
    """Return features as columns x[0], x[1], …; y as the label; three masks as a split."""
    import pandas as pd

    if data.get("edge_index") is None:
        raise InputError("data.edge_index = None: must be a tensor [2, edges]")
    n = data.num_nodes
    check_edges(data.edge_index, n, data.get("edge_weight"))
    frame, roles = pd.DataFrame(index=range(n)), {}
    if data.get("x") is not None:
        check_features(data.x)
        x = data.x.detach().cpu().to_dense().numpy()
        frame = pd.DataFrame(x, columns=[f"x[{place}]" for place in range(x.shape[1])], copy=False)
    if data.get("y") is not None:
        y = data.y.detach().cpu()
        check_labels(y, n)
        frame = frame.assign(y=np.where(y >= 0, y.numpy().astype(np.float64), np.nan))
        roles["label"] = "y"
    masks = [name for name in MASKS if data.get(name) is not None]
    if masks:
        split = np.full(n, "", dtype=object)
        for name in masks:
            if data[name].shape != (n,):
                raise InputError(f"data.{name} = a tensor {list(data[name].shape)}: must be [{n}], one split")
            split[data[name].cpu().numpy()] = name.removesuffix("_mask")
        frame, roles["split"] = frame.assign(split=split), "split"
    source, target = data.edge_index.cpu().numpy().astype(np.int64)
    weight = data.get("edge_weight")
    values = None if weight is None else weight.detach().cpu().numpy().astype(np.float64)
    name = "the PyTorch Geometric Data"
    return Sources(Table(name, frame, row_numbers(name)), None, (source, target), values, name, roles)
