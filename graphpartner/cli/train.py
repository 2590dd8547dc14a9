"""``gpnn train``: runs of GPNN on a graph of the catalogue, beside the published accuracy."""

import json
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from graphpartner.cli.options import (
    DataOption,
    DeviceOption,
    GraphArgument,
    JsonOption,
    SetOption,
    check_choice,
    check_count,
    output_folder,
    parsed,
    versions,
    writing_to,
)


def train(
    graph: GraphArgument,
    preset: Annotated[str, typer.Option(help="paper, tuned, views, distilled, best, or a file")] = "best",
    seeds: Annotated[int, typer.Option(help="number of runs, with seeds 0, 1, …")] = 10,
    changes: SetOption = None,
    device: DeviceOption = "auto",
    out: Annotated[
        Path | None, typer.Option(help="folder for model and predictions, else runs/GRAPH", metavar="DIR")
    ] = None,
    root: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Train GPNN on a graph and print its test accuracy beside the published one."""
    from graphpartner.graph.catalogue import find_entry
    from graphpartner.graph.datasets import load_graph
    from graphpartner.graph.splits import with_split
    from graphpartner.report.terminal import facts, notes, progress, show
    from graphpartner.system.device import pick_device
    from graphpartner.system.progress import format_duration
    from graphpartner.training.presets import FAMILIES
    from graphpartner.training.presets import preset as find_preset
    from graphpartner.training.trainer import train as train_runs

    start = time.monotonic()
    entry = find_entry(graph)
    if not preset.endswith(".yaml"):
        check_choice("--preset", preset, FAMILIES)
    check_count("--seeds", seeds)
    chosen = find_preset(preset if preset.endswith(".yaml") else f"{graph}/{preset}")
    settings = chosen.settings.replace(**parsed(changes))
    place = pick_device(device)
    data = with_split(load_graph(graph, root), range(seeds))
    folder = output_folder(out or Path("runs") / graph)
    name = f"{chosen.family}, changed" if changes else chosen.family
    count = f"{seeds} seeds" if seeds > 1 else "1 seed"
    notes().print(f"GPNN on {entry.title}: preset {name}, {count}, {place}")
    if chosen.graph != graph:
        notes().print(f"These settings were chosen for {find_entry(chosen.graph).title}.")
    if chosen.saw_test:
        notes().print(
            "[yellow]These settings were picked with a look at test accuracy[/]: the result shows what the method can "
            "do, not what a fair selection finds."
        )
    with progress("training") as on_progress:
        runs = train_runs(data, settings, range(seeds), place, progress=on_progress)
    test, val = (100 * runs.accuracy(mask) for mask in (data.test_mask, data.val_mask))
    seconds = time.monotonic() - start
    published, published_sd = find_preset(graph).published
    about: dict[str, Any] = {
        "graph": graph,
        "preset": name,
        "provenance": chosen.provenance,
        "saw_test": chosen.saw_test,
        "device": str(place),
        "test_accuracy": test.tolist(),
        "test_mean": float(test.mean()),
        "test_sd": float(test.std()) if seeds > 1 else None,
        "val_mean": float(val.mean()),
        "published_mean": published,
        "published_sd": published_sd,
        "seconds": seconds,
        "versions": versions(),
    }
    with writing_to(folder):
        files = [str(path) for path in runs.save(folder, about)]
    if as_json:
        print(json.dumps(about | {"files": files}))
        return
    deviation = f" ± {about['test_sd']:.1f} %[/]   mean ± sd over {count}" if seeds > 1 else " %[/]   1 seed"
    rows = [
        ("test accuracy", f"[bold]{about['test_mean']:.1f}{deviation}"),
        ("published", f"{published} ± {published_sd} %   Table 1 of the paper"),
        ("validation accuracy", f"{about['val_mean']:.1f} %"),
        ("time", f"{format_duration(seconds)}, {int(runs.epochs.sum()):,} epochs in all"),
        ("predictions", str(folder / "predictions.csv")),
        ("model", str(folder / "weights.safetensors")),
    ]
    show(facts(rows))
