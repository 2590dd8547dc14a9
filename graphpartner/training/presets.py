"""Presets: settings for a graph, with where they come from and what the paper reports."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphpartner.system.errors import InputError
from graphpartner.training.settings import Settings

FOLDER = Path(__file__).parent / "presets"
FAMILIES = ("paper", "tuned", "views", "distilled", "best")
KEYS: dict[str, type] = {"graph": str, "family": str, "provenance": str, "saw_test": bool, "settings": dict}
"""What a file that ``gpnn search`` wrote has; ``finalists`` may come with it."""
KINDS = {str: "text", bool: "true or false", dict: "names and values"}


@dataclass(frozen=True)
class Preset:
    """Settings for one graph.

    Attributes:
        graph: the graph they were chosen for.
        family: ``paper`` is the paper's method and nothing else; ``tuned`` the paper's parts in any combination;
            ``views`` and ``distilled`` go beyond the paper; ``best`` is the best there is.
        settings: the hyperparameters.
        provenance: who chose them, and on what.
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


def preset(name: str) -> Preset:
    """A preset by name: ``"citeseer/paper"``, ``"citeseer/tuned"``, or ``"citeseer"`` for the best there is.

    A name that ends in ``.yaml`` is a file that ``gpnn search`` wrote.
    """
    if name.endswith(".yaml"):
        return _from_file(Path(name))
    graph, _, family = name.partition("/")
    content = _read(graph)
    family = family or "best"
    chosen = content["best"] if family == "best" else family
    if chosen not in content["presets"]:
        known = ", ".join(f"{graph}/{each}" for each in content["presets"])
        raise InputError(f"unknown preset {name!r}: must be one of {graph}, {known}")
    entry: dict[str, Any] = content["presets"][chosen]
    mean, sd = content["published"]
    settings = Settings().replace(**entry["settings"])
    return Preset(graph, chosen, settings, entry["provenance"], entry["saw_test"], (mean, sd))


def _from_file(path: Path) -> Preset:
    import yaml

    try:
        entry = yaml.safe_load(path.read_text("utf-8"))
    except OSError as error:
        raise InputError(f"preset {path}: cannot be read ({error.strerror})") from None
    except (yaml.YAMLError, UnicodeError) as error:
        raise InputError(f"preset {path}: is no YAML file ({error})") from None
    if not isinstance(entry, dict):
        raise InputError(f"preset {path}: must hold the keys {', '.join(KEYS)}, as gpnn search writes them")
    for key, kind in KEYS.items():
        if not isinstance(entry.get(key), kind):
            found = f"{key} = {entry[key]!r}" if key in entry else f"the key {key} is missing"
            raise InputError(f"preset {path}: {found}; must be {KINDS[kind]}")
    if unknown := sorted(map(str, entry.keys() - KEYS - {"finalists"})):
        raise InputError(f"preset {path}: unknown key {unknown[0]}; must be one of {', '.join(KEYS)}")
    try:
        mean, sd = _read(entry["graph"])["published"]
        settings = Settings().replace(**entry["settings"])
    except InputError as error:
        raise InputError(f"preset {path}: {error}") from None
    return Preset(entry["graph"], entry["family"], settings, entry["provenance"], entry["saw_test"], (mean, sd))


def preset_names() -> list[str]:
    """All presets, as ``graph/family``."""
    graphs = sorted(path.stem for path in FOLDER.glob("*.yaml"))
    return [f"{graph}/{family}" for graph in graphs for family in _read(graph)["presets"]]


def _read(graph: str) -> dict[str, Any]:
    import yaml

    files = {path.stem: path for path in sorted(FOLDER.glob("*.yaml"))}
    if graph not in files:
        raise InputError(f"no preset for the graph {graph!r}: there are presets for {', '.join(files)}")
    content: dict[str, Any] = yaml.safe_load(files[graph].read_text())
    return content
