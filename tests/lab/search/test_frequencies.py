from types import SimpleNamespace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data

from graphpartner.lab.search.judgement import class_frequencies


def answers(y, mistaken, random):
    """One answer a node: class j with probability mistaken[y, j]."""
    return torch.multinomial(mistaken[y], 1, generator=random).squeeze(-1)


@settings(max_examples=25)
@given(st.lists(st.integers(1, 8), min_size=3, max_size=3), st.integers(0, 1000))
def test_frequencies_are_found_through_the_mistakes(shares, seed):
    """A fifth of each class is taken for another one; validation is balanced, the graph is not."""
    random = torch.Generator().manual_seed(seed)
    pi = torch.tensor(shares) / sum(shares)
    n, runs = 6_000, 4
    y = torch.multinomial(pi, n, replacement=True, generator=random)
    mistaken = torch.tensor([[0.8, 0.2, 0.0], [0.0, 0.8, 0.2], [0.2, 0.0, 0.8]])
    val = torch.zeros(runs, n, dtype=torch.bool)
    for run in val:
        for c in range(3):
            members = (y == c).nonzero().squeeze(-1)
            run[members[torch.randperm(members.numel(), generator=random)[:150]]] = True
    said = torch.stack([answers(y, mistaken, random) for _ in range(runs)])
    logits = torch.nn.functional.one_hot(said, 3).float()
    seen = Data(y=torch.where(val.any(0), y, -1), train_mask=torch.zeros_like(val), judge_mask=val)
    found = class_frequencies(SimpleNamespace(logits=logits), seen)
    assert float(found.sum()) == pytest.approx(1)
    assert torch.allclose(found, pi.double(), atol=0.06)
