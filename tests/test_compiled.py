import subprocess
import sys

import pytest

from graphpartner.compiled import HAS_NUMBA, compiled


def test_loops_lie_beside_what_they_speed_up():
    pytest.importorskip("numba")
    assert HAS_NUMBA
    loops = {"train.dropout": ("drop", "dropped_product", "dropped_gradient"), "train.adam": ("adam",)}
    loops |= {"model.spmm": ("spmm_power",), "model.divergence": ("divergence",)}
    for module, names in loops.items():
        found = compiled(f"graphpartner.{module}", "cpu")
        assert all(callable(getattr(found, name)) for name in names)


def test_none_where_there_are_none():
    assert compiled("graphpartner.train.dropout", "meta") is None
    assert compiled("graphpartner.errors", "cpu") is None
    assert compiled("graphpartner.model.divergence", "cuda") is None  # plain torch is as fast there


@pytest.mark.parametrize("threads", [1, 2])
def test_loops_and_pytorch_use_as_many_threads_as_pytorch_was_told(threads):
    """In a process of its own: numba starts its threads once, and would set PyTorch's number too."""
    numba = pytest.importorskip("numba")
    code = f"""
import numba, torch
import graphpartner as gp
from graphpartner.train.settings import Settings
from tests.train.toy import toy
torch.set_num_threads({threads})
gp.train(toy(), Settings(epochs=2, hidden_channels=4), [0], "cpu")
print(torch.get_num_threads(), numba.get_num_threads(), numba.threading_layer())
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert found[:2] == [str(threads), str(min(threads, numba.config.NUMBA_NUM_THREADS))]
    assert found[2]  # its threads were started


def test_threads_are_kept_also_where_numba_starts_among_them():
    """In a process of its own: no loop has run there yet."""
    pytest.importorskip("numba")
    code = """
import torch
from graphpartner.train.cores import one_core, side_by_side
torch.set_num_threads(3)
with one_core():
    inside = torch.get_num_threads()
print(inside, torch.get_num_threads(), *side_by_side(lambda job: torch.get_num_threads(), range(2)))
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert found == ["1", "3", "1", "1"]
