import math

import pytest
import torch

from graphpartner.enhance.join import attribute_graph
from graphpartner.enhance.quality import edge_quality
from graphpartner.graph.datasets import load_dataset
from graphpartner.system.errors import InputError

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
    with pytest.raises(InputError, match="y must"):
        edge_quality(WORDS, PATH, torch.tensor([0]), attribute)
    with pytest.raises(InputError, match="mask"):
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
