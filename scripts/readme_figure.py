"""Draw docs/figures/depth.svg, the picture in the README, and write the numbers behind it to depth.json.

    python scripts/readme_figure.py [folder]

Trains one GPNN on the built-in CiteSeer with the preset citeseer/paper and seed 0, and evaluates it at l = 1 … 64.
With a folder, the files go there instead; a depth.png for looking at is always made, and is not kept in the repository.
"""

import json
import sys
from pathlib import Path

import graphpartner as gp
from graphpartner.report.depth import depth_sweep
from graphpartner.report.figures import draw_depth
from graphpartner.report.terminal import progress

PRESET, SEED = "citeseer/paper", 0


def main(folder: Path) -> None:
    data = gp.load_dataset("citeseer")
    with progress("training") as show:
        runs = gp.train(data, gp.preset(PRESET), seeds=[SEED], device="cpu", progress=show)
    sweep = depth_sweep(runs, data, max_steps=64)
    folder.mkdir(parents=True, exist_ok=True)
    about = {"graph": "citeseer", "preset": PRESET, "graphpartner": gp.__version__}
    (folder / "depth.json").write_text(json.dumps(about | sweep.asdict(), indent=1) + "\n")
    title = f"One GPNN on CiteSeer (preset {PRESET.split('/')[1]}, seed {sweep.seed}), evaluated at other depths"
    for file in draw_depth(sweep, title, folder / "depth.svg", folder / "depth.png"):
        print(file)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[1] / "docs" / "figures")
