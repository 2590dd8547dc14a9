"""Pairs at the threshold: w_ij ≥ t (Eq. 7), decided exactly.

If every feature is a whole number, the decision is made in whole numbers: t is the fraction p/q of its decimal notation
(0.4 is 2/5, not the nearest binary number), and a pair is kept iff

    ⟨x_i, x_j⟩ ≥ 0   and   q² ⟨x_i, x_j⟩² ≥ p² ‖x_i‖² ‖x_j‖².

For other features the cosine is computed in float64 and the pair kept iff w_ij ≥ t (1 − 1e-12). So pairs exactly at t
are kept, whichever kernel finds them. A zero row has no cosine with any other row, and keeps only its self pair.
"""

from fractions import Fraction

import numpy as np

from graphpartner.enhance.features import EXACT, Features

TOLERANCE = 1e-12
NEAR = 1e-9  # distance from t, relative to it, within which float64 is not trusted for whole numbers
SAFE = 2**62  # int64 products up to here cannot overflow


class Rule:
    """The decision w_ij ≥ t for one feature matrix and one threshold."""

    def __init__(self, features: Features, threshold: float) -> None:
        self.features = features
        self.threshold = threshold
        fraction = Fraction(repr(threshold))
        self.p, self.q = fraction.numerator, fraction.denominator
        self.exact = features.kind != "real"
        self.margin = max(NEAR * threshold, 1e-12)
        largest = int(features.squared.max(initial=0.0))
        # by Cauchy–Schwarz |⟨x_i, x_j⟩| is at most the largest squared norm
        self._dots_exact = largest < EXACT
        self._fits_int64 = self._dots_exact and max(self.p, self.q) ** 2 * max(1, largest) ** 2 < SAFE

    def keep(self, dot: np.ndarray, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """Return a mask of the pairs (i, j) with these float64 products that reach the threshold."""
        scale = np.sqrt(self.features.squared[i] * self.features.squared[j])
        if not self.exact:
            return (dot >= self.threshold * (1 - TOLERANCE) * scale) & (scale > 0)
        clear = dot >= (self.threshold + self.margin) * scale
        near = ~clear & (dot >= (self.threshold - self.margin) * scale)
        clear &= scale > 0
        where = np.flatnonzero(near & (scale > 0))
        if where.size:
            clear[where] = self._settle(dot[where], i[where], j[where])
        return clear

    def _settle(self, dot: np.ndarray, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        squared = self.features.squared
        if self._fits_int64:
            left = self.q**2 * dot.astype(np.int64) ** 2
            return left >= self.p**2 * (squared[i].astype(np.int64) * squared[j].astype(np.int64))
        return np.array([self._settle_one(*pair) for pair in zip(dot, i, j, strict=True)], dtype=bool)

    def _settle_one(self, dot: float, i: int, j: int) -> bool:
        """Decide one pair in Python's unbounded integers."""
        if self._dots_exact:
            product, n_i, n_j = int(dot), int(self.features.squared[i]), int(self.features.squared[j])
        else:
            left, right = self._row(i), self._row(j)
            product = sum(value * right.get(column, 0) for column, value in left.items())
            n_i, n_j = sum(v * v for v in left.values()), sum(v * v for v in right.values())
        return product >= 0 and self.q**2 * product**2 >= self.p**2 * n_i * n_j

    def _row(self, i: int) -> dict[int, int]:
        X = self.features.matrix
        entries = slice(X.indptr[i], X.indptr[i + 1])
        return {int(c): int(v) for c, v in zip(X.indices[entries], X.data[entries], strict=True)}


def least_common(counts: np.ndarray, threshold: float) -> np.ndarray:
    """Return the minimum number of common features with which binary rows reach t, for every two sizes in ``counts``.

    Entry (a, b) is the smallest whole c with q² c² ≥ p² counts[a] counts[b].
    """
    fraction = Fraction(repr(threshold))
    p, q = fraction.numerator, fraction.denominator
    product = np.multiply.outer(counts, counts).astype(np.int64)
    root = threshold * np.sqrt(product.astype(np.float64))
    least = np.ceil(root).astype(np.int64)
    nearest = np.rint(root).astype(np.int64)
    ties = np.nonzero(np.abs(root - nearest) <= NEAR * np.maximum(root, 1.0))
    c, ab = nearest[ties], product[ties]
    if max(p, q) ** 2 * max(1, int(product.max(initial=0))) < SAFE:
        enough = q**2 * c**2 >= p**2 * ab
    else:
        enough = np.array([q**2 * int(x) ** 2 >= p**2 * int(y) for x, y in zip(c, ab, strict=True)], dtype=bool)
    least[ties] = np.where(enough, c, c + 1)
    return least.astype(np.int32)
