"""A_en^l H where every replica has its own l, as in curves over depth."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from graphpartner.model.propagation import Propagation


def to_depths(propagate: Propagation, depths: Sequence[int]) -> Callable[[Tensor], Tensor]:
    """The operator H ↦ (A_en^{l_r} H_r)_r for H [R, n, c] and l = ``depths``, differentiable in H.

    All replicas travel together in one wide product a step, and who has arrived leaves, so the cost is that of Σ_r l_r
    steps of one replica. Where every l is that of ``propagate``, it is ``propagate`` itself, whatever its plan.
    """
    if set(depths) == {propagate.num_steps}:
        return propagate
    return lambda H: _travel(propagate, H, depths)


def _travel(propagate: Propagation, H: Tensor, depths: Sequence[int]) -> Tensor:
    arrived: dict[int, Tensor] = {}
    travelling, walked = list(range(len(depths))), 0
    for depth in sorted(set(depths)):
        H = propagate.steps(H, depth - walked)
        walked = depth
        places = dict(zip(travelling, H, strict=True))
        arrived |= {replica: places[replica] for replica in travelling if depths[replica] == depth}
        travelling = [replica for replica in travelling if depths[replica] > depth]
        if travelling:
            H = _side_by_side([places[replica] for replica in travelling])
    return _side_by_side([arrived[replica] for replica in range(len(depths))])


def _side_by_side(replicas: list[Tensor]) -> Tensor:
    """[R, n, c], in memory [n, R, c], as sparse products want it."""
    return torch.stack(replicas, 1).transpose(0, 1)
