"""Presets: settings for a graph, with their provenance and the accuracy that the paper reports."""

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from graphpartner.system.errors import InputError
from graphpartner.system.schema import check_content, read_yaml
from graphpartner.training.settings import Settings

FOLDER = Path(__file__).parent / "presets"
FAMILIES = ("paper", "tuned", "views", "distilled", "best")


@dataclass(frozen=True)
class Preset:
    """Settings for one graph.

    Attributes:
        graph: the graph they were chosen for.
        family: ``paper`` is the paper's method and nothing else; ``tuned`` the paper's parts in any combination;
            ``views`` and ``distilled`` go beyond the paper.
        settings: the hyperparameters.
        provenance: the command or person that chose them, and the data they were chosen on.
        saw_test: whether test accuracy was looked at when they were chosen, and no search on validation nodes has
            chosen them since. Their results show what the method can do, not what a fair selection finds.
        published: the paper's accuracy on this graph, in percent: mean and standard deviation.
    """

    graph: str
    family: str
    settings: Settings
    provenance: str
    saw_test: bool
    published: tuple[float, float]


@dataclass(frozen=True)
class PresetFile:
    """The content of a file written by ``gpnn search``."""

    graph: str
    family: str
    provenance: str
    saw_test: bool
    settings: dict[str, Any]
    finalists: list[dict[str, Any]] = field(default_factory=list)


def preset(name: str) -> Preset:
    """Return a preset by name: ``"citeseer/paper"``, ``"citeseer/tuned"``, or ``"citeseer"`` for the best there is.

    A name that ends in ``.yaml`` is a file written by ``gpnn search``.
    """
    if name.endswith(".yaml"):
        return _from_file(Path(name))
    graph, _, family = name.partition("/")
    content = _packaged(graph)
    family = content["best"] if family in ("", "best") else family
    if family not in content["presets"]:
        known = ", ".join(f"{graph}/{each}" for each in content["presets"])
        raise InputError(f"unknown preset {name!r}: must be one of {graph}, {known}")
    entry: dict[str, Any] = content["presets"][family]
    mean, sd = content["published"]
    settings = Settings().replace(**entry["settings"])
    return Preset(graph, family, settings, entry["provenance"], entry["saw_test"], (mean, sd))


def preset_names() -> list[str]:
    """Return the names of all presets, as ``graph/family``."""
    graphs = sorted(path.stem for path in FOLDER.glob("*.yaml"))
    return [f"{graph}/{family}" for graph in graphs for family in _packaged(graph)["presets"]]


def _from_file(path: Path) -> Preset:
    try:
        content = read_yaml(path)
    except InputError as error:
        keys = ", ".join(item.name for item in fields(PresetFile))
        raise InputError(f"{error}; a preset file holds {keys}") from None
    entry = check_content(PresetFile, content, path)
    try:
        mean, sd = _packaged(entry.graph)["published"]
        settings = Settings().replace(**entry.settings)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    return Preset(entry.graph, entry.family, settings, entry.provenance, entry.saw_test, (mean, sd))


def _packaged(graph: str) -> dict[str, Any]:
    files = {path.stem: path for path in sorted(FOLDER.glob("*.yaml"))}
    if graph not in files:
        raise InputError(f"no preset for the graph {graph!r}: must be one of {', '.join(files)}")
    return read_yaml(files[graph])
