"""The join as slowly and as plainly as it can be written: dense, one pair at a time, fractions for whole numbers."""

from fractions import Fraction

import numpy as np


def reachable(edges: np.ndarray, n: int, k: int) -> np.ndarray:
    """[i, j] is true where j reaches i within k steps."""
    step = np.eye(n, dtype=bool)
    step[edges[1], edges[0]] = True
    near = np.eye(n, dtype=bool)
    for _ in range(k):
        near = (near.astype(int) @ step.astype(int)) > 0
    return near


def attribute_oracle(x: np.ndarray, edges: np.ndarray, k: int, threshold: float) -> np.ndarray:
    """A_attr, dense, zero where no pair is kept."""
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
