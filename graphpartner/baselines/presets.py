"""Settings of a baseline for a graph, with where they come from and what its authors report."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphpartner.train.settings import Checked

FOLDER = Path(__file__).parent / "presets"


@dataclass(frozen=True)
class BaselinePreset:
    """Settings of one baseline for one graph.

    Attributes:
        name: of the baseline.
        graph: the graph they were chosen for.
        settings: the hyperparameters.
        provenance: who chose them, and on what.
        published: the accuracy to compare with, in percent: mean and standard deviation (None where none is given);
            None where nobody has published one.
        published_source: where it stands.
    """

    name: str
    graph: str
    settings: Any
    provenance: str
    published: tuple[float, float | None] | None = None
    published_source: str = ""


def read_preset(name: str, graph: str, defaults: Checked) -> BaselinePreset:
    """The preset of a graph; one that the file does not know gets the defaults."""
    import yaml

    content: dict[str, Any] = yaml.safe_load((FOLDER / f"{name}.yaml").read_text())
    entry = content["graphs"].get(graph)
    if entry is None:
        return BaselinePreset(name, graph, defaults, "defaults")
    published = entry.get("published")
    return BaselinePreset(
        name,
        graph,
        defaults.replace(**entry["settings"]),
        entry["source"],
        None if published is None else (float(published[0]), None if len(published) == 1 else float(published[1])),
        entry.get("published_source", content.get("published_source", "")) if published else "",
    )
