"""Presets of the baselines, and the accuracies their authors report."""

import pytest
import yaml

from graphpartner.lab.baselines.all_baselines import BASELINES, FOLDER, SUPERVISED, baseline_settings
from graphpartner.lab.baselines.dgi import DGISettings
from graphpartner.lab.baselines.grace import GRACESettings
from graphpartner.lab.baselines.mvgrl import MVGRLSettings

GRAPHS = {"cora", "citeseer", "pubmed", "coauthor-cs", "amazon-computers", "amazon-photo"}
CITATION = ("cora", "citeseer", "pubmed")


@pytest.mark.parametrize("name", BASELINES)
def test_every_preset_file_is_whole(name: str) -> None:
    content = yaml.safe_load((FOLDER / f"{name}.yaml").read_text())
    assert set(content) <= {"paper", "published_source", "graphs"}
    assert set(CITATION) <= set(content["graphs"]) <= GRAPHS
    for graph, entry in content["graphs"].items():
        assert set(entry) <= {"source", "settings", "published", "published_source"}
        preset = baseline_settings(name, graph)
        assert preset.settings.asdict().items() >= entry["settings"].items()
        assert preset.provenance == entry["source"]
        if preset.published:
            assert len(preset.published) <= 2
            assert 40 < preset.published[0] < 95
            assert preset.published_source


def test_the_papers_settings() -> None:
    assert baseline_settings("gcn", "cora").settings.hidden_channels == 16
    assert baseline_settings("gat", "pubmed").settings.asdict() == {
        "features": "row", "lr": 0.01, "decay": 0.001, "epochs": 3000, "patience": 100, "hidden_channels": 8,
        "dropout": 0.6, "heads": 8, "output_heads": 8, "layers": 2,
    }  # fmt: skip
    assert baseline_settings("gcnii", "citeseer").settings.layers == 32
    assert baseline_settings("gcnii", "cora").published == (85.5, 0.5)
    assert baseline_settings("gcn", "cora").published == (81.5,)


def test_the_authors_settings_are_the_defaults_of_the_self_supervised() -> None:
    for name, default in (("dgi", DGISettings()), ("mvgrl", MVGRLSettings())):
        assert baseline_settings(name, "cora").settings == default
    assert baseline_settings("mvgrl", "citeseer").settings == MVGRLSettings(sparsify=True, regression_decay=0.01)
    assert GRACESettings().asdict() == {
        "features": "row", "hidden_channels": 128, "projection_channels": 128, "activation": "relu",
        "drop_edges1": 0.2, "drop_edges2": 0.4, "drop_columns1": 0.3, "drop_columns2": 0.4, "temperature": 0.4,
        "lr": 0.0005, "weight_decay": 1e-5, "regression_decay": 0.0, "epochs": 200,
    }  # fmt: skip


def test_an_unknown_graph_gets_the_defaults() -> None:
    preset = baseline_settings("gcn", "karate")
    assert preset.settings == SUPERVISED["gcn"].Settings()
    assert preset.published == ()
    assert preset.provenance == "defaults"
