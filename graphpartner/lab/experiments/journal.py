"""Journal of runs, one line each: no run is done twice, and a kill loses at most the batch in flight.

``runs/<experiment>.jsonl`` grows by whole lines, flushed to the disk. A line torn by a kill has no end; it is cut off
before the next is written. A finished experiment is kept as ``<experiment>.jsonl.gz``; both are read. Several programs
may write into one folder: a lock lets them write one at a time, and none drops what another has written.
"""

import gzip
import json
import os
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from graphpartner.lab.experiments.jobs import Run
from graphpartner.system.errors import InputError
from graphpartner.system.files import write_atomically
from graphpartner.system.schema import check_json

Line = dict[str, Any]


@dataclass(frozen=True)
class _Picture:
    points: list[list[float]] | None
    classes: list[int]


@dataclass(frozen=True)
class _Required:
    """The keys of a line that cells are made from; there are more.

    A measure is a number, a list of one number per layer, what a picture is drawn from, or null for no number.
    """

    key: str
    format: Literal[1]
    version: str
    device: str
    seed: int
    measured: dict[str, float | list[float | None] | _Picture | None]


class Journal:
    """The lines of all experiments in one folder, by the key of their runs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lines: dict[str, dict[str, Line]] = {}
        """By experiment, then by key; the measures of several lines with one key are joined, the latest first."""
        if folder.exists() and not folder.is_dir():
            raise InputError(f"{folder}: must be a folder, for the runs; move the file away")
        for experiment in sorted({path.name.split(".")[0] for path in folder.glob("*.jsonl*")}):
            self._read(experiment)

    def find(self, run: Run, experiment: str | None = None) -> Line | None:
        """Return the line that has all measures of a run, from one experiment or from any."""
        places = self.lines.values() if experiment is None else [self.lines.get(experiment, {})]
        key = run.key
        for place in places:
            line = place.get(key)
            if line is not None and run.measures <= set(line["measured"]):
                return line
        return None

    def append(self, experiment: str, lines: list[Line]) -> None:
        """Write lines to the end of an experiment's file, and wait until the disk has them."""
        with locked(self.folder):
            path = self.folder / f"{experiment}.jsonl"
            cut_torn_line(path)
            with open(path, "ab") as file:
                file.write(_text(lines))
                file.flush()
                os.fsync(file.fileno())
        for line in lines:
            self._add(experiment, line)

    def compress(self, experiment: str) -> None:
        """Move what was appended into the compressed file, which appears whole or not at all."""
        open_file, packed = self.folder / f"{experiment}.jsonl", self.folder / f"{experiment}.jsonl.gz"
        if not open_file.exists():
            return
        with locked(self.folder):
            self._read(experiment)  # another program may have written meanwhile
            # without a time, so that the same lines give the same bytes
            write_atomically(packed, gzip.compress(_text(self.lines.get(experiment, {}).values()), mtime=0))
            open_file.unlink(missing_ok=True)

    def _read(self, experiment: str) -> None:
        for ending in ("jsonl.gz", "jsonl"):
            path = self.folder / f"{experiment}.{ending}"
            for line in read_lines(path) if path.exists() else ():
                self._add(experiment, line)

    def _add(self, experiment: str, line: Line) -> None:
        known = self.lines.setdefault(experiment, {})
        before = known.get(line["key"], {}).get("measured", {})
        known[line["key"]] = line | {"measured": before | line["measured"]}


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep all other programs from writing into a folder of runs, or the results beside it; must not be nested."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        import fcntl
    except ImportError:  # a system without such locks
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _text(lines: Iterable[Line]) -> bytes:
    return "".join(json.dumps(line, sort_keys=True) + "\n" for line in lines).encode()


def read_lines(path: Path) -> list[Line]:
    """Return all whole lines of a file; what follows the last end of a line was torn and does not count."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); move it away") from None
    if path.suffix == ".gz":
        try:
            if not content:
                raise EOFError
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error):
            raise InputError(f"{path}: is damaged; restore it, or delete it to run its experiment again") from None
    lines = []
    for number, text in enumerate(content.split(b"\n")[:-1], start=1):
        try:
            check_json(_Required, text, f"{path}, line {number}", more_keys=True)
        except InputError as error:
            raise InputError(f"{error}; delete the line to run it again") from None
        lines.append(json.loads(text))
    return lines


def cut_torn_line(path: Path) -> None:
    """End the file with its last whole line."""
    if not path.exists():
        return
    content = path.read_bytes()
    whole = content.rfind(b"\n") + 1
    if whole < len(content):
        os.truncate(path, whole)
