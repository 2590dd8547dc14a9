"""Takes presets that ``gpnn search`` has found into the package, and says which family is the best of each graph.

    python scripts/collect_presets.py [FILE …] [--graphs cora …] [--families views …] [--new] [--splits 32]
        [--device auto] [--data ROOT]

All families of these graphs and every FILE are judged on the same development splits, which no search has chosen by,
on validation nodes that stopped no run. A FILE replaces the preset of its graph and family where it is better: higher
in mean accuracy, or within a standard error of it and higher in likelihood. ``best`` becomes the best family by the
same rule. No test label is looked at. With ``--new``, what has figures of as many splits keeps them; with
``--families``, only these and those of the FILEs are judged, and ``best`` is the best of those judged alike, if it was
one of them.
"""

import argparse
from pathlib import Path
from typing import Any

import yaml

from graphpartner.graph.datasets import load_graph
from graphpartner.lab.search.judgement import Judgement, class_weights, development, judge_settings, ranked
from graphpartner.system.files import write_atomically
from graphpartner.training.presets import FAMILIES, FOLDER
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--graphs", nargs="*", default=[])
    parser.add_argument("--families", nargs="+", choices=[family for family in FAMILIES if family != "best"])
    parser.add_argument("--new", action="store_true")
    parser.add_argument("--splits", type=int, default=32)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--data", default=None)
    options = parser.parse_args()
    found = [yaml.safe_load(file.read_text()) for file in options.files]
    for graph in sorted({*options.graphs, *(entry["graph"] for entry in found)}):
        file = FOLDER / f"{graph}.yaml"
        content = yaml.safe_load(file.read_text())
        collect(content, [entry for entry in found if entry["graph"] == graph], graph, options)
        write_atomically(file, text(graph, content).encode())


def collect(content: dict[str, Any], new: list[dict[str, Any]], graph: str, options: argparse.Namespace) -> None:
    """Judge what there is and what is new, keep the better of each family, and say which family is the best."""
    presets = content["presets"]
    seen = development(load_graph(graph, options.data), options.splits, FIRST)
    tuned = Settings().replace(**presets["tuned"]["settings"])
    seen.class_weights = class_weights(seen, tuned, options.device)
    nodes = int(seen.judge_mask.any(0).sum())
    here = {"judged_on": options.splits, "held_out": True}

    def better(entries: list[dict[str, Any]]) -> dict[str, Any]:
        figures = [Judgement(entry["validation"] / 100, entry["nll"]) for entry in entries]
        return entries[ranked(figures, nodes)[0]]

    def judged(entry: dict[str, Any], name: str) -> None:
        if not (options.new and here.items() <= entry.items()):
            (found,) = judge_settings(seen, [Settings().replace(**entry["settings"])], options.device)
            entry |= {"validation": round(100 * found.accuracy, 2), "nll": round(found.nll, 4)} | here
        print(f"{graph}/{name}: {entry['validation']} %, NLL {entry['nll']}", flush=True)

    chosen = {*(options.families or presets), *(entry["family"] for entry in new)}
    for family, entry in presets.items():
        if family in chosen:
            judged(entry, family)
    for entry in new:
        judged(entry, f"{entry['family']}, new")
        presets[entry["family"]] = better([presets.get(entry["family"], entry), entry])
    alike = {family: entry for family, entry in presets.items() if here.items() <= entry.items()}
    if content["best"] in alike:
        winner = better(list(alike.values()))
        content["best"] = next(family for family, entry in alike.items() if entry is winner)


def text(graph: str, content: dict[str, Any]) -> str:
    """The file as people read it: families in their order, settings one a line."""
    presets = {
        family: {key: entry[key] for key in KEYS if key in entry}
        for family in FAMILIES
        if (entry := content["presets"].get(family))
    }
    body = yaml.safe_dump({"presets": presets}, sort_keys=False, width=100)
    return HEADER.format(graph=graph, published=content["published"], best=content["best"]) + body


if __name__ == "__main__":
    main()
