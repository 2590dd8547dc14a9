"""Takes presets that ``gpnn search`` has found into the package, and says which family is the best of each graph.

    python scripts/collect_presets.py [FILE …] [--graphs cora …] [--new] [--splits 32] [--device auto] [--data ROOT]

Every FILE replaces the preset of its graph and family. Then all families of these graphs are judged on the same
development splits, which no search has chosen by, and ``best`` becomes the one with the highest mean validation
accuracy; of those within a standard error of it, the one with the highest likelihood. No test label is looked at.
With ``--new``, only what comes from a FILE is judged, on as many splits as the others, which keep their figures.
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
# judged_on says, surprise: mean −log p there.
published: {published}
best: {best}
judged_on: {splits}
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
        if options.new and options.splits != content["judged_on"]:
            parser.error(f"--splits {options.splits}: with --new it must be {content['judged_on']}, as in {file.name}")
        for entry in found:
            if entry["graph"] == graph:
                content["presets"][entry["family"]] = {
                    key: entry[key] for key in ("provenance", "saw_test", "settings")
                }
        known = {
            family: Judgement(entry["validation"] / 100, entry["surprise"])
            for family, entry in content["presets"].items()
            if options.new and "validation" in entry
        }
        judged, best = judgements(graph, content["presets"], known, options.splits, options.device, options.data)
        content["best"] = best
        for family, each in judged.items():
            content["presets"][family]["validation"] = round(100 * each.accuracy, 2)
            content["presets"][family]["surprise"] = round(each.surprise, 4)
        write_atomically(file, text(graph, content, options.splits).encode())


def judgements(
    graph: str, presets: dict[str, Any], known: dict[str, Judgement], splits: int, device: str, root: str | None
) -> tuple[dict[str, Judgement], str]:
    """Every family that is not known on the same splits and seeds, and the best of all."""
    data = gp.load_dataset(graph, root)
    seen = development(data, splits, FIRST)
    settings = {family: Settings().replace(**entry["settings"]) for family, entry in presets.items()}
    if data.get("train_mask") is None:
        seen.class_weights = estimated(seen, settings["tuned"], device)
    judged = {}
    for family, each in settings.items():
        judged[family] = known[family] if family in known else judge(seen, [each], device)[0]
        print(f"{graph}/{family}: {judged[family]}", flush=True)
    best = ranked(list(judged.values()), int(seen.val_mask.any(0).sum()))[0]
    return judged, list(judged)[best]


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
