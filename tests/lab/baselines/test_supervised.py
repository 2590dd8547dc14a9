"""Training many runs at once: what a run learns depends on itself alone."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close
from torch_geometric.data import Data

from graphpartner.graph.splits import per_class_splits
from graphpartner.lab.baselines import supervised
from graphpartner.lab.baselines.all_baselines import BASELINES, SUPERVISED, train_baseline
from graphpartner.lab.baselines.baseline import BaselineOutput, RunDropout
from graphpartner.lab.baselines.dropedge import dropped_edges
from graphpartner.lab.baselines.supervised import BaselineBatch, predict_logits
from graphpartner.system.errors import InputError
from graphpartner.training import loop
from graphpartner.training.prepared import DeviceGraph, Normalization, labelled
from tests.lab.baselines.graphs import (
    CPU,
    SMALL_SELF_SUPERVISED,
    SMALL_SUPERVISED,
    built,
    dense_adjacency,
    dense_entries,
    odd_graph,
    weighted,
)
from tests.training.graphs import toy


def test_every_baseline_is_tried() -> None:
    assert set(SMALL_SUPERVISED) == set(SUPERVISED)
    assert {*SMALL_SUPERVISED, *SMALL_SELF_SUPERVISED} == set(BASELINES)


@pytest.mark.parametrize("name", SMALL_SUPERVISED)
def test_a_run_among_many_equals_the_same_run_alone(name: str) -> None:
    data = toy()
    changes = SMALL_SUPERVISED[name] | {"epochs": 6, "lr": 0.02}
    together = train_baseline(name, data, range(4), "cpu", changes, batch_size=4)
    alone = train_baseline(name, data, range(4), "cpu", changes, batch_size=1)
    other = train_baseline(name, data, [7, 2], "cpu", changes, batch_size=2)
    assert_close(together.logits, alone.logits, rtol=0, atol=1e-4)
    assert_close(together.logits[2], other.logits[1], rtol=0, atol=1e-4)
    assert (together.logits[0] - together.logits[1]).abs().max() > 1e-3


@pytest.mark.parametrize("name", SMALL_SUPERVISED)
def test_compaction_changes_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[int] = []
    keep = BaselineBatch.keep

    def watched(batch: BaselineBatch, replicas: Tensor) -> None:
        kept.append(len(replicas))
        keep(batch, replicas)

    monkeypatch.setattr(BaselineBatch, "keep", watched)
    monkeypatch.setattr(loop, "COMPACT_BELOW", 1.0)  # a stopped run is cut away at once
    data = toy()
    masks = per_class_splits(data.y, range(5), train=3, val=4)  # other splits stop at other times
    data.train_mask, data.val_mask, data.test_mask = masks
    rate = 0.5 if name in ("mlp", "appnp", "sgc") else 0.05  # some need a high rate to stop in time
    changes = SMALL_SUPERVISED[name] | {"epochs": 25, "patience": 2, "lr": rate}
    together = train_baseline(name, data, range(5), "cpu", changes, batch_size=5)
    alone = train_baseline(name, data, range(5), "cpu", changes, batch_size=1)
    assert_close(together.epochs, alone.epochs)
    assert_close(together.val_loss, alone.val_loss, rtol=1e-3, atol=1e-4)
    assert_close(together.logits, alone.logits, rtol=1e-2, atol=1e-3)
    assert kept


@pytest.mark.parametrize("name", SMALL_SUPERVISED)
def test_every_baseline_learns(name: str) -> None:
    data = toy(90, seed=1)
    runs = train_baseline(name, data, [0], "cpu", SMALL_SUPERVISED[name] | {"epochs": 60, "lr": 0.05})
    assert runs.accuracy(data.train_mask)[0] > 0.85
    assert runs.accuracy(data.test_mask)[0] > 0.55  # one of three by chance


def test_gcn_learns_as_a_plain_loop_does() -> None:
    data = toy()
    _, w = built("gcn", data, [5], hidden_channels=6, dropout=0)
    first, second = (weight[0].clone().requires_grad_() for weight in w.values())
    adam = torch.optim.Adam([{"params": [first], "weight_decay": 0.01}, {"params": [second]}], lr=0.03)
    P = dense_adjacency(data)
    for _ in range(8):
        adam.zero_grad()
        logits = P @ (P @ (data.x @ first)).relu() @ second
        torch.nn.functional.cross_entropy(logits[data.train_mask], data.y[data.train_mask]).backward()
        adam.step()
    changes = {"hidden_channels": 6, "dropout": 0, "decay": 0.01, "lr": 0.03, "epochs": 8, "features": "raw"}
    runs = train_baseline("gcn", data, [5], "cpu", changes)
    with torch.no_grad():
        logits = P @ (P @ (data.x @ first)).relu() @ second
    assert_close(runs.logits[0], logits, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("data", [odd_graph(), weighted(odd_graph())], ids=["unweighted", "weighted"])
def test_dropped_edges_are_normalised_anew(data: Data) -> None:
    graph = DeviceGraph(data, CPU)
    edges = graph.edges
    whole = dense_entries(data)
    for normalization in ("symmetric", "row"):
        dropout = RunDropout([1, 2], 3, CPU)
        values = dropped_edges(graph, dropout, 0.5, normalization)
        for replica in range(2):
            A = torch.zeros(data.num_nodes, data.num_nodes)
            A[edges.target, edges.source] = (values[:, replica] > 0).float()
            A = A * whole
            assert (A.diagonal() == 1).all()
            degree = A.sum(1)
            right = degree.rsqrt() if normalization == "symmetric" else torch.ones_like(degree)
            left = degree.rsqrt() if normalization == "symmetric" else 1 / degree
            expected = left[:, None] * A * right
            assert_close(values[:, replica], expected[edges.target, edges.source])
        share = (values[~edges.loop] > 0).float().mean()
        assert 0.2 < share < 0.8
        dropout.epoch += 1
        assert (dropped_edges(graph, dropout, 0.5, normalization) > 0).ne(values > 0).any()


@pytest.mark.parametrize("normalization", ["symmetric", "row"])
@pytest.mark.parametrize("data", [odd_graph(), weighted(odd_graph())], ids=["unweighted", "weighted"])
def test_where_no_edge_is_dropped_training_sees_what_validation_sees(data: Data, normalization: Normalization) -> None:
    graph = DeviceGraph(data, CPU)
    values = dropped_edges(graph, RunDropout([1, 2], 3, CPU), 1e-9, normalization)
    expected = graph.normalized(normalization).csr.values()
    assert_close(values, expected[:, None].expand(-1, 2))


def test_grand_at_a_low_temperature_is_finite() -> None:
    data = odd_graph(n=30, classes=10)
    model, w = built("grand", data, [1], hidden_channels=4, num_steps=2, temperature=0.01)
    loss = model.loss(w, RunDropout([1], 3, CPU), labelled(data.train_mask, data.y, 1, "train_mask", CPU))
    assert loss.isfinite().all()


def test_layers_and_weights_with_keep_layers() -> None:
    data = toy()
    changes = {"layers": 3, "hidden_channels": 6, "epochs": 4}
    runs = train_baseline("gcn", data, range(2), "cpu", changes, keep_layers=True)
    assert [tuple(layer.shape) for layer in runs.layers] == [(2, 40, 6), (2, 40, 6), (2, 40, 3)]
    assert list(runs.weights) == ["weight1", "weight2", "weight3"]
    assert_close(runs.layers[-1], runs.logits)
    P = dense_adjacency(data)
    expected = P @ runs.layers[1] @ runs.weights["weight3"]
    assert_close(runs.logits, expected, rtol=1e-4, atol=1e-5)
    assert runs.parameters == 24 * 6 + 6 * 6 + 6 * 3
    plain = train_baseline("gcn", data, range(2), "cpu", changes)
    assert plain.layers == []
    assert plain.weights == {}


def test_layers_are_held_only_with_keep_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[BaselineOutput] = []

    def watched(*given: Any) -> list[BaselineOutput]:
        held.extend(outputs := predict_logits(*given))
        return outputs

    monkeypatch.setattr(supervised, "predict_logits", watched)
    changes = {"layers": 3, "hidden_channels": 6, "epochs": 2}
    for keep_layers in (False, True):
        train_baseline("gcn", toy(), range(2), "cpu", changes, keep_layers=keep_layers, batch_size=1)
    assert [len(output.layers) for output in held] == [0, 0, 3, 3]


@pytest.mark.parametrize("name", SMALL_SUPERVISED)
def test_test_labels_are_not_read(name: str) -> None:
    data, changes = toy(), SMALL_SUPERVISED[name] | {"epochs": 5}
    before = train_baseline(name, data, [1], "cpu", changes)
    data.y = torch.where(data.train_mask | data.val_mask, data.y, (data.y + 1) % 3)
    assert torch.equal(train_baseline(name, data, [1], "cpu", changes).logits, before.logits)


def test_progress_is_reported() -> None:
    reported: list[tuple[int, ...]] = []
    train_baseline("sgc", toy(), range(2), "cpu", {"epochs": 5}, lambda *now: reported.append(now))
    assert reported[-1] == (10, 10)


def test_wrong_input_is_named() -> None:
    with pytest.raises(InputError, match=r"baseline = 'gnc': must be one of mlp, gcn"):
        train_baseline("gnc", toy(), [0])
    with pytest.raises(InputError, match=r"unknown setting 'heads': must be one of features, lr"):
        train_baseline("gcn", toy(), [0], changes={"heads": 3})
    with pytest.raises(InputError, match=r"dropout = 1.5: must lie between 0 and 1"):
        train_baseline("gcn", toy(), [0], changes={"dropout": 1.5})
    with pytest.raises(InputError, match=r"batch_size = 0"):
        train_baseline("gcn", toy(), [0], batch_size=0)
    with pytest.raises(InputError, match=r"seeds = \[\]: must hold"):
        train_baseline("gcn", toy(), [])
