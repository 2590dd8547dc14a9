import json
import math

import pytest
import torch

from graphpartner.enhance.join import attribute_graph
from graphpartner.enhance.quality import edge_quality, inspect_graph
from graphpartner.graph.datasets import load_dataset
from graphpartner.graph.record import GraphRecord
from graphpartner.system.errors import InputError
from tests.lab.pages.toy import everyone, star

PATH = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])
WORDS = torch.tensor([[1.0, 1, 0, 0], [1, 0, 0, 0], [0, 1, 1, 0], [1, 1, 1, 1]])
HALF = 2**-0.5

TABLE = {  # kept, new, Rate−, Sim−, Rate*, Sim*, share alone; k = 3, t = 0.4
    "cora": (1_292, 792, "81.00", "0.1677", "90.15", "0.5321", 73),
    "citeseer": (1_514, 774, "73.77", "0.1906", "84.75", "0.5923", 70),
    "pubmed": (393_706, 374_200, "80.24", "0.2719", "78.33", "0.4972", 17),
    "coauthor-cs": (828_584, 750_808, "80.81", "0.3997", "90.21", "0.4860", 8),
    "amazon-photo": (6_828_658, 6_685_668, "82.72", "0.4876", "33.58", "0.5697", 24),
    "amazon-computers": (36_084_500, 35_782_908, "77.72", "0.4896", "23.86", "0.5638", 24),
}


def test_four_nodes_by_hand() -> None:
    attribute = attribute_graph(WORDS, PATH, k=3, threshold=0.5)
    quality = edge_quality(WORDS, PATH, torch.tensor([0, 0, 1, -1]), attribute)
    assert quality.num_original == 6
    assert quality.num_original_judged == 4  # node 3 has no label
    assert quality.original_rate == 0.5
    assert math.isclose(quality.original_similarity, (HALF + 0 + HALF) / 3, rel_tol=1e-6)
    assert (quality.num_kept, quality.num_new) == (10, 6)  # 0–2, 0–3, 1–3 both ways
    assert quality.num_new_judged == 2
    assert quality.new_rate == 0
    assert math.isclose(quality.new_similarity, (0.5 + HALF + 0.5) / 3, rel_tol=1e-6)
    assert quality.alone_share == 0


def test_a_mask_hides_labels() -> None:
    attribute = attribute_graph(WORDS, PATH, k=3, threshold=0.5)
    mask = torch.tensor([True, True, False, False])
    quality = edge_quality(WORDS, PATH, torch.tensor([0, 0, 1, 1]), attribute, mask)
    assert (quality.num_original_judged, quality.original_rate) == (2, 1.0)
    assert math.isnan(quality.new_rate)


def test_wrong_shapes_are_named() -> None:
    attribute = attribute_graph(WORDS, PATH)
    with pytest.raises(InputError, match="y holds 1 labels for 4 nodes: must hold one label per node"):
        edge_quality(WORDS, PATH, torch.tensor([0]), attribute)
    with pytest.raises(InputError, match=r"mask holds 4 values of type torch\.float32: must hold 4 booleans"):
        edge_quality(WORDS, PATH, torch.zeros(4, dtype=torch.long), attribute, torch.ones(4))


@pytest.mark.parametrize("name", TABLE)
def test_table_3(name: str, request: pytest.FixtureRequest) -> None:
    root = None if name == "citeseer" else request.getfixturevalue("data_root")  # CiteSeer is built in
    data = load_dataset(name, root)
    quality = edge_quality(data.x, data.edge_index, data.y, attribute_graph(data.x, data.edge_index))
    kept, new, *printed, alone = TABLE[name]
    assert (quality.num_kept, quality.num_new) == (kept, new)
    assert printed == [
        f"{100 * quality.original_rate:.2f}",
        f"{quality.original_similarity:.4f}",
        f"{100 * quality.new_rate:.2f}",
        f"{quality.new_similarity:.4f}",
    ]
    assert round(100 * quality.alone_share) == alone


def advice(data: GraphRecord, mask: torch.Tensor | None = None) -> list[str]:
    return inspect_graph(data, everyone(data) if mask is None else mask, k=2).advice


def test_wrong_label_edges() -> None:
    (sentence,) = advice(star([0] + [0, 1] * 6))
    assert "mostly wrong-label edges: of 132 new pairs between training nodes only 45%" in sentence
    assert "set beta to 1" in sentence


def test_right_label_edges() -> None:
    (sentence,) = advice(star([1] + [0] * 12))
    assert "of 132 new pairs between training nodes 100% join the same class (by chance 86%)" in sentence
    assert "beta below 1 should help" in sentence


def test_too_few_pairs_to_judge() -> None:
    data = star([0] + [0, 1] * 6)
    mask = torch.arange(13) < 4  # nodes 1, 2 and 3 make 6 ordered pairs
    (sentence,) = advice(data, mask)
    assert "only 6 new ones join two training nodes, too few to judge" in sentence


def test_many_more_pairs_than_edges() -> None:
    many = advice(star([0] * 61))
    assert "That is 30 times the edges there are" in many[-1]
    assert len(advice(star([0] * 13))) == 1


def test_isolated_and_empty_nodes() -> None:
    data = star([0] * 13)
    data.edge_index = data.edge_index[:, (data.edge_index != 12).all(0)]
    data.x[3:5] = 0
    first, second, _ = advice(data)
    assert first.startswith("1 node has no edge: there both branches see")
    assert second.startswith("2 nodes have no features")


def test_labels_outside_the_mask_are_not_read() -> None:
    data = load_dataset("citeseer")
    seen = inspect_graph(data, data.train_mask)
    data.y[~data.train_mask & (data.y >= 0)] = 0
    assert inspect_graph(data, data.train_mask).advice == seen.advice


def test_built_in_graph() -> None:
    data = load_dataset("citeseer")
    found = inspect_graph(data, data.train_mask)
    counts = found.statistics
    assert (counts.num_isolated, counts.num_empty, counts.num_unlabelled) == (48, 15, 15)
    assert (found.homophily, found.homophily_edges) == (0.25, 8)
    assert found.plan.pairs == pytest.approx(141_442, abs=3 * found.plan.pairs_error)
    assert found.new_pairs.judged == 4


def test_a_json_object_without_nan() -> None:
    data = star([0, 1, 1])
    mask = torch.tensor([True, True, False])
    found = inspect_graph(data, mask).asdict()
    assert found["new_pairs"] == {"rate": None, "judged": 0}
    json.dumps(found, allow_nan=False)
    apart = inspect_graph(data, torch.tensor([False, True, True])).asdict()
    assert (apart["homophily"], apart["homophily_edges"]) == (None, 0)
    json.dumps(apart, allow_nan=False)


def test_a_graph_with_nan_is_refused() -> None:
    data = star([0, 1, 1])
    data.x[1, 0] = torch.nan
    with pytest.raises(InputError, match="nan at node 1"):
        inspect_graph(data, everyone(data))
