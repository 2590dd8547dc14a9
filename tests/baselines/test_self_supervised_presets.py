from pathlib import Path

import pytest
import yaml

import graphpartner.baselines
from graphpartner.baselines.dgi import DGI
from graphpartner.baselines.grace import GRACE
from graphpartner.baselines.mvgrl import MVGRL
from graphpartner.graph.catalogue import CATALOGUE

FOLDER = Path(graphpartner.baselines.__file__).parent / "presets"
METHODS = {"dgi": DGI, "mvgrl": MVGRL, "grace": GRACE}


@pytest.mark.parametrize("method", METHODS)
def test_every_graph_has_settings_and_a_published_result(method: str) -> None:
    content = yaml.safe_load((FOLDER / f"{method}.yaml").read_text())
    assert set(content) == {"published", "source", "defaults", "graphs", "provenance"}
    assert set(content["graphs"]) == set(content["published"]) == set(CATALOGUE)
    for graph, changes in content["graphs"].items():
        settings = METHODS[method]().replace(**(content["defaults"] | changes))
        assert settings.features == "row"
        mean, deviation = content["published"][graph]
        assert 70 < mean < 95
        assert 0 < deviation < 2


def test_authors_settings_are_the_defaults() -> None:
    for method in ("dgi", "mvgrl"):
        content = yaml.safe_load((FOLDER / f"{method}.yaml").read_text())
        assert METHODS[method]() == METHODS[method]().replace(**content["defaults"])
    content = yaml.safe_load((FOLDER / "grace.yaml").read_text())
    assert GRACE() == GRACE().replace(**content["defaults"], **content["graphs"]["cora"])
