"""Seconds and peak memory of a piece of work, whatever was taken and freed before it."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from graphpartner.system.meter import in_new_process, peak_memory, program_peak_memory, seconds_each

linux = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux's high-water mark")


def test_seconds_each_measures_every_side() -> None:
    calls = [0, 0]

    def side(which: int, amount: int) -> Callable[[], int]:
        def work() -> int:
            calls[which] += 1
            return sum(range(amount))

        return work

    sides = side(0, 200_000), side(1, 2_000)
    slow, fast = seconds_each(*sides, device=torch.device("cpu"), repeats=(2, 3), rounds=4)
    assert calls == [2 + 2 * 4, 2 + 3 * 4]
    assert slow > 5 * fast
    (most,) = seconds_each(
        sides[1], device=torch.device("cpu"), repeats=(1,), rounds=3, reduce=lambda times: len(times)
    )
    assert most == 3


@linux
def test_freed_memory_counts_as_free() -> None:
    def fill() -> list[bytes]:
        return [bytes(50_000) for _ in range(2_000)]  # small enough that they stay with the process when freed

    end = fill()  # whatever comes after the pieces below keeps the heap from shrinking by itself
    pieces = fill()
    guard = bytes(1_000)
    del pieces, end
    with peak_memory("cpu") as peak:
        fill()
    assert peak[0] == pytest.approx(1e8, rel=0.1)
    assert len(guard) == 1_000


def rise(entries: int) -> float:
    """Return the peak memory of a sum over a tensor of ones."""
    with peak_memory("cpu") as peak:
        torch.ones(entries).sum()
    return peak[0]


@linux
def test_peak_memory_includes_what_is_held_for_a_moment_only() -> None:
    """In a process of its own: here other tests leave memory that is free but resident."""
    small, large = (in_new_process(rise, entries) for entries in (1_000, 20_000_000))
    assert small < 20e6
    assert 70e6 < large < 120e6


@pytest.mark.parametrize("taken", [0, 200_000_000])
def test_the_memory_of_a_program_is_its_own(taken: int, tmp_path: Path) -> None:
    large = b"x" * 600_000_000  # resident here, and part of what a child's own count would begin with
    words = [sys.executable, "-I", "-S", "-c", f"there = b'x' * {taken}"]
    assert taken < program_peak_memory(words, tmp_path, os.environ) < taken + 50_000_000 < len(large)


def test_the_error_of_a_program_that_fails_holds_its_message(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"ValueError: no such graph\nended with 1"):
        program_peak_memory([sys.executable, "-c", "raise ValueError('no such graph')"], tmp_path, os.environ)
