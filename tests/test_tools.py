"""Tools: programs of the repository that make data, a figure or a comparison."""

import importlib.util
from pathlib import Path
from types import ModuleType

import torch

from graphpartner.graph.record import GraphRecord
from graphpartner.graph.splits import Split

TOOLS = Path(__file__).parents[1] / "tools"


def load(name: str) -> ModuleType:
    """Return a tool as a module, without running it."""
    spec = importlib.util.spec_from_file_location(name, TOOLS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_splits_of_the_largest_component_are_placed_where_asked() -> None:
    module = load("dagnn_splits")
    edges = torch.tensor([[0, 2, 1, 4, 4, 5, 5, 3], [2, 0, 4, 1, 5, 4, 3, 5]])  # 0 - 2 and 1 - 4 - 5 - 3; 6 is alone
    graph = GraphRecord(x=torch.zeros(7, 1), edge_index=edges)
    nodes = module.largest_component(graph)
    assert nodes.tolist() == [1, 3, 4, 5]
    inside = Split(*torch.eye(4, dtype=torch.bool)[:3, None])  # node 0, 1 and 2 of the four
    there = module.placed(inside, nodes, 7)
    assert [mask.nonzero().tolist() for mask in there] == [[[0, 1]], [[0, 3]], [[0, 4]]]
    as_numbers = module.placed(inside, torch.arange(4), 7)
    assert [mask.nonzero().tolist() for mask in as_numbers] == [[[0, 0]], [[0, 1]], [[0, 2]]]
