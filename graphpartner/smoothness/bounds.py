"""Bounds of the Dirichlet energy: of layers (Eq. 6), and of the MLP partner's mixture (Propositions 1 and 2).

The bounds rest on three eigenvalues of L̃ = I − P: λ₀, λ₁ and λ_max. L̃ has one eigenvalue zero per connected component,
isolated nodes included, and no other: components are counted on the graph, so "non-zero" needs no tolerance. Every
eigenvalue lies in [0, 2).

Each result has the bounds as published and bounds that hold. They differ because every eigenvalue μ of P except the 1
of each component lies in [1 − λ_max, 1 − λ₀], whose negative end can be the larger one in size:

- where the paper's upper bounds have |1 − λ₀|, q = max(|1 − λ₀|, |1 − λ_max|) is needed (K₃,₃: λ₀ = ¾, λ_max = 3/2);
- Proposition 1 and the lower bound of Proposition 2 need μ^l ≥ 0, that is an even l;
- the lower bound of Eq. 6 needs the smallest eigenvalue of W Wᵀ, which is 0, not s_min, when W has more rows than
  columns: its column space is too small to preserve all of H.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from scipy import sparse
from scipy.sparse import csgraph
from scipy.sparse import linalg as sparse_linalg
from torch import Tensor

from graphpartner.graph.adjacency import simple_edges, with_loops
from graphpartner.graph.checks import check_edges, check_embedding
from graphpartner.smoothness.energy import dirichlet_energy
from graphpartner.smoothness.singular_values import squared_extremes
from graphpartner.system.errors import InputError

DENSE_UP_TO = 5_000  # nodes


@dataclass(frozen=True)
class LaplacianExtremes:
    """Eigenvalues of L̃ = I − D̃^-½ Ã D̃^-½.

    A value that could not be computed is named in ``unknown`` and replaced by the end of its range that keeps every
    bound of this module valid, if weak: λ₀ = 0, λ₁ = 1, λ_max = 2.
    """

    lambda_0: float  # the smallest above zero
    lambda_1: float  # of those above zero, the one closest to 1
    lambda_max: float
    unknown: tuple[str, ...] = ()

    @property
    def q(self) -> float:
        """max(|1 − λ₀|, |1 − λ_max|): the largest factor by which one step scales what is not yet smooth."""
        return max(abs(1.0 - self.lambda_0), abs(1.0 - self.lambda_max))


def laplacian_extremes(edge_index: Tensor, num_nodes: int) -> LaplacianExtremes:
    """Compute λ₀, λ₁ and λ_max of the augmented normalised Laplacian of an undirected graph.

    Up to 5,000 nodes all eigenvalues are computed. Above, λ₀ and λ_max come from Lanczos iterations. λ₁ lies inside
    the spectrum, out of their reach, but it is exactly 1 if two neighbours have all other neighbours in common (two
    equal rows make P singular); without such a pair it is reported as unknown.

    Args:
        edge_index: the edges [2, E]; directions, duplicates and self-loops are ignored.
        num_nodes: n.
    """
    check_edges(edge_index, num_nodes)
    edges = simple_edges(edge_index, num_nodes)
    if edges.shape[1] == 0:  # the Laplacian is zero, without other eigenvalues
        raise InputError("edge_index has no edge between two nodes: must have at least one")
    A = with_loops(edges, num_nodes)
    root = np.sqrt(A.sum(axis=1))
    P = sparse.csr_array(sparse.diags_array(1.0 / root) @ A @ sparse.diags_array(1.0 / root))
    num_components, component = csgraph.connected_components(A, directed=False)
    if num_nodes <= DENSE_UP_TO:
        found = 1.0 - np.linalg.eigvalsh(P.toarray())[::-1][num_components:]
        closest = 1.0 if _has_twins(A) else float(found[np.abs(1.0 - found).argmin()])
        return LaplacianExtremes(float(found[0]), closest, float(found[-1]))
    smooth = sparse.csr_array((root, (np.arange(num_nodes), component)))  # the eigenvectors of eigenvalue zero
    smooth = smooth @ sparse.diags_array(1.0 / sparse_linalg.norm(smooth, axis=0))
    largest, smallest = _second_largest(P, smooth), _one_end(P, "SA")
    extremes = {
        "lambda_0": (None if largest is None else 1.0 - largest, 0.0),
        "lambda_1": (1.0 if _has_twins(A) else None, 1.0),
        "lambda_max": (None if smallest is None else 1.0 - smallest, 2.0),
    }
    values = {name: safe if value is None else value for name, (value, safe) in extremes.items()}
    return LaplacianExtremes(**values, unknown=tuple(name for name, (value, _) in extremes.items() if value is None))


def _second_largest(P: sparse.csr_array, smooth: sparse.csr_array) -> float | None:
    """Compute the largest eigenvalue of P below 1.

    The smooth vectors are projected out, which gives them eigenvalue 0. The other eigenvalues of P are never all
    negative (their sum is Σ 1/d̃_i less the number of components, and no component has a d̃ above its size), so 0 hides
    none of interest.
    """
    deflated = sparse_linalg.LinearOperator(P.shape, matvec=lambda x: P @ x - smooth @ (smooth.T @ x), dtype=np.float64)
    return _one_end(deflated, "LA")


def _one_end(P: sparse.csr_array | sparse_linalg.LinearOperator, which: str) -> float | None:
    start = np.random.default_rng(0).standard_normal(P.shape[0])
    try:
        found = sparse_linalg.eigsh(P, k=1, which=which, v0=start, ncv=64, tol=1e-9, return_eigenvectors=False)
    except sparse_linalg.ArpackNoConvergence:
        return None
    return float(found[0])


def _has_twins(A: sparse.csr_array) -> bool:
    """Return whether two rows of A + I are equal: random sums find candidates, which are then compared."""
    key = np.random.default_rng(0).integers(0, 1 << 62, A.shape[0], dtype=np.uint64)
    digest = np.add.reduceat(key[A.indices], A.indptr[:-1])
    order = np.argsort(digest, kind="stable")
    same = np.flatnonzero(digest[order[1:]] == digest[order[:-1]])
    rows = (np.sort(A.indices[A.indptr[i] : A.indptr[i + 1]]) for k in same for i in order[k : k + 2])
    return any(np.array_equal(first, second) for first, second in zip(rows, rows, strict=True))


@dataclass(frozen=True)
class EnergyBounds:
    """Energies of layers 1 … L and their bounds by the layer before; tensors are float64 [L, ...]."""

    energy: Tensor
    lower: Tensor
    upper: Tensor
    published_lower: Tensor
    published_upper: Tensor
    extremes: LaplacianExtremes


@dataclass(frozen=True)
class PartnerBounds:
    """Bounds of E(α H^φ1 + (1 − α) H^φ2), H^φ2 = P^l H^φ1; tensors are float64."""

    lower: Tensor
    upper: Tensor
    published_lower: Tensor
    published_upper: Tensor


def energy_bounds(
    embeddings: Sequence[Tensor],
    weights: Sequence[Tensor],
    edge_index: Tensor,
    *,
    extremes: LaplacianExtremes | None = None,
) -> EnergyBounds:
    r"""Compute the layer-wise bounds of Eq. 6 for a model whose layers have one weight matrix each.

    Published: (1−λ₁)² s_min E(H^(l−1)) ≤ E(H^(l)) ≤ (1−λ₀)² s_max E(H^(l−1)). Holding for H^(l) = P H^(l−1) W^(l):
    (1−λ₁)² λ_min(W Wᵀ) E(H^(l−1)) ≤ E(H^(l)) ≤ q² s_max E(H^(l−1)). With a ReLU after it the upper bound still
    holds and the lower one need not; with a bias neither need hold.

    Args:
        embeddings: H^(0) … H^(L), each [..., n, d_l].
        weights: W^(1) … W^(L), each [..., d_(l−1), d_l] or transposed, as in ``torch.nn.Linear``.
        edge_index: the edges [2, E].
        extremes: eigenvalues from `laplacian_extremes`, if they are known already.
    """
    if len(embeddings) != len(weights) + 1 or not weights:
        found = f"{len(embeddings)} embeddings and {len(weights)} weights"
        raise InputError(f"embeddings, weights = {found}: must be L + 1 embeddings, the input first, and L weights")
    for embedding in embeddings:
        check_embedding(embedding)
    extremes = extremes or laplacian_extremes(edge_index, embeddings[0].shape[-2])
    energies = [dirichlet_energy(embedding.detach().double(), edge_index) for embedding in embeddings]
    rows: list[tuple[Tensor, ...]] = []
    for layer, weight in enumerate(weights, start=1):
        wide, narrow = embeddings[layer - 1].shape[-1], embeddings[layer].shape[-1]
        if tuple(weight.shape[-2:]) not in {(wide, narrow), (narrow, wide)}:
            raise InputError(f"weights = {list(weight.shape)} at layer {layer}: must be [..., {wide}, {narrow}]")
        s_min, s_max = (s.to(energies[0].device) for s in squared_extremes(weight)["weight"])
        before, energy = energies[layer - 1], energies[layer]
        least = (1.0 - extremes.lambda_1) ** 2 * s_min * before
        most = s_max * before
        lower = torch.zeros_like(least) if wide > narrow else least
        rows.append((energy, lower, extremes.q**2 * most, least, (1.0 - extremes.lambda_0) ** 2 * most))
    energy, lower, upper, published_lower, published_upper = (torch.stack(column) for column in zip(*rows, strict=True))
    return EnergyBounds(energy, lower, upper, published_lower, published_upper, extremes)


def partner_bounds(
    alpha: float | Tensor, num_steps: int, energy_mlp: float | Tensor, extremes: LaplacianExtremes
) -> PartnerBounds:
    r"""Compute the bounds of Proposition 2 on the energy of α H^φ1 + (1 − α) P^l H^φ1, with E = E(H^φ1).

    Published: α² E ≤ · ≤ E [α² + (1−λ₀)^l]. Holding: · ≤ E [α² + (1−α²) q^l] for every l; α² E ≤ · for even l, and
    for odd l E max(0, α − (1−α) |1−λ_max|^l)² ≤ ·.

    Args:
        alpha: α in [0, 1], the share of the MLP branch.
        num_steps: l ≥ 1.
        energy_mlp: E, the energy of the MLP branch.
        extremes: eigenvalues from `laplacian_extremes`.
    """
    if num_steps < 1:
        raise InputError(f"num_steps = {num_steps}: must be at least 1")
    energy = torch.as_tensor(energy_mlp, dtype=torch.float64)
    share = torch.as_tensor(alpha, dtype=torch.float64, device=energy.device)
    if not bool(((share >= 0) & (share <= 1)).all()):
        raise InputError(f"alpha = {alpha}: must be between 0 and 1")
    published_lower = share**2 * energy
    published_upper = (share**2 + (1.0 - extremes.lambda_0) ** num_steps) * energy
    upper = (share**2 + (1.0 - share**2) * extremes.q**num_steps) * energy
    opposed = (1.0 - share) * abs(1.0 - extremes.lambda_max) ** num_steps
    lower = published_lower if num_steps % 2 == 0 else (share - opposed).clamp_min(0.0) ** 2 * energy
    return PartnerBounds(lower, upper, published_lower, published_upper)
