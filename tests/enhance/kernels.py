"""Every kernel by name, so that each can be held against the oracle, whatever the planner would choose."""

from dataclasses import replace

import torch
from torch import Tensor

from graphpartner.enhance.features import read_features
from graphpartner.enhance.join import run_join
from graphpartner.enhance.plan import choose_kernel
from graphpartner.enhance.rule import Rule
from graphpartner.graph.adjacency import adjacency, is_symmetric

CPU = torch.device("cpu")
KERNELS = ["popcount/bitsets", "popcount/walks", "suffix/bitsets", "suffix/walks", "dense/products", "scipy/products"]


def join_by(
    name: str, x: Tensor, edge_index: Tensor, k: int, threshold: float, memory: int = 10**8, top: int | None = None
) -> Tensor:
    features = read_features(x)
    kernel, reach = name.split("/")
    if kernel == "popcount" and features.kind != "binary":
        kernel = "suffix"
    A = adjacency(edge_index, features.num_nodes)
    half = kernel in ("popcount", "suffix") and top is None and is_symmetric(A)
    choice = replace(choose_kernel(features, A, k, CPU, memory), kernel=kernel, reach=reach, symmetric=half)
    return run_join(Rule(features, threshold), A, k, choice, memory=memory, limit=10**9, top=top)
