"""Draw docs/figures/depth.svg, the picture in the README, and write the numbers behind it to depth.json.

    python tools/readme_figure.py [folder]

One GPNN is trained on the built-in CiteSeer with the preset citeseer/paper and seed 0, and evaluated at l = 1 … 64.
With a folder, the files go there, and a depth.png beside them.
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
TITLE = f"One GPNN on CiteSeer (preset {PRESET}, seed {SEED}), evaluated at other depths than the one it was trained at"

if __name__ == "__main__":
    given = sys.argv[1:]
    folder = Path(given[0]) if given else Path(__file__).parents[1] / "docs" / "figures"
    torch.set_num_threads(1)  # sums in another order give another, equally good, model
    data, settings = load_graph("citeseer"), gp.preset(PRESET).settings
    with progress("training") as show:
        runs = gp.train(data, settings, seeds=[SEED], device="cpu", progress=show)
    sweep = depth_sweep(runs, data, max_steps=64)
    folder.mkdir(parents=True, exist_ok=True)
    content = {"graph": "citeseer", "preset": PRESET, "graphpartner": gp.__version__}
    content |= {"settings": dataclasses.asdict(settings)} | sweep.asdict()
    (folder / "depth.json").write_text(json.dumps(content, indent=1) + "\n")
    for file in draw_depth(sweep, TITLE, *(folder / name for name in ("depth.svg", "depth.png")[: 1 + bool(given)])):
        print(file)
