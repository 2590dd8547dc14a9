import inspect
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
import torch

from graphpartner.kernels import adam, divergence, dropout, edge_products, mix, nt_xent, row_products, spmm

CPU = torch.device("cpu")


def test_every_table_names_loops_that_are_there():
    pytest.importorskip("numba")
    loops = {adam: ("adam",), divergence: ("divergence",), dropout: ("drop", "dropped_product", "dropped_gradient")}
    loops |= {edge_products: ("weighted_sum", "dots"), mix: ("mix",), spmm: ("spmm_power",)}
    loops |= {row_products: ("row_products", "row_products_gradient")}
    for operation, names in loops.items():
        found = operation.KERNELS.on(CPU)
        assert all(callable(getattr(found, name)) for name in names)


def test_every_file_of_loops_is_in_a_table():
    """By the source: what is compiled for another machine cannot be imported here."""
    folder = Path(spmm.__file__).parent
    for path in folder.glob("*_*.py"):
        operation, _, compiler = path.stem.rpartition("_")
        if compiler in ("numba", "triton"):
            module = import_module(f"graphpartner.kernels.{operation}")
            loader = {"numba": module.KERNELS.cpu, "triton": module.KERNELS.cuda}[compiler]
            assert f"import {path.stem}" in inspect.getsource(loader)


def test_none_where_there_are_none():
    assert dropout.KERNELS.on(torch.device("meta")) is None
    assert divergence.KERNELS.on(torch.device("cuda")) is None  # plain torch is as fast there
    assert nt_xent.KERNELS.on(CPU) is None


@pytest.mark.parametrize("threads", [1, 2])
def test_loops_and_pytorch_use_as_many_threads_as_pytorch_was_told(threads):
    """In a process of its own: numba starts its threads once, and would set PyTorch's number too."""
    numba = pytest.importorskip("numba")
    code = f"""
import numba, torch
import graphpartner as gp
from graphpartner.training.settings import Settings
from tests.training.graphs import toy
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
from graphpartner.system.parallel import single_core, run_on_cores
torch.set_num_threads(3)
with single_core():
    inside = torch.get_num_threads()
print(inside, torch.get_num_threads(), *run_on_cores(lambda job: torch.get_num_threads(), range(2)))
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert found == ["1", "3", "1", "1"]
