"""Draw docs/figures/depth.svg, the picture in the README, and write the numbers behind it to depth.json.

    python scripts/readme_figure.py [folder]

Trains one GPNN on the built-in CiteSeer with the preset citeseer/paper and seed 0, and evaluates it at l = 1 … 64.
With a folder, the files go there instead, and a depth.png for looking at beside them.
"""

import dataclasses
import json
import sys
from pathlib import Path

import torch

import graphpartner as gp
from graphpartner.graph.datasets import load_graph
from graphpartner.lab.pages.figures import draw_depth
from graphpartner.report.terminal import progress
from graphpartner.training.depth_sweep import depth_sweep

PRESET, SEED = "citeseer/paper", 0


def main(folder: Path, files: list[str]) -> None:
    torch.set_num_threads(1)  # sums in another order give another, equally good, model
    data = load_graph("citeseer")
    settings = gp.preset(PRESET).settings
    with progress("training") as show:
        runs = gp.train(data, settings, seeds=[SEED], device="cpu", progress=show)
    sweep = depth_sweep(runs, data, max_steps=64)
    folder.mkdir(parents=True, exist_ok=True)
    about = {"graph": "citeseer", "preset": PRESET, "graphpartner": gp.__version__}
    content = about | {"settings": dataclasses.asdict(settings)} | sweep.asdict()
    (folder / "depth.json").write_text(json.dumps(content, indent=1) + "\n")
    title = (
        f"One GPNN on CiteSeer (preset {PRESET}, seed {SEED}), evaluated at other depths than the one it was trained at"
    )
    for file in draw_depth(sweep, title, *(folder / file for file in files)):
        print(file)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]), ["depth.svg", "depth.png"])
    else:
        main(Path(__file__).parents[1] / "docs" / "figures", ["depth.svg"])
