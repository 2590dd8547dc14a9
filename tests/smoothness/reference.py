"""Slow, dense float64 versions of every formula, and random graphs to compare them on."""

import numpy as np
import torch
from hypothesis import strategies as st
from torch import Tensor

DrawnGraph = tuple[Tensor, int, np.random.Generator]  # edges, number of nodes, and the generator to go on with


def dense_adjacency(edge_index: Tensor, num_nodes: int) -> np.ndarray:
    A = np.zeros((num_nodes, num_nodes))
    for source, target in edge_index.T.tolist():
        if source != target:
            A[source, target] = A[target, source] = 1.0
    return A


def dense_propagation(edge_index: Tensor, num_nodes: int) -> np.ndarray:
    A = dense_adjacency(edge_index, num_nodes) + np.eye(num_nodes)
    root = np.sqrt(A.sum(axis=1))
    return A / root[:, None] / root[None, :]


def dense_energy(embedding: np.ndarray, edge_index: Tensor) -> float:
    laplacian = np.eye(len(embedding)) - dense_propagation(edge_index, len(embedding))
    return float(np.trace(embedding.T @ laplacian @ embedding))


def floyd_warshall(edge_index: Tensor, num_nodes: int) -> np.ndarray:
    distance = np.where(dense_adjacency(edge_index, num_nodes) > 0, 1.0, np.inf)
    np.fill_diagonal(distance, 0.0)
    for k in range(num_nodes):
        distance = np.minimum(distance, distance[:, k, None] + distance[None, k, :])
    return distance


def dense_mad(embedding: np.ndarray, mask: np.ndarray) -> float:
    means = []
    for i in range(len(embedding)):
        row = []
        for j in range(len(embedding)):
            lengths = np.linalg.norm(embedding[i]) * np.linalg.norm(embedding[j])
            if mask[i, j] and i != j and lengths > 0:
                row.append(1.0 - embedding[i] @ embedding[j] / lengths)
        if row:
            means.append(np.mean(row))
    return float(np.mean(means)) if means else float("nan")


def dense_mad_gap(embedding: np.ndarray, edge_index: Tensor, near: int, remote: int) -> float:
    hops = floyd_warshall(edge_index, len(embedding))
    return dense_mad(embedding, hops >= remote) - dense_mad(embedding, (hops >= 1) & (hops <= near))


def random_graph(rng: np.random.Generator, num_nodes: int, density: float) -> Tensor:
    """Both directions or one, with a few duplicates and self-loops; at least one edge between two nodes."""
    mask = rng.random((num_nodes, num_nodes)) < density
    edges = np.argwhere(mask).T
    loops = np.tile(rng.integers(0, num_nodes, 2), (2, 1))
    edges = np.concatenate([np.array([[0], [1]]), edges, edges[:, :3], loops], axis=1)
    return torch.from_numpy(edges)


@st.composite
def graphs(draw: st.DrawFn) -> DrawnGraph:
    num_nodes = draw(st.integers(2, 14))
    density = draw(st.sampled_from([0.0, 0.05, 0.1, 0.2, 0.5, 1.0]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return random_graph(rng, num_nodes, density), num_nodes, rng
