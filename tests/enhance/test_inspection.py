import json

import pytest
import torch

from graphpartner.enhance.inspection import inspect_graph
from graphpartner.graph.datasets import load_dataset
from graphpartner.system.errors import InputError
from tests.lab.pages.toy import everyone, star


def advice(data, mask=None):
    return inspect_graph(data, everyone(data) if mask is None else mask, k=2).advice


def test_wrong_label_edges():
    (sentence,) = advice(star([0] + [0, 1] * 6))
    assert "mostly wrong-label edges: of 132 new pairs between training nodes only 45%" in sentence
    assert "set beta to 1" in sentence


def test_right_label_edges():
    (sentence,) = advice(star([1] + [0] * 12))
    assert "of 132 new pairs between training nodes 100% join the same class (by chance 86%)" in sentence
    assert "beta below 1 should help" in sentence


def test_too_few_pairs_to_judge():
    data = star([0] + [0, 1] * 6)
    mask = torch.arange(13) < 4  # nodes 1, 2 and 3 make 6 ordered pairs
    (sentence,) = advice(data, mask)
    assert "only 6 new ones join two training nodes, too few to judge" in sentence


def test_more_edges_than_anyone_wants():
    many = advice(star([0] * 61))
    assert "That is 30 times the edges there are" in many[-1]
    assert len(advice(star([0] * 13))) == 1


def test_isolated_and_empty_nodes():
    data = star([0] * 13)
    data.edge_index = data.edge_index[:, (data.edge_index != 12).all(0)]
    data.x[3:5] = 0
    first, second, _ = advice(data)
    assert first.startswith("1 node has no edge: there both branches see")
    assert second.startswith("2 nodes have no features")


def test_labels_outside_the_mask_are_not_read():
    data = load_dataset("citeseer")
    told = inspect_graph(data, data.train_mask)
    data.y[~data.train_mask & (data.y >= 0)] = 0
    assert inspect_graph(data, data.train_mask).advice == told.advice


def test_built_in_graph():
    data = load_dataset("citeseer")
    found = inspect_graph(data, data.train_mask)
    counts = found.statistics
    assert (counts.num_isolated, counts.num_empty, counts.num_unlabelled) == (48, 15, 15)
    assert (found.homophily, found.homophily_edges) == (0.25, 8)
    assert found.plan.pairs == pytest.approx(141_442, abs=3 * found.plan.pairs_error)
    assert found.new_pairs.judged == 4


def test_a_json_object_without_nan():
    data = star([0, 1, 1])
    mask = torch.tensor([True, True, False])
    found = inspect_graph(data, mask).asdict()
    assert found["new_pairs"] == {"rate": None, "judged": 0}
    json.dumps(found, allow_nan=False)
    apart = inspect_graph(data, torch.tensor([False, True, True])).asdict()
    assert (apart["homophily"], apart["homophily_edges"]) == (None, 0)
    json.dumps(apart, allow_nan=False)


def test_a_broken_graph():
    data = star([0, 1, 1])
    data.x[1, 0] = torch.nan
    with pytest.raises(InputError, match="nan at node 1"):
        inspect_graph(data, everyone(data))
