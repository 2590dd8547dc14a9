import pytest

from graphpartner.system.errors import InputError
from graphpartner.training.presets import FOLDER, preset, preset_names
from graphpartner.training.settings import Settings

PUBLISHED = {
    "cora": (86.0, 0.4),
    "citeseer": (76.5, 0.5),
    "pubmed": (80.8, 0.4),
    "coauthor-cs": (93.1, 0.5),
    "amazon-computers": (84.8, 0.5),
    "amazon-photo": (91.6, 0.6),
}


def test_every_file_is_a_graph_and_every_graph_has_a_file() -> None:
    assert {path.stem for path in FOLDER.glob("*.yaml")} == set(PUBLISHED)
    assert {name.split("/")[0] for name in preset_names()} == set(PUBLISHED)


@pytest.mark.parametrize("graph", PUBLISHED)
def test_both_families_and_a_best_one(graph: str) -> None:
    assert {f"{graph}/paper", f"{graph}/tuned"} <= set(preset_names())
    assert preset(graph) == preset(f"{graph}/best")
    assert f"{graph}/{preset(graph).family}" in preset_names()


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_is_whole(name: str) -> None:
    found = preset(name)
    assert f"{found.graph}/{found.family}" == name
    assert found.published == PUBLISHED[found.graph]
    assert isinstance(found.settings, Settings)
    assert Settings(**found.settings.asdict()) == found.settings  # in range
    assert found.settings != Settings()
    assert len(found.provenance) > 20
    assert isinstance(found.saw_test, bool)


@pytest.mark.parametrize("graph", PUBLISHED)
def test_the_paper_family_is_the_paper_and_nothing_else(graph: str) -> None:
    settings = preset(f"{graph}/paper").settings
    assert 0 < settings.beta < 1
    assert 0 < settings.alpha < 1
    assert (settings.k, settings.temperature) == (3, 2.0)
    assert settings.lambda_rt > 0
    assert settings.lambda_cs > 0
    if graph == "citeseer":
        assert (settings.score, settings.positives, settings.num_steps) == ("cosine", "neighbors", 48)
    else:
        assert (settings.score, settings.positives) == ("inner", "self")


@pytest.mark.parametrize("name", ["karate", "karate/paper", "", "/paper"])
def test_an_unknown_graph_is_named(name: str) -> None:
    with pytest.raises(InputError, match=r"no preset for the graph .*citeseer"):
        preset(name)


def test_an_unknown_family_is_named() -> None:
    with pytest.raises(InputError, match="unknown preset 'cora/fast': must be one of cora, cora/paper, cora/tuned"):
        preset("cora/fast")
