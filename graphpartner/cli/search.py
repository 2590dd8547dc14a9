"""``gpnn search``."""

from pathlib import Path
from typing import Annotated

import typer

from graphpartner.cli.options import DataOption, GraphArgument, check_choice, check_count, named, output_folder, parsed
from graphpartner.system.errors import InputError


def search(
    graph: GraphArgument,
    family: Annotated[str, typer.Option(help="paper, tuned, views or distilled: which settings are free")] = "tuned",
    trials: Annotated[int, typer.Option(help="configurations to judge, those of earlier calls included")] = 256,
    seconds: Annotated[float | None, typer.Option(help="begin nothing new after so many seconds")] = None,
    splits: Annotated[int, typer.Option(help="development splits a configuration is judged on")] = 8,
    replicas: Annotated[int, typer.Option(help="about how many runs make a batch")] = 96,
    epochs: Annotated[int, typer.Option(help="at most so many epochs a run while searching")] = 500,
    begin_at: Annotated[
        list[str] | None,
        typer.Option(help="presets to begin at; the first gives the rest", metavar="PRESET"),
    ] = None,
    hold: Annotated[
        str | None, typer.Option(help="hold this preset and search what the family adds to it", metavar="PRESET")
    ] = None,
    changes: Annotated[
        list[str] | None, typer.Option("--set", help="hold a setting too, e.g. num_steps=10", metavar="KEY=VALUE")
    ] = None,
    storage: Annotated[
        str | None, typer.Option(help="an Optuna storage address, else a SQLite file in DIR", metavar="ADDRESS")
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda")] = "auto",
    out: Annotated[Path, typer.Option(help="folder for the preset that is found", metavar="DIR")] = Path("search"),
    root: DataOption = None,
) -> None:
    """Search settings on validation nodes, without test labels. A second call goes on where this one ends."""
    from graphpartner.graph.catalogue import find_entry
    from graphpartner.graph.datasets import load_graph
    from graphpartner.lab.search.judgement import development, rule
    from graphpartner.lab.search.search import search as look
    from graphpartner.lab.search.space import FAMILIES, only, space_of
    from graphpartner.lab.search.study import open_study, write_preset
    from graphpartner.report.terminal import facts, notes, progress, show
    from graphpartner.system.device import pick_device
    from graphpartner.training.presets import preset
    from graphpartner.training.settings import Settings

    entry = find_entry(graph)
    check_choice("--family", family, tuple(FAMILIES))
    for option, value in (("trials", trials), ("splits", splits), ("replicas", replicas), ("epochs", epochs)):
        check_count(f"--{option}", value)
    if seconds is not None and not seconds > 0:
        raise InputError(f"--seconds {seconds:g}: must be more than 0")
    held = parsed(changes)
    if "epochs" in held:
        raise InputError(f"--set epochs={held['epochs']}: how long runs of a search are is said by --epochs")
    begin = [named("--begin-at", name, preset) for name in begin_at or []]
    kept = named("--hold", hold, preset) if hold else None
    starts = [each.settings for each in begin]
    rest = kept.settings if kept else starts[0] if starts else Settings()
    base = only(family, rest).replace(epochs=epochs, **held)
    space = {name: each for name, each in space_of(graph, family, bool(hold)).items() if name not in held}
    place = pick_device(device)
    folder = output_folder(out)
    data = load_graph(graph, root)
    study = open_study(storage or folder / "studies.db", f"{graph}-{family}")
    notes().print(f"Searching {family} settings for {entry.title}: {trials} configurations on {splits} splits, {place}")
    with progress("searching") as tell:
        found = look(
            data,
            space,
            study,
            trials=trials,
            seconds=seconds,
            splits=splits,
            replicas=replicas,
            base=base,
            starts=starts,
            device=place,
            progress=tell,
        )
    drawn = (
        "random splits (classes weighted by estimated frequencies)"
        if data.get("train_mask") is None
        else "splits (half the public one, half its training and validation nodes drawn anew)"
    )
    begun = [only(family, start) for start in starts]
    saw_test = any(each.saw_test for each in [*begin, *([kept] if kept else [])])
    judged_by = rule(development(data, 1))
    file = write_preset(
        folder, graph, family, found, splits, drawn, judged_by, hold, begun, changes or [], saw_test=saw_test
    )
    changed = found.settings.asdict().items() - Settings(epochs=epochs).asdict().items()
    show(
        facts(
            [
                (
                    "validation accuracy",
                    f"[bold]{100 * found.judged.accuracy:.2f} %[/]   mean over {2 * splits} other splits",
                ),
                ("NLL", f"{found.judged.nll:.4f}   mean −log p of the true class, calibrated"),
                ("configurations", f"{found.trials} judged"),
                *sorted((name, f"{value:.4g}" if isinstance(value, float) else str(value)) for name, value in changed),
                ("preset", str(file)),
            ]
        )
    )
