"""What a run took, whatever was taken and freed before it."""

import sys

import pytest

from graphpartner.system.meter import peak_memory


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux's high-water mark")
def test_freed_memory_counts_as_free():
    def fill():
        return [bytes(50_000) for _ in range(2_000)]  # small enough that they stay with the process when freed

    end = fill()  # whatever comes after the pieces below keeps the heap from shrinking by itself
    pieces = fill()
    guard = bytes(1_000)
    del pieces, end
    with peak_memory("cpu") as peak:
        fill()
    assert peak[0] == pytest.approx(1e8, rel=0.1)
    assert len(guard) == 1_000
