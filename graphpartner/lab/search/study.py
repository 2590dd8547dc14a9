"""Studies that survive a kill, and the preset a search has found, as a file with its provenance."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphpartner.lab.search.search import SearchResult
from graphpartner.system.errors import InputError
from graphpartner.system.files import write_atomically
from graphpartner.training.settings import Settings

if TYPE_CHECKING:
    import optuna


STARTUP = 32  # trials drawn at random before the sampler learns from them


def open_study(storage: str | Path, name: str) -> "optuna.Study":
    """A study of that name, made or found again: in a SQLite file, or at any address Optuna knows."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    address = sqlite(storage) if isinstance(storage, Path) else storage
    try:
        study = optuna.create_study(storage=address, study_name=name, direction="maximize", load_if_exists=True)
        # a study that goes on must not draw again what it has drawn
        study.sampler = optuna.samplers.TPESampler(
            n_startup_trials=STARTUP, multivariate=True, constant_liar=True, seed=len(study.get_trials(deepcopy=False))
        )
        return study
    except Exception as error:  # whatever the database's driver calls it
        told = " ".join(str(error).split())
        if isinstance(storage, Path):
            raise InputError(f"{storage} holds no studies ({told}); move it away") from None
        raise InputError(f"--storage {storage}: cannot be opened ({told}); give an address Optuna knows") from None


def sqlite(file: Path) -> str:
    """The address of a SQLite file, whatever its name holds."""
    from sqlalchemy import URL

    return URL.create("sqlite", database=str(file)).render_as_string()


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
    """The winner as ``GRAPH-FAMILY.yaml``, with what it was judged on and the finalists it has beaten.

    Whoever reads it should know whether it is one of the ``starts``, which may come from anywhere, what was ``fixed``
    by --set, and whether a preset that it builds on ``saw_test``.
    """
    command = as_called(f"gpnn search {graph} --family {family}", held, fixed)
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
            "settings": changes(settings),
        }
        for settings, before, after in found.finalists
    ]
    file = folder / f"{graph}-{family}.yaml"
    write_found(file, graph, family, provenance, winner, finalists, saw_test)
    return file


def write_found(
    file: Path,
    graph: str,
    family: str,
    provenance: str,
    settings: Settings,
    finalists: Sequence[dict[str, Any]] = (),
    saw_test: bool = False,
) -> None:
    """A preset as :func:`graphpartner.preset` reads it from a file."""
    import yaml

    content = {"graph": graph, "family": family, "provenance": provenance, "saw_test": saw_test}
    content |= {"settings": changes(settings)} | ({"finalists": list(finalists)} if finalists else {})
    write_atomically(file, yaml.safe_dump(content, sort_keys=False, width=100).encode())


def as_called(command: str, held: str | None, fixed: Sequence[str]) -> str:
    """A command with the preset it holds and what it fixes besides; where a file lay says nothing to a reader."""
    kept = Path(held).name if held and held.endswith(".yaml") else held
    return " --set ".join([command + (f" --hold {kept}" if kept else ""), *fixed])


def changes(settings: Settings) -> dict[str, Any]:
    """What differs from the defaults, numbers in four digits: more would say more than is known."""
    default = Settings()
    values = {item.name: getattr(settings, item.name) for item in dataclasses.fields(settings)}
    return {
        name: float(f"{value:.4g}") if isinstance(value, float) else value
        for name, value in values.items()
        if value != getattr(default, name)
    }
