"""Slow reference versions of every supervised baseline: one run, dense, in float64, with the dropout masks of a run."""

from collections.abc import Callable
from math import log
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Data

from graphpartner.lab.baselines.baseline import RunDropout
from tests.lab.baselines.graphs import dense_entries, normalized

Weights = dict[str, Tensor]


class Dropped:
    """0 or 1 / (1 − rate) for every entry of a matrix of one replica; all ones where nothing is dropped."""

    def __init__(self, dropout: RunDropout | None = None, replica: int = 0) -> None:
        self.dropout, self.replica = dropout, replica

    def __call__(self, rate: float, rows: int, columns: int, layer: int = 0, stream: str = "hidden") -> Tensor:
        if self.dropout is None or not rate:
            return torch.ones(rows, columns, dtype=torch.float64)
        counters = torch.arange(rows * columns, dtype=torch.int32)
        mask = self.dropout.draw(rate, layer, stream).mask(counters)[self.replica]
        return mask.reshape(rows, columns).double()

    def hidden(self, H: Tensor, rate: float, layer: int = 0, stream: str = "hidden") -> Tensor:
        return H * self(rate, *H.shape, layer, stream)

    def input(self, X: Tensor, rate: float) -> Tensor:
        return self.hidden(X, rate, stream="input")

    def entries(self, A: Tensor, rate: float, layer: int = 0, heads: int = 1) -> Tensor:
        """The mask of the entries of A, row by row, [heads, n, n]."""
        row, column = A.nonzero().T
        mask = self(rate, len(row), heads, layer, "edges")
        dense = torch.zeros(heads, *A.shape, dtype=torch.float64)
        dense[:, row, column] = mask.T
        return dense


def mlp(data: Data, w: Weights, s: Any, drop: Dropped) -> Tensor:
    H = (drop.input(data.x, s.dropout) @ w["weight1"]).relu()
    return drop.hidden(H, s.dropout) @ w["weight2"]


def gcn(data: Data, w: Weights, s: Any, drop: Dropped) -> Tensor:
    P = normalized(data.A)
    H = P @ drop.input(data.x, s.dropout) @ w["weight1"]
    for layer in range(1, s.layers):
        H = P @ drop.hidden(H.relu(), s.dropout, layer) @ w[f"weight{layer + 1}"]
    return H


def gat(data: Data, w: Weights, s: Any, drop: Dropped) -> Tensor:
    H = data.x
    for layer in range(s.layers):
        last = layer == s.layers - 1
        heads = s.output_heads if last else s.heads
        H = drop.input(H, s.dropout) if layer == 0 else drop.hidden(H, s.dropout, layer)
        H = H @ w[f"weight{layer + 1}"]
        seen = drop.hidden(H, s.dropout, layer, "partner").chunk(heads, 1)
        kept = drop.entries(data.A, s.dropout, layer, heads)
        outs = []
        for head, (own, source, target) in enumerate(
            zip(*(each.chunk(heads, 1) for each in (H, w[f"source{layer + 1}"], w[f"target{layer + 1}"])), strict=True)
        ):
            e = F.leaky_relu((own @ target.T) + (own @ source.T).T, 0.2)
            alpha = e.masked_fill(data.A == 0, -torch.inf).softmax(1)
            outs.append((alpha * kept[head]) @ seen[head])
        H = (torch.stack(outs).mean(0) if last else torch.cat(outs, 1)) + w[f"bias{layer + 1}"]
        H = H if last else F.elu(H)
    return H


def jknet(data: Data, w: Weights, s: Any, drop: Dropped) -> Tensor:
    A = data.A
    if hasattr(s, "edge_dropout"):  # a node never loses itself
        A = A * (drop.entries(A, s.edge_dropout)[0] > 0).double().fill_diagonal_(1)
    Q = normalized(A, s.normalization)

    def convolve(H: Tensor, layer: int) -> Tensor:
        out = Q @ H @ w[f"weight{layer}"] + w[f"bias{layer}"]
        return out + H @ w[f"self{layer}"] if s.self_weight else out

    H, states = data.x, []
    for layer in range(1, s.layers):
        H = drop.hidden(convolve(H, layer).relu(), s.dropout, layer)
        states.append(H)
    return convolve(torch.cat(states, 1) if s.jump == "cat" else torch.stack(states).amax(0), s.layers)


def appnp(data: Data, w: Weights, s: Any, drop: Dropped) -> Tensor:
    P = normalized(data.A)
    Z = H = drop.hidden((drop.input(data.x, s.dropout) @ w["weight1"]).relu(), s.dropout) @ w["weight2"]
    for step in range(s.num_steps):
        Z = (1 - s.alpha) * (P * drop.entries(data.A, s.edge_dropout, step)[0]) @ Z + s.alpha * H
    return Z


def gcnii(data: Data, w: Weights, s: Any, drop: Dropped) -> Tensor:
    P = normalized(data.A)
    H = initial = (drop.input(data.x, s.dropout) @ w["weight_in"] + w["bias_in"]).relu()
    for layer in range(1, s.layers + 1):
        beta = log(s.lam / layer + 1)
        support = (1 - s.alpha) * P @ drop.hidden(H, s.dropout, layer) + s.alpha * initial
        H = (beta * support @ w[f"weight{layer}"] + (1 - beta) * support).relu()
    return drop.hidden(H, s.dropout) @ w["weight_out"] + w["bias_out"]


def sgc(data: Data, w: Weights, s: Any, drop: Dropped) -> Tensor:
    return torch.linalg.matrix_power(normalized(data.A), s.num_steps) @ data.x @ w["weight"] + w["bias"]


def dagnn(data: Data, w: Weights, s: Any, drop: Dropped) -> Tensor:
    H = (drop.input(data.x, s.dropout) @ w["weight1"] + w["bias1"]).relu()
    Z = drop.hidden(H, s.dropout) @ w["weight2"] + w["bias2"]
    depths = [torch.linalg.matrix_power(normalized(data.A), k) @ Z for k in range(s.num_steps + 1)]
    return sum(torch.sigmoid(each @ w["weight_score"] + w["bias_score"]) * each for each in depths)


def grand(data: Data, w: Weights, s: Any, drop: Dropped, view: int = 0) -> Tensor:
    P, n = normalized(data.A), len(data.x)
    training = drop.dropout is not None
    kept = (drop(s.node_dropout, n, 1, view, "nodes") > 0).double() if training else 1 - s.node_dropout
    X = sum(torch.linalg.matrix_power(P, k) for k in range(s.num_steps + 1)) @ (kept * data.x) / (s.num_steps + 1)

    def norm(H: Tensor, layer: int) -> Tensor:
        if not s.batch_norm:
            return H
        of = [w[f"{name}{layer}"][0] for name in ("mean", "variance", "scale", "shift")]
        return F.batch_norm(H, *of, training=training)  # keeps the running mean and variance up to date

    hidden = (drop.hidden(norm(X, 1), s.input_dropout, view, "input") @ w["weight1"] + w["bias1"]).relu()
    return drop.hidden(norm(hidden, 2), s.dropout, view) @ w["weight2"] + w["bias2"]


def grand_loss(data: Data, w: Weights, s: Any, drop: Dropped) -> Tensor:
    """Return the cross-entropy of the views plus their distance from their sharpened mean."""
    logits = [grand(data, w, s, drop, view) for view in range(s.views)]
    p = torch.stack([each.softmax(1) for each in logits])
    sharp = p.mean(0).detach() ** (1 / s.temperature)
    apart = (p - sharp / sharp.sum(1, keepdim=True)).square().sum(2).mean()
    return sum(nll(each, data) for each in logits) / s.views + s.consistency * apart


def nll(logits: Tensor, data: Data, nodes: str = "train_mask") -> Tensor:
    return F.cross_entropy(logits[data[nodes]], data.y[data[nodes]])


FORWARD: dict[str, Callable[..., Tensor]] = {
    "mlp": mlp, "gcn": gcn, "gat": gat, "jknet": jknet, "jknet-dropedge": jknet, "appnp": appnp, "gcnii": gcnii,
    "sgc": sgc, "dagnn": dagnn, "grand": grand,
}  # fmt: skip

FIRST_LAYER_ALONE = ("gcn", "appnp")  # whose authors decay the first layer only


def decay_of(name: str, weight: str, settings: Any) -> float:
    """Return the weight decay of a weight, as each paper's authors have it."""
    if name in FIRST_LAYER_ALONE:
        return settings.decay if weight == "weight1" else 0.0
    if name == "gcnii" and weight[-1].isdigit():  # a convolution
        return settings.conv_decay
    return settings.decay


def in_double(data: Data) -> Data:
    """Return the graph in float64, with A + I as a dense matrix ``A``."""
    slow = data.clone()
    slow.x, slow.A = data.x.double(), dense_entries(data).double()
    return slow
