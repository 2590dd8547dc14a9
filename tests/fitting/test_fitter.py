"""The whole procedure on graphs whose best answer is known."""

import copy
import dataclasses

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from graphpartner.fitting import fitter as procedure
from graphpartner.fitting import tuning
from graphpartner.fitting.candidates import Traits, candidates
from graphpartner.fitting.clock import Clock
from graphpartner.fitting.fitter import Fit
from graphpartner.fitting.folds import folds
from graphpartner.fitting.layouts import CandidateGraphs
from graphpartner.fitting.scores import calibration_error
from graphpartner.fitting.tuning import Tuner
from graphpartner.graph.adjacency import simple_edges
from graphpartner.system.errors import InputError


def planted(n, kind, seed=0):
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


def fit(data, budget=1.0):
    return Fit(data, ["a", "b", "c"], budget, device="cpu").run(list(range(data.num_nodes)))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["within", "next", "anywhere"])
def test_tuning_finds_what_the_edges_mean(kind, monkeypatch):
    monkeypatch.setattr(tuning, "SEEDS", 1)
    data = planted(500, kind)
    tried = [
        dataclasses.replace(each, settings=each.settings.replace(epochs=120, lr=0.02))
        for each in candidates(Traits(True, False, False, False))
        if each.name in ("mlp", "shallow", "two-hops")
    ]
    tuner = Tuner(CandidateGraphs(data, 3, torch.device("cpu")), data.y, folds(data.y, torch.arange(360), 0, 3), 0)
    tuned = tuner.tune(tried, Clock(600))
    assert set(tuned.seen) == {"mlp", "shallow", "two-hops"}
    gain = tuned.validation["mixture"] - tuned.validation["mlp"]
    if kind == "within":
        assert gain > 0.2
    elif kind == "next":  # neighbours are of another class, but tell
        assert gain > 0.1
        assert tuned.weights["two-hops"] >= 0.4
    else:  # the graph must not hurt
        assert gain > -0.01
        assert tuned.weights["mlp"] > 0.3
    assert tuned.partner in ("mlp", "shallow")  # what can answer without an edge


@pytest.mark.slow
def test_held_out_estimate_agrees_with_hidden_nodes():
    data = planted(900, "within")
    truth = data.y.clone()
    data.y[600:] = -1
    model = fit(data, 3.0)
    accuracy = float((model.answer().both[600:].argmax(1) == truth[600:]).float().mean())
    scores = model.about["scores"]
    assert scores["nodes"] == 120
    assert scores["low"] - 0.05 < accuracy <= 1
    assert set(scores["rivals"]) == {"majority", "MLP", "label propagation"}
    assert accuracy > scores["rivals"]["MLP"] + 0.2
    assert any("graph helps" in sentence for sentence in model.about["decisions"])


@pytest.mark.slow
def test_nodes_held_out_correct_a_temperature_that_is_wrong(monkeypatch):
    monkeypatch.setattr(tuning, "ensemble_temperature_ratio", lambda answers, single: 0.2)
    data = planted(1500, "anywhere")
    truth = data.y.clone()
    data.y[1000:] = -1
    model = fit(data, 3.0)
    answer = model.answer().both[1000:]
    error = calibration_error(answer.max(1).values, answer.argmax(1) == truth[1000:])
    assert model.about["scores"]["ece"] > 0.15  # five times too sure, as the estimate says
    assert error < 0.1
    assert any("the 200 held out" in sentence for sentence in model.about["decisions"])


@pytest.mark.slow
@pytest.mark.parametrize("time", ["enough", "not for the partner", "none"])
def test_label_propagation_alone_starts_from_all_labels(time, monkeypatch):
    monkeypatch.setattr(tuning, "ENOUGH_FOR_GREEDY", 0)  # it is heard in any case
    monkeypatch.setattr(tuning, "ensemble_weights", lambda answers, y: [0.0] * (len(answers) - 1) + [1.0])
    if time == "not for the partner":
        monkeypatch.setattr(tuning.Tuner, "again", lambda self, candidates, clock: None)
    elif time == "none":
        monkeypatch.setattr(Fit, "_can_learn_again", lambda self, tuned: False)
    data = planted(900, "within")
    truth = data.y.clone()
    data.y[600:] = -1
    model = fit(data, 2.0)
    assert "The model is label propagation alone." in model.about["decisions"]
    assert model.learned.tolist() == list(range(600))
    assert [(member.weight, member.partner) for member in model.members] == [(0.0, 1.0)]
    answer = model.answer().both[600:]
    assert (answer.argmax(1) == truth[600:]).float().mean() > 0.9
    assert calibration_error(answer.max(1).values, answer.argmax(1) == truth[600:]) < 0.08


@pytest.mark.slow
def test_few_labels_are_all_learned_from(monkeypatch):
    monkeypatch.setattr(procedure, "candidates", lambda traits: candidates(traits)[:3])  # time is enough for these
    monkeypatch.setattr(tuning, "SEEDS", 1)
    data = planted(300, "within")
    data.y[30:] = -1
    model = fit(data, 15.0)
    assert model.learned.tolist() == list(range(30))
    assert "cross-validation" in model.about["scores"]["how"]


@pytest.mark.slow
def test_where_time_is_short_the_likeliest_go_through_all_folds(monkeypatch):
    monkeypatch.setattr(tuning.Tuner, "_affordable", lambda self, candidates, clock: 1)
    monkeypatch.setattr(tuning.Tuner, "_common_folds", lambda self: [0])
    data = planted(300, "within")
    data.y[30:] = -1
    model = fit(data, 2.0)
    tried = [each.name for each in candidates(Traits(True, False, False, True))][: tuning.FINALISTS + 1]
    assert sorted(model.about["tried"]) == sorted(tried)  # six nodes cannot tell the others apart
    assert model.about["scores"]["nodes"] == 6
    assert model.about["scores"]["how"] == "not learned from, but the mixture was chosen by them"
    assert set(model.about["scores"]["rivals"]) == {"majority", "MLP", "label propagation"}


def test_a_split_of_ones_own_is_kept_and_test_labels_are_not_read():
    data = planted(600, "within")
    masks = torch.arange(600) % 3
    data.train_mask, data.val_mask, data.test_mask = masks == 0, masks == 1, masks == 2
    other = copy.deepcopy(data)
    other.y[data.test_mask] = (other.y[data.test_mask] + 1) % 3
    first, second = (fit(each, 2.0) for each in (data, other))
    assert sorted(first.learned.tolist()) == (masks < 2).nonzero().squeeze(1).tolist()
    assert first.about["scores"]["accuracy"] > 0.6
    assert second.about["scores"]["accuracy"] < 0.4


def test_without_a_train_mask_test_nodes_are_not_learned_from():
    data = planted(400, "within")
    data.test_mask = torch.arange(400) % 4 == 0
    model = fit(data)
    assert sorted(model.learned.tolist()) == (~data.test_mask).nonzero().squeeze(1).tolist()
    assert model.about["split"]["test"] == data.test_mask.nonzero().squeeze(1).tolist()
    data.train_mask = torch.zeros(400, dtype=torch.bool)
    with pytest.raises(InputError, match="train_mask: labelled nodes of at least 2 classes"):
        fit(data)


def test_one_class_is_refused():
    data = planted(30, "within")
    data.y[:] = 0
    with pytest.raises(InputError, match="at least 2 classes"):
        fit(data)
