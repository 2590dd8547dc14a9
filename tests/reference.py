"""The paper's equations as slowly as they can be written: dense, float64, one node at a time; and random problems."""

from dataclasses import dataclass

import numpy as np
import torch
from hypothesis import strategies as st
from torch import Tensor

Array = np.ndarray


def to_csr(matrix: Array, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.from_numpy(matrix).to(dtype).to_sparse_csr()


def softmax(row: Array) -> Array:
    e = np.exp(row - row.max())
    return e / e.sum()


def power(A: Array, H: Array, steps: int) -> Array:
    for _ in range(steps):
        H = A @ H
    return H


@dataclass
class DenseOutput:
    logits: Array
    mlp_logits: Array
    gcn_logits: Array
    initial: Array
    smoothed: Array


def dense_forward(X: Array, W1: Array, W2: Array, A: Array, steps: int, alpha: float) -> DenseOutput:
    """Eqs. 10 to 14."""
    initial = np.maximum(X @ W1, 0)
    smoothed = power(A, initial, steps)
    mlp, gcn = initial @ W2, smoothed @ W2
    return DenseOutput(alpha * mlp + (1 - alpha) * gcn, mlp, gcn, initial, smoothed)


def dense_cross_entropy(logits: Array, index: Array, target: Array, weight: Array | None = None) -> float:
    """Eq. 15, as a mean."""
    share = np.full(len(index), 1 / len(index)) if weight is None else weight
    return float(
        sum(-w * np.log(softmax(logits[i])[c]) for i, c, w in zip(index, target, share, strict=True)),
    )


def dense_rectification(mlp: Array, gcn: Array, temperature: float) -> float:
    """Eq. 16."""
    n, classes = mlp.shape
    total = 0.0
    for i in range(n):
        p, q = softmax(mlp[i] / temperature), softmax(gcn[i] / temperature)
        for j in range(classes):
            total += p[j] * (np.log(p[j]) - np.log(q[j]))
    return total / n / classes * temperature**2


def dense_score(h: Array, g: Array, negatives: Array, score: str, A: Array | None = None) -> float:
    """Eq. 18, every pair on its own; A: neighbour positives, weights of an adjacency whose diagonal is ignored."""

    def s(a: Array, b: Array) -> float:
        if score == "cosine":
            lengths = np.linalg.norm(a) * np.linalg.norm(b)
            return float(a @ b / lengths) if lengths else 0.0
        return float(a @ b)

    n, total = len(h), 0.0
    for i in range(n):
        positive = s(h[i], g[i])
        if A is not None:
            degree = sum(A[i, j] for j in range(n) if j != i)
            pairs = [A[i, j] * s(h[i], g[j]) for j in range(n) if j != i and A[i, j]]
            positive = sum(pairs) / degree if degree else 0.0
        against = [s(h[i], g[k]) for k in negatives]
        if score == "softmax":
            share = softmax(np.array([positive, *against]))
            positive, against = share[0], list(share[1:])
        total += positive - sum(against) / len(against)
    return total / n


def dense_consistency(h: Array, g: Array, margin: float, negatives: Array, score: str, A: Array | None = None) -> float:
    """Eq. 17."""
    return max(margin - dense_score(h, g, negatives, score, A), 0.0)


@dataclass
class RandomProblem:
    """X [n, d], A_en [n, n] (not symmetric), an undirected adjacency with isolated nodes, R pairs of weights."""

    X: Array
    A: Array
    neighbors: Array
    weight1: Array
    weight2: Array
    steps: int
    rng: np.random.Generator

    @property
    def n(self) -> int:
        return len(self.X)


@st.composite
def problems(draw: st.DrawFn, replicas: int = 2, max_nodes: int = 12, hidden: int | None = None) -> RandomProblem:
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, d = draw(st.integers(2, max_nodes)), draw(st.integers(1, 6))
    h, classes = hidden or draw(st.sampled_from([1, 3, 40])), draw(st.integers(2, 5))
    density = draw(st.sampled_from([0.1, 0.3, 1.0]))
    A = rng.random((n, n)) * (rng.random((n, n)) < density)
    A = A / np.maximum(A.sum(1, keepdims=True), 1)
    neighbors = np.triu(rng.random((n, n)) < density, 1).astype(float)
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.6)
    shapes = ((replicas, d, h), (replicas, h, classes))
    weight1, weight2 = (rng.standard_normal(shape) / np.sqrt(shape[1]) for shape in shapes)
    steps = draw(st.sampled_from([0, 1, 2, 5]))
    return RandomProblem(X, A, neighbors + neighbors.T, weight1, weight2, steps, rng)


def edges_of(A: Array) -> Tensor:
    """Sources above targets; row i of A receives."""
    target, source = np.nonzero(A)
    return torch.from_numpy(np.stack([source, target]))


def assert_near(
    actual: Tensor, expected: Array | Tensor, share: float = 1e-5, sizes: Array | Tensor | None = None
) -> None:
    """Within a share of the largest entry: of the same computed from absolute values where random terms may cancel.

    Rounding is bounded by a share of the terms, not of a sum that happens to be near zero.
    """
    expected = torch.as_tensor(expected)
    assert actual.shape == expected.shape
    scale = max(torch.as_tensor(expected if sizes is None else sizes).abs().max().item(), 1e-30)
    worst = (actual.detach().double() - expected.double()).abs().max().item()
    assert worst <= share * scale, f"off by {worst / scale:.2e} of the largest entry"
