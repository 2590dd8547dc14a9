"""Takes presets that ``gpnn search`` has found into the package, and says which family is the best of each graph.

    python scripts/collect_presets.py [FILE …] [--graphs cora …] [--new] [--splits 32] [--device auto] [--data ROOT]

All families of these graphs and every FILE are judged on the same development splits, which no search has chosen by,
on validation nodes that stopped no run. A FILE replaces the preset of its graph and family where it is better: higher
in mean accuracy, or within a standard error of it and higher in likelihood. ``best`` becomes the best family by the
same rule. No test label is looked at. With ``--new``, only what comes from a FILE is judged, on as many splits as the
others, which keep their figures.
"""

import argparse
from pathlib import Path
from typing import Any

import yaml

import graphpartner as gp
from graphpartner.experiments.development import development
from graphpartner.experiments.frequencies import estimated
from graphpartner.experiments.judgement import Judgement, judge, ranked
from graphpartner.graph.packed import write_atomically
from graphpartner.train.presets import FAMILIES, FOLDER
from graphpartner.train.settings import Settings

FIRST = 1_000  # splits of a search begin at 0
KEYS = ("provenance", "saw_test", "validation", "surprise", "settings")
HEADER = """# Settings for {graph}. What is not named has the default of graphpartner.train.settings.Settings.
# published: Table 1 of the paper, test accuracy in percent, mean and standard deviation.
# best: what the plain name stands for. validation: mean accuracy in percent on so many development splits as
# judged_on says, surprise: mean −log p there; held_out: both on validation nodes that stopped no run.
published: {published}
best: {best}
judged_on: {splits}
held_out: true
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--graphs", nargs="*", default=[])
    parser.add_argument("--new", action="store_true")
    parser.add_argument("--splits", type=int, default=32)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--data", default=None)
    options = parser.parse_args()
    found = [yaml.safe_load(file.read_text()) for file in options.files]
    for graph in sorted({*options.graphs, *(entry["graph"] for entry in found)}):
        file = FOLDER / f"{graph}.yaml"
        content = yaml.safe_load(file.read_text())
        if options.new and (options.splits != content["judged_on"] or "held_out" not in content):
            parser.error(f"--new: {file.name} must have been judged on {options.splits} splits, on nodes held out")
        new = [entry for entry in found if entry["graph"] == graph]
        collect(content, new, graph, options.splits, options.new, options.device, options.data)
        write_atomically(file, text(graph, content, options.splits).encode())


def collect(
    content: dict[str, Any],
    new: list[dict[str, Any]],
    graph: str,
    splits: int,
    trust: bool,
    device: str,
    root: str | None,
) -> None:
    """Judge what there is and what is new, keep the better of each family, and say which family is the best."""
    data = gp.load_dataset(graph, root)
    seen = development(data, splits, FIRST)
    if data.get("train_mask") is None:
        tuned = Settings().replace(**content["presets"]["tuned"]["settings"])
        seen.class_weights = estimated(seen, tuned, device)
    nodes = int(seen.judge_mask.any(0).sum())

    def judged(entry: dict[str, Any], name: str) -> Judgement:
        if not (trust and "validation" in entry):
            (found,) = judge(seen, [Settings().replace(**entry["settings"])], device)
            entry |= {"validation": round(100 * found.accuracy, 2), "surprise": round(found.surprise, 4)}
        print(f"{graph}/{name}: {entry['validation']} %, surprise {entry['surprise']}", flush=True)
        return Judgement(entry["validation"] / 100, entry["surprise"])

    presets = content["presets"]
    figures = {family: judged(entry, family) for family, entry in presets.items()}
    for entry in new:
        family, figure = entry["family"], judged(entry, f"{entry['family']}, new")
        if family not in figures or ranked([figures[family], figure], nodes)[0] == 1:
            presets[family], figures[family] = entry, figure
    content["best"] = list(figures)[ranked(list(figures.values()), nodes)[0]]


def text(graph: str, content: dict[str, Any], splits: int) -> str:
    """The file as people read it: families in their order, settings one a line."""
    presets = {
        family: {key: entry[key] for key in KEYS if key in entry}
        for family in FAMILIES
        if (entry := content["presets"].get(family))
    }
    body = yaml.safe_dump({"presets": presets}, sort_keys=False, width=100)
    return HEADER.format(graph=graph, splits=splits, published=content["published"], best=content["best"]) + body


if __name__ == "__main__":
    main()
