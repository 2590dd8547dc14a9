"""Features as the model sees them."""

import torch
from torch import Tensor

from graphpartner.graph.adjacency import with_values


def row_normalized(x: Tensor) -> Tensor:
    """Every row of x, dense or sparse CSR, divided by its sum; a row that sums to zero stays as it is."""
    if x.layout == torch.strided:
        total = x.sum(1, keepdim=True)
        return x / total.masked_fill(total == 0, 1)
    row = torch.repeat_interleave(torch.arange(x.shape[0], device=x.device), x.crow_indices().diff())
    total = x.values().new_zeros(x.shape[0]).index_add_(0, row, x.values())
    return with_values(x, x.values() / total.masked_fill(total == 0, 1)[row])
