import copy
import itertools
import json
import time

import pytest
import torch

from graphpartner.graph.catalogue import CATALOGUE
from graphpartner.graph.datasets import load_graph
from graphpartner.lab.search.judgement import development, judge_settings, rule
from graphpartner.lab.search.preset_files import write_preset
from graphpartner.lab.search.search import FINALISTS, finished, judge_alike, open_study, quantile, search
from graphpartner.lab.search.space import FAMILIES, VIEWS, Between, Choice, only, space_of
from graphpartner.system.errors import InputError
from graphpartner.training.presets import preset
from graphpartner.training.settings import Settings
from tests.training.graphs import toy

BASE = Settings(hidden_channels=8, epochs=8, threshold=0.3)
SPACE = {"num_steps": Choice((1, 3)), "alpha": Between(0.1, 0.9), "lr": Between(0.001, 0.1, log=True)}


def look(data, study, trials, **options):
    given = {"splits": 4, "replicas": 8, "base": BASE, "device": "cpu"} | options
    return search(data, SPACE, study, trials=trials, **given)


def test_a_search_judges_groups_that_share_their_shape():
    study = open_study("sqlite://", "toy")
    reports = []
    found = look(toy(), study, 12, progress=lambda done, total: reports.append((done, total)))
    assert found.trials == len(finished(study)) == 12
    for start in (0, 4, 8):
        assert len({trial.params["num_steps"] for trial in study.trials[start : start + 4]}) == 1
    whole = [trial for trial in study.trials if trial.state.name == "COMPLETE"]
    assert 3 <= len(whole) < 12  # the others were spared most of their splits
    best = sorted((trial.value for trial in whole), reverse=True)[:FINALISTS]
    assert best == sorted((search for _, search, _ in found.finalists), reverse=True)
    assert found.judged == found.finalists[0][2]
    assert found.judged.accuracy >= max(final.accuracy for _, _, final in found.finalists) - 0.2
    assert {settings.epochs for settings, _, _ in found.finalists} == {8}
    assert reports[0] == (0, 12)
    assert reports[-1] == (12, 12)


def test_settings_of_any_shape_are_judged_as_if_alone():
    seen = development(toy(), 2)
    settings = [BASE.replace(num_steps=steps, alpha=alpha) for steps, alpha in ((1, 0.2), (3, 0.4), (1, 0.6), (3, 0.1))]
    together = judge_alike(seen, settings, "cpu")
    for each, found in zip(settings, together, strict=True):
        (alone,) = judge_settings(seen, [each], "cpu")
        assert found.accuracy == alone.accuracy
        assert found.nll == pytest.approx(alone.nll, rel=1e-4)


def test_test_labels_change_nothing():
    data, other = toy(), toy()
    other.y = torch.where(data.train_mask | data.val_mask, data.y, (data.y + 1) % 3)
    one, two = (look(each, open_study("sqlite://", "toy"), 8) for each in (data, other))
    assert one.settings == two.settings
    assert one.judged == two.judged


def test_a_second_call_goes_on(tmp_path):
    address = f"sqlite:///{tmp_path / 'studies.db'}"
    assert look(toy(), open_study(address, "toy"), 4).trials == 4
    again = open_study(address, "toy")
    assert look(toy(), again, 8).trials == 8
    assert look(toy(), open_study(address, "toy"), 8).trials == 8
    assert [trial.number for trial in again.trials] == list(range(8))
    assert len({json.dumps(trial.params, sort_keys=True) for trial in again.trials}) == 8  # none twice


def test_a_start_that_had_no_turn_has_it_in_the_second_call(tmp_path):
    address = f"sqlite:///{tmp_path / 'studies.db'}"
    starts = [BASE.replace(alpha=0.25), BASE.replace(alpha=0.5), BASE.replace(alpha=0.75)]
    look(toy(), open_study(address, "toy"), 1, starts=starts)
    again = open_study(address, "toy")
    look(toy(), again, 12, starts=starts)
    tried = [trial.params["alpha"] for trial in again.trials]
    assert [tried.count(start.alpha) for start in starts] == [1, 1, 1]


def test_it_begins_where_it_is_told_to():
    study = open_study("sqlite://", "toy")
    look(toy(), study, 8, starts=[BASE.replace(num_steps=3, alpha=0.25, lr=50.0)])
    params = study.trials[0].params
    assert (params["num_steps"], params["alpha"]) == (3, 0.25)
    assert params["lr"] <= 0.1  # 50 is outside of the space, and left to the sampler


def test_what_it_begins_at_is_judged_on_all_splits():
    study = open_study("sqlite://", "toy")
    look(toy(), study, 12, starts=[BASE.replace(num_steps=1, alpha=0.9, lr=0.001), BASE.replace(num_steps=3, lr=0.001)])
    assert [study.trials[place].state.name for place in (0, 4)] == ["COMPLETE"] * 2  # bad as they are
    first = [trial.intermediate_values[2] for trial in study.trials]
    assert first[0] < quantile(first)
    assert any(trial.state.name == "PRUNED" for trial in study.trials)


@pytest.mark.parametrize("splits", [1, 2])
def test_where_there_are_few_splits_all_are_seen_at_once(splits):
    study = open_study("sqlite://", "toy")
    found = look(toy(), study, 4, splits=splits, replicas=4)
    assert [trial.state.name for trial in study.trials] == ["COMPLETE"] * 4
    seen = development(toy(), splits)
    (alone,) = judge_settings(seen, [found.settings], "cpu")
    assert found.finalists[0][1] == pytest.approx(alone.merit, rel=1e-4)


def test_a_study_goes_on_only_as_it_was_begun():
    study = open_study("sqlite://", "toy")
    look(toy(), study, 4)
    for changed, sentence in (
        ({"splits": 8}, "study toy was begun with splits = 4, not 8"),
        ({"base": BASE.replace(beta=0.5)}, f"begun with beta = {BASE.beta}, not 0.5"),
    ):
        with pytest.raises(InputError, match=sentence):
            look(toy(), study, 8, **changed)
    with pytest.raises(InputError, match=r"begun with num_steps = Choice\(values=\(1, 3\)\), not 10: go on"):
        search(toy(), {"alpha": Between(0.1, 0.9)}, study, trials=8, splits=4, base=BASE, device="cpu")
    assert len(finished(study)) == 4
    study.set_user_attr("plan", {name: value for name, value in study.user_attrs["plan"].items() if name != "judges"})
    with pytest.raises(InputError, match="begun with judges = None, not nodes that stopped no run"):
        look(toy(), study, 8)  # before there were such nodes


def test_no_time_is_an_error():
    with pytest.raises(InputError, match="no configuration was judged"):
        look(toy(), open_study("sqlite://", "toy"), 8, seconds=0)


def test_it_tells_how_far_it_is_by_what_ends_it_first(monkeypatch):
    def told(trials, seconds):
        reports = []
        study = open_study("sqlite://", "toy")
        look(toy(), study, trials, seconds=seconds, progress=lambda *report: reports.append(report))
        return reports

    assert told(16, 1e6) == [(0, 1000), (4, 16), (8, 16), (12, 16), (16, 16)]
    clock = itertools.count(step=0.1)  # so that a busy machine changes nothing
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    by_time = told(10**9, 1)[:-1]
    assert {whole for _, whole in by_time} == {1000}
    assert sorted(by_time) == by_time
    assert by_time[-1][0] > by_time[0][0]


def test_an_address_that_is_none():
    with pytest.raises(InputError, match="--storage nonsense: cannot be opened"):
        open_study("nonsense", "toy")


def test_a_file_of_studies_that_is_none(tmp_path):
    file = tmp_path / "studies.db"
    file.write_text("mine")
    with pytest.raises(InputError, match=r"studies\.db: holds no studies .*; move it away") as error:
        open_study(file, "toy")
    assert "--storage" not in str(error.value)
    assert file.read_text() == "mine"


def test_three_tenths_go_through():
    assert quantile([0.1 * value for value in range(10)]) == pytest.approx(0.7)
    assert quantile([0.5]) == 0.5


def test_the_preset_it_writes_can_be_trained(tmp_path):
    found = look(toy(), open_study("sqlite://", "toy"), 4)
    told = "random splits", rule(development(load_graph("citeseer"), 1))
    file = write_preset(tmp_path, "cora", "tuned", found, 4, *told, "cora/tuned", fixed=["beta=1", "k=2"])
    read = preset(str(file))
    assert (read.graph, read.family, read.saw_test) == ("cora", "tuned", False)
    assert read.published == (86.0, 0.4)
    assert read.settings.epochs == 1000
    assert read.settings.alpha == pytest.approx(found.settings.alpha, rel=1e-3)
    assert "4 configurations" in read.provenance
    assert "--hold cora/tuned --set beta=1 --set k=2: best of 4" in read.provenance
    assert read.provenance.endswith("no test label was looked at")
    start = found.settings.replace(epochs=30)
    began = preset(str(write_preset(tmp_path, "cora", "tuned", found, 4, *told, starts=[BASE, start], saw_test=True)))
    assert began.saw_test  # a look at test accuracy is never forgotten
    assert began.provenance.endswith("the winner is one of the settings it began at")
    with pytest.raises(InputError, match="cannot be read"):
        preset(str(tmp_path / "none.yaml"))
    file.write_text("graph: cora")
    with pytest.raises(InputError, match="the key family is missing"):
        preset(str(file))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("graph", CATALOGUE)
def test_every_corner_of_every_space_is_a_setting(graph, family):
    space = space_of(graph, family)
    for corner in (0, -1):
        values = {
            name: each.values[corner] if isinstance(each, Choice) else (each.low, each.high)[corner]
            for name, each in space.items()
        }
        settings = Settings(**values)
        if family == "paper":
            assert settings.views == 1
            assert 0 < settings.beta < 1
            kind = ("cosine", "neighbors", 48) if graph == "citeseer" else ("inner", "self", settings.num_steps)
            assert (settings.score, settings.positives, settings.num_steps) == kind


def test_an_unknown_family():
    with pytest.raises(InputError, match="must be one of paper, tuned"):
        space_of("cora", "finest")


def test_what_a_family_adds_to_settings_that_are_held():
    distilled = {"teachers", "generations", "lambda_distill", "prior_temperature"}
    assert set(space_of("cora", "distilled", held=True)) == distilled
    assert set(space_of("cora", "views", held=True)) == {*VIEWS, "prior_temperature"}
    with pytest.raises(InputError, match="'tuned' adds nothing"):
        space_of("cora", "tuned", held=True)


def test_without_a_public_split_classes_count_as_often_as_they_are(tmp_path):
    data = toy(n=200)
    del data.train_mask, data.val_mask, data.test_mask
    address = f"sqlite:///{tmp_path / 'studies.db'}"
    study = open_study(address, "toy")
    look(data, study, 4)
    weights = study.user_attrs["class_weights"]
    assert sum(weights) == pytest.approx(1)
    look(data, open_study(address, "toy"), 8)
    assert open_study(address, "toy").user_attrs["class_weights"] == weights


def test_a_family_takes_from_a_start_only_what_is_its_own():
    start = Settings(views=2, lambda_views=1.0, teachers=4, prior_temperature=0.5, alpha=0.3)
    assert only("paper", start) == Settings(alpha=0.3)
    assert only("tuned", start) == Settings(alpha=0.3, prior_temperature=0.5)
    assert only("views", start) == start.replace(teachers=0)
    assert only("distilled", start) == start
    assert only("distilled", start.replace(groups=4)) == start


def test_what_a_search_has_not_seen_depends_on_the_splits():
    public = load_graph("citeseer")
    without = copy.copy(public)
    for name in ("train_mask", "val_mask", "test_mask"):
        del without[name]
    assert rule(development(public, 2)).endswith("; no test label was looked at")
    assert rule(development(without, 2)).endswith("; no label of a split's own test nodes was looked at")
