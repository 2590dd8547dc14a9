"""``gpnn search``."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphpartner.cli.options import (
    DataOption,
    DeviceOption,
    GraphArgument,
    check_choice,
    check_count,
    named,
    output_folder,
)
from graphpartner.system.errors import InputError

if TYPE_CHECKING:
    from graphpartner.lab.search.judgement import Judgement
    from graphpartner.lab.search.space import Choice
    from graphpartner.training.settings import Checked


def search(
    graph: GraphArgument,
    family: Annotated[str, typer.Option(help="paper, tuned, views or distilled: which settings are free")] = "tuned",
    method: Annotated[
        str | None, typer.Option(help="search the settings of a baseline instead, e.g. appnp", metavar="METHOD")
    ] = None,
    generations: Annotated[
        int | None,
        typer.Option(help="of distilled, with --hold: judge 1 to N generations of teachers, trained once", metavar="N"),
    ] = None,
    trials: Annotated[
        int | None, typer.Option(help="configurations to judge, those of earlier calls included [256; METHOD: 40]")
    ] = None,
    seconds: Annotated[float | None, typer.Option(help="begin nothing new after this many seconds")] = None,
    splits: Annotated[
        int | None, typer.Option(help="development splits a configuration is judged on [8; METHOD: 4]")
    ] = None,
    replicas: Annotated[int | None, typer.Option(help="approximate number of runs per batch [96]")] = None,
    epochs: Annotated[
        int | None, typer.Option(help="maximum number of epochs per run while searching [500; N: as held]")
    ] = None,
    begin_at: Annotated[
        list[str] | None,
        typer.Option(help="presets to begin at; the first gives the rest", metavar="PRESET"),
    ] = None,
    hold: Annotated[
        str | None, typer.Option(help="hold this preset and search what the family adds to it", metavar="PRESET")
    ] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", help="hold a setting too, or give the values to try", metavar="KEY=VALUE[,VALUE …]"),
    ] = None,
    storage: Annotated[
        str | None, typer.Option(help="an Optuna storage address, else a SQLite file in DIR", metavar="ADDRESS")
    ] = None,
    device: DeviceOption = "auto",
    out: Annotated[Path, typer.Option(help="folder for the preset that is found", metavar="DIR")] = Path("search"),
    root: DataOption = None,
) -> None:
    """Search settings on validation nodes, without test labels. A second call goes on where this one ends."""
    from graphpartner.graph.catalogue import find_entry
    from graphpartner.graph.datasets import load_graph
    from graphpartner.lab.search.generations import search_generations
    from graphpartner.lab.search.judgement import development, rule
    from graphpartner.lab.search.preset_files import write_preset
    from graphpartner.lab.search.search import open_study
    from graphpartner.lab.search.search import search as look
    from graphpartner.lab.search.space import FAMILIES, only, space_of
    from graphpartner.report.terminal import facts, notes, progress, show
    from graphpartner.system.device import pick_device
    from graphpartner.training.presets import preset
    from graphpartner.training.settings import Settings

    entry = find_entry(graph)
    check_choice("--family", family, tuple(FAMILIES))
    counts = {"generations": generations, "trials": trials, "splits": splits, "replicas": replicas, "epochs": epochs}
    for option, value in counts.items():
        if value is not None:
            check_count(f"--{option}", value)
    if seconds is not None and not seconds > 0:
        raise InputError(f"--seconds {seconds:g}: must be more than 0")
    given = {**counts, "seconds": seconds, "begin-at": begin_at, "hold": hold, "storage": storage}
    if method is not None:
        _refuse("--method", given, ("generations", "replicas", "epochs", "begin-at", "hold", "storage"))
        _search_baseline(graph, method, changes, trials or 40, seconds, splits or 4, device, out, root)
        return
    begin = [named("--begin-at", name, preset) for name in begin_at or []]
    kept = named("--hold", hold, preset) if hold else None
    starts = [each.settings for each in begin]
    rest = kept.settings if kept else starts[0] if starts else Settings()
    held, tried = _held_and_tried(changes, Settings)
    if "epochs" in held | tried:
        raise InputError(f"--set epochs={held.get('epochs', '…')}: must be given as --epochs, for runs of a search")
    splits, place = splits or 8, pick_device(device)
    if generations is not None:
        _refuse("--generations", given, ("trials", "seconds", "replicas", "begin-at", "storage"))
        if family != "distilled" or hold is None:
            raise InputError(f"--generations {generations}: must come with --family distilled and --hold PRESET")
        files = search_generations(
            load_graph(graph, root),
            graph,
            hold,
            output_folder(out),
            generations,
            splits=splits,
            epochs=epochs,
            held=held,
            tried=tried,
            fixed=changes or [],
            device=place,
            on_line=show,
        )
        show(facts(("preset", str(file)) for file in files))
        return
    epochs = epochs or 500
    base = only(family, rest).replace(epochs=epochs, **held)
    space = {name: each for name, each in space_of(graph, family, bool(hold)).items() if name not in held} | tried
    trials = trials or 256
    folder = output_folder(out)
    data = load_graph(graph, root)
    study = open_study(storage or folder / "studies.db", f"{graph}-{family}")
    notes().print(f"Searching {family} settings for {entry.title}: {trials} configurations on {splits} splits, {place}")
    with progress("searching") as on_progress:
        found = look(
            data,
            space,
            study,
            trials=trials,
            seconds=seconds,
            splits=splits,
            replicas=replicas or 96,
            base=base,
            starts=starts,
            device=place,
            progress=on_progress,
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
    _show(found.judged, found.trials, splits, dict(changed), file)


def _search_baseline(
    graph: str,
    method: str,
    changes: list[str] | None,
    trials: int,
    seconds: float | None,
    splits: int,
    device: str,
    out: Path,
    root: str | None,
) -> None:
    """Search a baseline's settings, and write them as an entry of its file of presets."""
    import yaml

    from graphpartner.graph.datasets import load_graph
    from graphpartner.lab.baselines.all_baselines import BASELINES, baseline_settings
    from graphpartner.lab.search.baseline_search import search_baseline
    from graphpartner.report.terminal import notes
    from graphpartner.system.device import pick_device
    from graphpartner.system.files import write_atomically

    check_choice("--method", method, list(BASELINES))
    held, tried = _held_and_tried(changes, type(baseline_settings(method, graph).settings))
    place, folder = pick_device(device), output_folder(out)
    found = search_baseline(
        method,
        load_graph(graph, root),
        graph,
        folder / f"{graph}-{method}.jsonl",
        trials=trials,
        seconds=seconds,
        splits=splits,
        fixed=held,
        tried=tried,
        device=place,
        on_line=lambda line: notes().print_json(data=line, indent=None),
    )
    file = folder / f"{graph}-{method}.yaml"
    content = {graph: {"source": found.source, "settings": found.settings}}
    write_atomically(file, yaml.safe_dump(content, sort_keys=False, width=118).encode())
    _show(found.judged, found.trials, splits, found.settings, file)


def _held_and_tried(changes: list[str] | None, among: "type[Checked]") -> "tuple[dict[str, Any], dict[str, Choice]]":
    """Return the settings that ``--set`` holds at one value, and those it gives several values to try."""
    from graphpartner.lab.search.space import Choice
    from graphpartner.training.settings import parse

    held: dict[str, Any] = {}
    tried = {}
    for change in changes or []:
        name, sign, text = change.partition("=")
        if not sign:
            raise InputError(f"--set {change}: must be KEY=VALUE, e.g. --set alpha=0.3")
        values = tuple(parse(name, each, among) for each in text.split(","))
        for value in values:
            among(**{name: value})  # raises an InputError where it is out of range
        if len(values) == 1:
            held[name] = values[0]
        else:
            tried[name] = Choice(values)
    return held, tried


def _refuse(option: str, given: dict[str, Any], unused: Sequence[str]) -> None:
    """Raise an InputError for options that have no effect beside another one."""
    for name in unused:
        if given[name]:
            raise InputError(f"--{name} {given[name]}: must not be given with {option}")


def _show(judged: "Judgement", trials: int, splits: int, settings: dict[str, Any], file: Path) -> None:
    """Print what a search has found."""
    from graphpartner.report.terminal import facts, show

    accuracy = f"[bold]{100 * judged.accuracy:.2f} %[/]   mean over {2 * splits} other splits"
    nll = f"{judged.nll:.4f}   mean −log p of the true class, calibrated"
    texts = {name: f"{value:.4g}" if isinstance(value, float) else str(value) for name, value in settings.items()}
    head = [("validation accuracy", accuracy), ("NLL", nll), ("configurations", f"{trials} judged")]
    show(facts([*head, *sorted(texts.items()), ("preset", str(file))]))
