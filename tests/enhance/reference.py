"""The join written for clarity, not speed: dense, pair by pair, with fractions for whole numbers; and every kernel."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import torch
from torch import Tensor

from graphpartner.enhance.features import read_features
from graphpartner.enhance.join import run_join
from graphpartner.enhance.plan import choose_kernel
from graphpartner.enhance.rule import Rule
from graphpartner.graph.adjacency import adjacency, is_symmetric

KERNELS = ["binary/bitsets", "binary/walks", "weighted/bitsets", "weighted/walks", "dense/products", "scipy/products"]


def reachable(edges: np.ndarray, n: int, k: int) -> np.ndarray:
    """Return [n, n], true at [i, j] where j reaches i within k steps."""
    step = np.eye(n, dtype=bool)
    step[edges[1], edges[0]] = True
    near = np.eye(n, dtype=bool)
    for _ in range(k):
        near = (near.astype(int) @ step.astype(int)) > 0
    return near


def slow_attribute_graph(x: np.ndarray, edges: np.ndarray, k: int, threshold: float) -> np.ndarray:
    """Return A_attr as a dense matrix, zero where no pair is kept."""
    n = x.shape[0]
    near = reachable(edges, n, k)
    result = np.eye(n)
    whole = bool((x == np.rint(x)).all())
    t = Fraction(repr(threshold))
    for i in range(n):
        for j in range(n):
            if i == j or not near[i, j] or not x[i].any() or not x[j].any():
                continue
            if whole:
                left, right = [int(v) for v in x[i]], [int(v) for v in x[j]]
                dot = sum(a * b for a, b in zip(left, right, strict=True))
                squares = sum(a * a for a in left) * sum(b * b for b in right)
                keep = dot >= 0 and Fraction(dot) ** 2 >= t**2 * squares
                cosine = dot / np.sqrt(float(squares))
            else:
                cosine = float(x[i] @ x[j]) / float(np.sqrt((x[i] @ x[i]) * (x[j] @ x[j])))
                keep = cosine >= threshold * (1 - 1e-12)
            if keep:
                result[i, j] = cosine
    return result


def join_by(
    name: str, x: Tensor, edge_index: Tensor, k: int, threshold: float, memory: int = 10**8, top: int | None = None
) -> Tensor:
    """Return the attribute graph by the kernel of this name, whichever the plan would choose."""
    features = read_features(x)
    kernel, reach = name.split("/")
    if kernel == "binary" and features.kind != "binary":
        kernel = "weighted"
    A = adjacency(edge_index, features.num_nodes)
    half = kernel in ("binary", "weighted") and top is None and is_symmetric(A)
    choice = choose_kernel(features, A, k, torch.device("cpu"), memory)
    choice = replace(choice, kernel=kernel, reach=reach, symmetric=half)
    return run_join(Rule(features, threshold), A, k, choice, memory=memory, limit=10**9, top=top)
