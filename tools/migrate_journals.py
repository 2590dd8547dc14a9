"""Carry journals of runs over to format 1, in which the package version is no longer part of a run's key.

    python tools/migrate_journals.py results/runs

Lines written before some settings existed get the values that these runs were done with, the format, and their new
key; nothing else changes, what was measured least of all. Lines of format 1 stay as they are.
"""

import gzip
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from graphpartner.lab.experiments.jobs import FORMAT, Run
from graphpartner.lab.experiments.journal import locked

LATER = {
    "gpnn": {"generations": 1, "groups": 1},
    "dgi": {"regression_decay": 0.0}, "grace": {"regression_decay": 0.0}, "mvgrl": {"regression_decay": 0.0},
}  # fmt: skip
"""By method: settings that are younger than the first lines, and the values that leave a run what it was."""


def migrated(line: dict[str, Any]) -> dict[str, Any]:
    """Return a line as format 1 has it."""
    if "format" in line:
        return line
    run = Run(
        line["method"], line["graph"], LATER.get(line["method"], {}) | line["settings"], line["seed"], line["device"],
        line["members"], line["timing"], line.get("together", 0),
    )  # fmt: skip
    return line | run.identity | {"key": run.key}


def migrate(path: Path) -> int:
    """Rewrite a journal, whole or not at all, and return the number of lines that changed."""
    changed, temporary = 0, path.with_name(f".{path.name}")
    try:
        with open(temporary, "wb") as plain:
            # without a name and a time, so that the same lines give the same bytes
            file = gzip.GzipFile("", "wb", fileobj=plain, mtime=0) if path.suffix == ".gz" else plain
            for line in lines_of(path):
                new = migrated(line)
                changed += new is not line
                file.write(f"{json.dumps(new, sort_keys=True)}\n".encode())
            if file is not plain:
                file.close()
        if changed:
            temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    return changed


def lines_of(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the whole lines of a journal."""
    with gzip.open(path) if path.suffix == ".gz" else open(path, "rb") as file:
        yield from (json.loads(text) for text in file if text.endswith(b"\n"))


def main() -> None:
    """Rewrite every journal of the folders that are named."""
    for folder in map(Path, sys.argv[1:]):
        with locked(folder):
            for path in sorted(folder.glob("*.jsonl*")):
                print(f"{path}: {migrate(path)} lines changed to format {FORMAT}")


if __name__ == "__main__":
    main()
