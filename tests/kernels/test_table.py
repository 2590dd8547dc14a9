"""The table of compiled loops, and how many threads they use."""

import inspect
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch

from graphpartner.kernels import table
from graphpartner.kernels.table import Kernels

CPU, CUDA = torch.device("cpu"), torch.device("cuda")
LOOPS = {
    "adam": ["step"],
    "divergence": ["divergence"],
    "dropout": ["dropped", "dropped_product", "dropped_product_gradient"],
    "edge_products": ["weighted_sum", "dots"],
    "mix": ["mixed"],
    "row_products": ["row_products", "row_products_gradient"],
    "spmm": ["spmm_power"],
}


def test_every_loop_on_a_cpu_is_there() -> None:
    pytest.importorskip("numba")
    kernels = vars(Kernels.on(CPU))
    assert {operation for operation, loops in kernels.items() if loops is not None} == set(LOOPS)
    for operation, names in LOOPS.items():
        assert all(callable(getattr(kernels[operation], name)) for name in names)


def test_loops_of_one_operation_have_the_same_signature() -> None:
    pytest.importorskip("numba")
    pytest.importorskip("triton")
    cpu, gpu = vars(table._numba()), vars(table._triton())
    for operation in cpu.keys() & gpu.keys():
        if cpu[operation] is None or gpu[operation] is None:
            continue
        for name in LOOPS[operation]:
            of_cpu, of_gpu = (inspect.signature(getattr(loops[operation], name)) for loops in (cpu, gpu))
            assert of_cpu == of_gpu, f"{operation}.{name}"


@pytest.mark.parametrize("compiler", ["numba", "triton"])
def test_every_file_of_loops_is_in_the_table(compiler: str) -> None:
    """By the source: what is compiled for another machine cannot be imported here."""
    listed = inspect.getsource({"numba": table._numba, "triton": table._triton}[compiler])
    files = [path.stem for path in Path(table.__file__).parent.glob(f"*_{compiler}.py")]
    assert files
    for stem in files:
        assert f"{stem.removesuffix('_' + compiler)}={stem}," in listed


def test_none_where_there_are_none() -> None:
    assert Kernels.on(torch.device("meta")) == Kernels()
    assert Kernels.on(CUDA).divergence is None  # plain PyTorch is as fast there
    assert Kernels.on(CPU).nt_xent is None


def test_modules_are_imported_once() -> None:
    pytest.importorskip("numba")
    assert Kernels.on(CPU) is Kernels.on(torch.device("cpu", 0))
    assert isinstance(Kernels.on(CPU).spmm, ModuleType)


@pytest.mark.parametrize("threads", [1, 2])
def test_loops_and_pytorch_use_as_many_threads_as_pytorch_was_given(threads: int) -> None:
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


def test_the_number_of_threads_stays_where_numba_starts_inside_a_single_core() -> None:
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
