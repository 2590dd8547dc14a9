"""Presets as files: those that a search has found, with their provenance, and those of the package, judged alike."""

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from graphpartner.graph.datasets import load_graph
from graphpartner.lab.search.judgement import Judgement, class_weights, development, judge_settings, ranked
from graphpartner.lab.search.search import SearchResult
from graphpartner.system.files import write_atomically
from graphpartner.training.presets import FAMILIES, FOLDER, preset
from graphpartner.training.settings import Settings

FIRST = 1_000  # splits of a search begin at 0
KEYS = ("provenance", "saw_test", "validation", "nll", "judged_on", "held_out", "settings")
HEADER = """# Settings for {graph}. Whatever is not named has its default in graphpartner.training.settings.Settings.
# published: Table 1 of the paper, test accuracy in percent, mean and standard deviation.
# best: the family that the plain name stands for. validation: mean accuracy in percent over judged_on development
# splits; nll: mean −log p there; held_out: whether both are of validation nodes that stopped no run.
published: {published}
best: {best}
"""


def write_preset(
    folder: Path,
    graph: str,
    family: str,
    found: SearchResult,
    splits: int,
    drawn: str,
    rule: str,
    held: str | None = None,
    starts: Sequence[Settings] = (),
    fixed: Sequence[str] = (),
    saw_test: bool = False,
) -> Path:
    """Write the winner of a search as ``GRAPH-FAMILY.yaml``, with what it was judged on and the other finalists.

    The provenance tells whether it is one of the ``starts``, which may come from anywhere, and what was ``fixed`` by
    --set; ``saw_test`` whether test accuracy played a part in a preset that it builds on.
    """
    command = command_line(f"gpnn search {graph} --family {family}", held, fixed)
    provenance = (
        f"{command}: best of {found.trials} configurations over {splits} {drawn}, judged on the half of the validation "
        f"nodes that stopped no run, {len(found.finalists)} finalists judged again on {2 * splits} others "
        f"({100 * found.judged.accuracy:.2f} %): {rule}"
    )
    winner = found.settings.replace(epochs=Settings().epochs)
    if winner in [start.replace(epochs=Settings().epochs) for start in starts]:
        provenance += "; the winner is one of the settings it began at"
    finalists = [
        {
            "search": round(before, 4),
            "accuracy": round(100 * after.accuracy, 3),
            "nll": round(after.nll, 4),
            "settings": changes_from_defaults(settings),
        }
        for settings, before, after in found.finalists
    ]
    file = folder / f"{graph}-{family}.yaml"
    write_preset_file(file, graph, family, provenance, winner, finalists, saw_test)
    return file


def write_preset_file(
    file: Path,
    graph: str,
    family: str,
    provenance: str,
    settings: Settings,
    finalists: Sequence[dict[str, Any]] = (),
    saw_test: bool = False,
) -> None:
    """Write a preset as :func:`graphpartner.preset` reads it from a file."""
    import yaml

    content = {"graph": graph, "family": family, "provenance": provenance, "saw_test": saw_test}
    content |= {"settings": changes_from_defaults(settings)} | ({"finalists": list(finalists)} if finalists else {})
    write_atomically(file, yaml.safe_dump(content, sort_keys=False, width=100).encode())


def command_line(command: str, held: str | None, fixed: Sequence[str]) -> str:
    """Return a command with the preset it holds, a file without its folder, and the settings it fixes."""
    kept = Path(held).name if held and held.endswith(".yaml") else held
    return " --set ".join([command + (f" --hold {kept}" if kept else ""), *fixed])


def changes_from_defaults(settings: Settings) -> dict[str, Any]:
    """Return what differs from the defaults, numbers in four digits: a search knows no more."""
    default = Settings()
    values = {item.name: getattr(settings, item.name) for item in dataclasses.fields(settings)}
    return {
        name: float(f"{value:.4g}") if isinstance(value, float) else value
        for name, value in values.items()
        if value != getattr(default, name)
    }


def update_presets(
    files: Sequence[Path],
    graphs: Sequence[str] = (),
    families: Sequence[str] = (),
    *,
    only_new: bool = False,
    splits: int = 32,
    device: str | torch.device = "auto",
    root: str | None = None,
    folder: Path = FOLDER,
    on_line: Callable[[str], None] = print,
) -> None:
    """Take presets that ``gpnn search`` has found into the package, and name the best family of each graph.

    All families of these graphs and every file are judged on the same development splits, by which no search has
    chosen, on validation nodes that stopped no run. A file replaces the preset of its graph and family where it is
    better: higher in mean accuracy, or within a standard error of it and higher in likelihood. ``best`` becomes the
    best family by the same rule. No test label is looked at.

    With ``families``, these alone are judged, and those of the files; ``best`` is then the best of those judged alike,
    if it was one of them. With ``only_new``, figures of as many splits are kept.
    """
    import yaml

    found = []
    for file in files:
        preset(str(file))  # raises an InputError where it is no preset
        found.append(yaml.safe_load(file.read_text("utf-8")))
    for graph in sorted({*graphs, *(entry["graph"] for entry in found)}):
        file = folder / f"{graph}.yaml"
        content = yaml.safe_load(file.read_text())
        presets, new = content["presets"], [entry for entry in found if entry["graph"] == graph]
        seen = development(load_graph(graph, root), splits, FIRST)
        seen.class_weights = class_weights(seen, Settings().replace(**presets["tuned"]["settings"]), device)
        nodes, alike = int(seen.judge_mask.any(0).sum()), {"judged_on": splits, "held_out": True}
        chosen = {*(families or presets), *(entry["family"] for entry in new)}
        entries = [(family, entry) for family, entry in presets.items() if family in chosen]
        for name, entry in [*entries, *((f"{entry['family']}, new", entry) for entry in new)]:
            if not (only_new and alike.items() <= entry.items()):
                (judged,) = judge_settings(seen, [Settings().replace(**entry["settings"])], device)
                figures = {"validation": round(100 * judged.accuracy, 2), "nll": round(judged.nll, 4)}
                entry |= figures | alike
            on_line(f"{graph}/{name}: {entry['validation']} %, NLL {entry['nll']}")
        for entry in new:
            presets[entry["family"]] = _better([presets.get(entry["family"], entry), entry], nodes)
        comparable = {family: entry for family, entry in presets.items() if alike.items() <= entry.items()}
        if content["best"] in comparable:
            winner = _better(list(comparable.values()), nodes)
            content["best"] = next(family for family, entry in comparable.items() if entry is winner)
        ordered = {family: presets[family] for family in FAMILIES if family in presets}
        kept = {family: {key: entry[key] for key in KEYS if key in entry} for family, entry in ordered.items()}
        head = HEADER.format(graph=graph, published=content["published"], best=content["best"])
        write_atomically(file, (head + yaml.safe_dump({"presets": kept}, sort_keys=False, width=100)).encode())


def _better(entries: list[dict[str, Any]], nodes: int) -> dict[str, Any]:
    """Return the best of these presets by the rule of a search, judged on a number of different nodes."""
    return entries[ranked([Judgement(entry["validation"] / 100, entry["nll"]) for entry in entries], nodes)[0]]
