"""Folds, nodes held out, and clocks."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from graphpartner.fitting.clock import Clock, parse_budget
from graphpartner.fitting.folds import fold_parts, folds, hold_out, is_few
from graphpartner.system.errors import InputError


@given(labels=st.lists(st.integers(-1, 3), min_size=8, max_size=60), seed=st.integers(0, 9), count=st.integers(2, 6))
def test_parts_are_even_and_whole(labels: list[int], seed: int, count: int) -> None:
    y = torch.tensor(labels)
    nodes = (y >= 0).nonzero().squeeze(1)
    parts = fold_parts(y, nodes, count, seed)
    assert torch.cat(parts).sort().values.tolist() == nodes.tolist()
    sizes = [part.numel() for part in parts]
    assert max(sizes) - min(sizes) <= 1 + 3
    for c in range(4):
        of_class = [int((y[part] == c).sum()) for part in parts]
        assert max(of_class) - min(of_class) <= 1
    if nodes.numel() >= 2:
        for fold in folds(y, nodes, seed, count):
            assert sorted([*fold.train.tolist(), *fold.val.tolist()]) == nodes.tolist()
            assert fold.val.numel()


def test_hold_out_is_a_fifth_of_every_class() -> None:
    y = torch.arange(1000) % 4
    kept, held = hold_out(y, torch.arange(1000), 0)
    assert (kept.numel(), held.numel()) == (800, 200)
    assert torch.bincount(y[held]).tolist() == [50] * 4
    assert not torch.isin(held, kept).any()
    assert not torch.equal(held, hold_out(y, torch.arange(1000), 1)[1])


def test_few() -> None:
    assert is_few(torch.arange(7).repeat(20))
    assert not is_few(torch.arange(7).repeat(100))


@pytest.mark.parametrize(("text", "seconds"), [("90", 90), ("90s", 90), ("2m", 120), ("1.5h", 5400), ("3 min", 180)])
def test_budget(text: str, seconds: float) -> None:
    assert parse_budget(text) == seconds


@pytest.mark.parametrize("text", ["", "0", "-3", "soon", "2 days"])
def test_wrong_budget(text: str) -> None:
    with pytest.raises(InputError, match="90s, 2m or 1h"):
        parse_budget(text)


def test_a_stop_reaches_every_part() -> None:
    clock = Clock(100)
    part = clock.part(0.5)
    assert 40 < part.left() < 51
    clock.stop()
    assert part.over()
