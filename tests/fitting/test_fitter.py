"""The whole procedure on graphs whose best model is known."""

import copy
import dataclasses

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from graphpartner.fitting import fitter, tuning
from graphpartner.fitting.candidates import Traits, candidates_for
from graphpartner.fitting.clock import Clock
from graphpartner.fitting.fitted_model import FittedModel
from graphpartner.fitting.fitter import Fitter
from graphpartner.fitting.folds import folds
from graphpartner.fitting.layouts import CandidateGraphs
from graphpartner.fitting.scores import calibration_error
from graphpartner.fitting.tuning import Tuner
from graphpartner.graph.adjacency import simple_edges
from graphpartner.system.errors import InputError


def planted(n: int, kind: str, seed: int = 0) -> Data:
    """Three classes with weak features; edges within classes, from class c to c + 1, or anywhere."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    source = rng.integers(0, n, 4 * n)
    wanted = {"within": y[source], "next": (y[source] + 1) % 3}.get(kind)
    target = rng.integers(0, n, 4 * n)
    if wanted is not None:
        order = np.argsort(y, kind="stable")
        start = np.searchsorted(y[order], wanted)
        size = np.bincount(y, minlength=3)[wanted]
        target = order[start + rng.integers(0, 10**6, 4 * n) % size]
    x = (rng.normal(size=(n, 6)) + 0.9 * np.eye(3, 6)[y]).astype(np.float32)
    edge_index = simple_edges(torch.from_numpy(np.stack([source, target])), n)
    return Data(x=torch.from_numpy(x), edge_index=edge_index, y=torch.from_numpy(y), num_nodes=n)


def fit(data: Data, budget: float = 1.0) -> FittedModel:
    return Fitter(data, ["a", "b", "c"], budget, device="cpu").fit(list(range(data.num_nodes)))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["within", "next", "anywhere"])
def test_tuning_finds_what_the_edges_mean(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "SEEDS", 1)
    data = planted(500, kind)
    tried = [
        dataclasses.replace(each, settings=each.settings.replace(epochs=120, lr=0.02))
        for each in candidates_for(Traits(True, False, False, False))
        if each.name in ("mlp", "shallow", "two-hops")
    ]
    tuner = Tuner(CandidateGraphs(data, 3, torch.device("cpu")), data.y, folds(data.y, torch.arange(360), 0, 3), 0)
    tuned = tuner.tune(tried, Clock(600))
    assert set(tuned.tried) == {"mlp", "shallow", "two-hops"}
    gain = tuned.validation["mixture"] - tuned.validation["mlp"]
    if kind == "within":
        assert gain > 0.2
    elif kind == "next":  # neighbours are of another class, but informative
        assert gain > 0.1
        assert tuned.weights["two-hops"] >= 0.4
    else:  # the graph must not hurt
        assert gain > -0.01
        assert tuned.weights["mlp"] > 0.3
    assert tuned.partner in ("mlp", "shallow")  # what can predict a node without edges


@pytest.mark.slow
def test_held_out_estimate_agrees_with_hidden_nodes() -> None:
    data = planted(900, "within")
    truth = data.y.clone()
    data.y[600:] = -1
    model = fit(data, 3.0)
    accuracy = float((model.predict().both[600:].argmax(1) == truth[600:]).float().mean())
    scores = model.card["scores"]
    assert scores["nodes"] == 120
    assert scores["low"] - 0.05 < accuracy <= 1
    assert set(scores["references"]) == {"majority", "MLP", "label propagation"}
    assert accuracy > scores["references"]["MLP"] + 0.2
    assert any("graph helps" in sentence for sentence in model.card["decisions"])


@pytest.mark.slow
def test_nodes_held_out_correct_a_temperature_that_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "ensemble_temperature_ratio", lambda probabilities, temperature: 0.2)
    data = planted(1500, "anywhere")
    truth = data.y.clone()
    data.y[1000:] = -1
    model = fit(data, 3.0)
    p = model.predict().both[1000:]
    error = calibration_error(p.max(1).values, p.argmax(1) == truth[1000:])
    assert model.card["scores"]["ece"] > 0.15  # five times overconfident, as the estimate shows
    assert error < 0.1
    assert any("the 200 held out" in sentence for sentence in model.card["decisions"])


@pytest.mark.slow
@pytest.mark.parametrize("time", ["enough", "not for the partner", "none"])
def test_label_propagation_alone_starts_from_all_labels(time: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "ENOUGH_FOR_GREEDY", 0)  # it is used in any case
    monkeypatch.setattr(tuning, "ensemble_weights", lambda predictions, y: [0.0] * (len(predictions) - 1) + [1.0])
    if time == "not for the partner":
        retrain = tuning.Tuner.retrain
        monkeypatch.setattr(tuning.Tuner, "retrain", lambda self, tuned, clock: retrain(self, tuned, Clock(0)))
    elif time == "none":
        monkeypatch.setattr(Fitter, "_can_retrain", lambda self, tuned: False)
    data = planted(900, "within")
    truth = data.y.clone()
    data.y[600:] = -1
    model = fit(data, 2.0)
    assert "The model is label propagation alone." in model.card["decisions"]
    assert model.learned.tolist() == list(range(600))
    assert [(member.weight, member.partner_weight) for member in model.members] == [(0.0, 1.0)]
    p = model.predict().both[600:]
    assert (p.argmax(1) == truth[600:]).float().mean() > 0.9
    assert calibration_error(p.max(1).values, p.argmax(1) == truth[600:]) < 0.08


@pytest.mark.slow
def test_few_labels_are_all_learned_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitter, "candidates_for", lambda traits: candidates_for(traits)[:3])  # time is enough for these
    monkeypatch.setattr(tuning, "SEEDS", 1)
    data = planted(300, "within")
    data.y[30:] = -1
    model = fit(data, 15.0)
    assert model.learned.tolist() == list(range(30))
    assert "cross-validation" in model.card["scores"]["how"]


@pytest.mark.slow
def test_where_time_is_short_the_likeliest_go_through_all_folds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning.Tuner, "_affordable_folds", lambda self, num_candidates, clock: 1)
    monkeypatch.setattr(tuning.Tuner, "_common_folds", lambda self: [0])
    data = planted(300, "within")
    data.y[30:] = -1
    model = fit(data, 2.0)
    tried = [each.name for each in candidates_for(Traits(True, False, False, True))][: tuning.FINALISTS + 1]
    assert sorted(model.card["tried"]) == sorted(tried)  # six nodes cannot tell the others apart
    assert model.card["scores"]["nodes"] == 6
    assert model.card["scores"]["how"] == "not learned from, but the mixture was chosen by them"
    assert set(model.card["scores"]["references"]) == {"majority", "MLP", "label propagation"}


def test_a_split_of_the_files_own_is_kept_and_test_labels_are_not_read() -> None:
    data = planted(600, "within")
    masks = torch.arange(600) % 3
    data.train_mask, data.val_mask, data.test_mask = masks == 0, masks == 1, masks == 2
    other = copy.deepcopy(data)
    other.y[data.test_mask] = (other.y[data.test_mask] + 1) % 3
    first, second = (fit(each, 2.0) for each in (data, other))
    assert sorted(first.learned.tolist()) == (masks < 2).nonzero().squeeze(1).tolist()
    assert first.card["scores"]["accuracy"] > 0.6
    assert second.card["scores"]["accuracy"] < 0.4


def test_without_a_train_mask_test_nodes_are_not_learned_from() -> None:
    data = planted(400, "within")
    data.test_mask = torch.arange(400) % 4 == 0
    model = fit(data)
    assert sorted(model.learned.tolist()) == (~data.test_mask).nonzero().squeeze(1).tolist()
    assert model.card["split"]["test"] == data.test_mask.nonzero().squeeze(1).tolist()
    data.train_mask = torch.zeros(400, dtype=torch.bool)
    with pytest.raises(InputError, match="train_mask: must have labelled nodes of at least 2 classes"):
        fit(data)


def test_one_class_is_refused() -> None:
    data = planted(30, "within")
    data.y[:] = 0
    with pytest.raises(InputError, match="y: must have labelled nodes of at least 2 classes"):
        fit(data)
