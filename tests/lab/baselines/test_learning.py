"""A few epochs of every supervised baseline, dropout and weight decay included, against the slow reference."""

from typing import Any

import pytest
import torch
from torch.testing import assert_close

from graphpartner.lab.baselines.all_baselines import SUPERVISED
from graphpartner.lab.baselines.baseline import RunDropout
from graphpartner.lab.baselines.supervised import BaselineBatch
from graphpartner.training.prepared import labelled
from tests.lab.baselines import reference
from tests.lab.baselines.graphs import CPU, built, odd_graph

SEEDS = [3, 5]
EPOCHS = 4
JKNETS = [
    {"layers": 4, "jump": jump, "normalization": normalization, "self_weight": self_weight}
    for jump, normalization, self_weight in (
        ("cat", "symmetric", False), ("cat", "row", True), ("max", "row", False), ("max", "symmetric", True)
    )
]  # fmt: skip
VARIANTS: dict[str, list[dict[str, Any]]] = {
    "mlp": [{}],
    "gcn": [{"layers": 2}, {"layers": 4}],
    "gat": [{"heads": 3, "output_heads": 2}, {"layers": 3, "heads": 2, "output_heads": 1}],
    "jknet": JKNETS,
    "jknet-dropedge": JKNETS,
    "appnp": [{"num_steps": 4}],
    "gcnii": [{"layers": 5, "conv_decay": 0.2}],
    "sgc": [{}],
    "dagnn": [{"num_steps": 4}],
    "grand": [
        {"num_steps": 3, "views": 3, "batch_norm": batch_norm, "input_dropout": input_dropout, "consistency": 0.7}
        for batch_norm, input_dropout in ((False, 0.0), (False, 0.3), (True, 0.3))
    ],
}
CASES = [(name, changes) for name, several in VARIANTS.items() for changes in several]


def test_every_supervised_baseline_is_here() -> None:
    assert set(VARIANTS) == set(SUPERVISED) == set(reference.FORWARD)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("name", "changes"), CASES, ids=[f"{name} {changes}" for name, changes in CASES])
def test_it_learns_what_the_reference_learns(name: str, changes: dict[str, Any], weighted: bool) -> None:
    data = odd_graph(n=11, d=6, seed=1)
    data.x[2] = 0
    data.train_mask &= data.y != 2  # no training node is of the third class
    if weighted:  # an edge and its reverse differ, those that occur twice add up
        data.edge_weight = torch.rand(data.num_edges, generator=torch.Generator().manual_seed(0)) * 2 + 0.1
    own = changes | {"lr": 0.01, "decay": 0.05}
    own |= {} if name == "sgc" else {"dropout": 0.4}
    own |= {} if name in ("sgc", "gat") else {"hidden_channels": 4}
    model, _ = built(name, data, SEEDS, **own)
    nodes = (labelled(data[part], data.y, len(SEEDS), part, CPU) for part in ("train_mask", "val_mask"))
    batch = BaselineBatch(model, SEEDS, *nodes)
    dropout = RunDropout(SEEDS, model.settings.epochs, CPU)
    there = reference.in_double(data)
    runs = [{key: value[run].double().clone() for key, value in batch.named.items()} for run in range(len(SEEDS))]
    optimizers = []
    for weights in runs:
        learned = {key: weights[key].requires_grad_() for key in batch.optimizers}
        groups = [
            {"params": w, "weight_decay": reference.decay_of(name, key, model.settings)} for key, w in learned.items()
        ]
        optimizers.append(torch.optim.Adam(groups, lr=model.settings.lr))
    for _ in range(EPOCHS):
        (loss,), (val_loss, _) = batch.step(), batch.validate()
        batch.epoch += 1
        for run, (weights, adam) in enumerate(zip(runs, optimizers, strict=True)):
            dropped = reference.Dropped(dropout, run)
            if name == "grand":
                expected = reference.grand_loss(there, weights, model.settings, dropped)
            else:
                expected = reference.nll(reference.FORWARD[name](there, weights, model.settings, dropped), there)
            adam.zero_grad()
            expected.backward()
            adam.step()
            with torch.no_grad():
                validated = reference.FORWARD[name](there, weights, model.settings, reference.Dropped())
            assert_close(loss[run].double(), expected.detach(), rtol=1.3e-6, atol=1e-5)
            assert_close(val_loss[run].double(), reference.nll(validated, there, "val_mask"), rtol=1.3e-6, atol=1e-5)
        dropout.epoch += 1
    for run, weights in enumerate(runs):
        for key, value in batch.named.items():
            assert_close(
                value[run].double(), weights[key].detach(), rtol=1.3e-6, atol=1e-5, msg=lambda m, key=key: f"{key}: {m}"
            )
