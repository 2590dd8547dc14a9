"""Singular values of weight matrices: how feature transformation changes the energy (Eq. 6)."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from graphpartner.system.errors import InputError

Weights = nn.Module | Mapping[str, Tensor] | Tensor


def singular_values(weights: Weights) -> dict[str, Tensor]:
    """Compute the singular values of every weight matrix.

    Args:
        weights: a module (its parameters with two dimensions count), a mapping from names to matrices, or one matrix
            (named "weight"). Matrices may carry leading replica dimensions: [..., rows, columns].

    Returns:
        By name, the min(rows, columns) singular values [..., k], largest first, in float64, without gradient.
    """
    return {name: torch.linalg.svdvals(matrix.detach().double()) for name, matrix in _matrices(weights).items()}


def squared_extremes(weights: Weights) -> dict[str, tuple[Tensor, Tensor]]:
    """Compute (s_min, s_max) by name: the squares of the smallest and the largest singular value, as in Eq. 6."""
    return {name: (s[..., -1].square(), s[..., 0].square()) for name, s in singular_values(weights).items()}


def _matrices(weights: Weights) -> dict[str, Tensor]:
    if isinstance(weights, nn.Module):
        parameters = dict(weights.named_parameters())
        for name, parameter in parameters.items():
            if is_lazy(parameter):
                raise InputError(f"weights = {name} without a shape: must be initialised; run the model once")
        return {name: parameter for name, parameter in parameters.items() if parameter.dim() == 2}
    named = {"weight": weights} if isinstance(weights, Tensor) else dict(weights)
    for name, matrix in named.items():
        if matrix.dim() < 2 or not matrix.is_floating_point() or 0 in matrix.shape:
            found = f"{name} of shape {list(matrix.shape)}, {matrix.dtype}"
            raise InputError(f"weights = {found}: must be floating-point [..., rows, columns]")
    return named
