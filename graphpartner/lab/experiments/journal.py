"""What was run, one line each, so that nothing is run twice and a kill loses at most the batch in flight.

``runs/<experiment>.jsonl`` grows by whole lines, flushed to the disk. A line that a kill has torn has no end; it is cut
off before the next is written. A finished experiment is kept as ``<experiment>.jsonl.gz``; both are read. Several
programs may write into one folder: one at a time does, and nobody drops what another has written.
"""

import gzip
import json
import math
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import NoneType
from typing import Any

from graphpartner.lab.experiments.jobs import Run
from graphpartner.system.errors import InputError
from graphpartner.system.files import write_atomically

Line = dict[str, Any]


class Journal:
    """The lines of all experiments in one folder, by the key of their runs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lines: dict[str, dict[str, Line]] = {}
        """By experiment, then by key; of several lines with one key the measures are joined, the latest first."""
        if folder.exists() and not folder.is_dir():
            raise InputError(f"{folder} is no folder: the runs are kept there; move it away")
        names = {path.name.split(".")[0] for path in folder.glob("*.jsonl*")}
        for experiment in sorted(names):
            self._read(experiment)

    def find(self, run: Run, experiment: str | None = None) -> Line | None:
        """The line of a run with everything that is to be measured of it, in one experiment or in any."""
        places = self.lines.values() if experiment is None else [self.lines.get(experiment, {})]
        for place in places:
            line = place.get(run.key)
            if line is not None and run.measures <= set(line["measured"]):
                return line
        return None

    def append(self, experiment: str, lines: list[Line]) -> None:
        """Write lines to the end of an experiment's file, and wait until the disk has them."""
        text = "".join(json.dumps(line, sort_keys=True) + "\n" for line in lines)
        with self.alone():
            path = self.folder / f"{experiment}.jsonl"
            cut_torn_line(path)
            with open(path, "ab") as file:
                file.write(text.encode())
                file.flush()
                os.fsync(file.fileno())
        for line in lines:
            self._remember(experiment, line)

    def compress(self, experiment: str) -> None:
        """Put what was appended into the compressed file, which appears whole or not at all."""
        open_file, packed = self.folder / f"{experiment}.jsonl", self.folder / f"{experiment}.jsonl.gz"
        if not open_file.exists():
            return
        with self.alone():
            self._read(experiment)  # another program may have written meanwhile
            lines = self.lines.get(experiment, {}).values()
            text = "".join(json.dumps(line, sort_keys=True) + "\n" for line in lines)
            # no time of day: the same lines, the same bytes
            write_atomically(packed, gzip.compress(text.encode(), mtime=0))
            open_file.unlink(missing_ok=True)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """While no other program writes into the folder, or the results beside it. Not to be nested."""
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            import fcntl
        except ImportError:  # a system without such locks
            yield
            return
        descriptor = os.open(self.folder, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def _read(self, experiment: str) -> None:
        """Remember what the files of an experiment hold."""
        for ending in ("jsonl.gz", "jsonl"):
            path = self.folder / f"{experiment}.{ending}"
            for line in read_lines(path) if path.exists() else ():
                self._remember(experiment, line)

    def _remember(self, experiment: str, line: Line) -> None:
        known = self.lines.setdefault(experiment, {})
        before = known.get(line["key"], {}).get("measured", {})
        known[line["key"]] = line | {"measured": before | line["measured"]}


def read_lines(path: Path) -> list[Line]:
    """All whole lines of a file; what follows the last end of a line was torn and does not count."""
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
            raise InputError(f"{path} is damaged: restore it, or delete it to run its experiment again") from None
    lines = []
    for number, text in enumerate(content.split(b"\n")[:-1], start=1):
        try:
            line = json.loads(text)
            if not _is_whole(line):
                raise TypeError
            lines.append(line)
        except (ValueError, TypeError, KeyError):
            raise InputError(f"{path}, line {number} is damaged: delete the line to run it again") from None
    return lines


def _is_whole(line: Line) -> bool:
    """Whether it has what cells are made of."""
    texts = all(isinstance(line[name], str) for name in ("key", "version", "device"))
    measured = line["measured"]
    return (
        texts
        and isinstance(line["seed"], int)
        and isinstance(measured, dict)
        and all(_is_measure(value) for value in measured.values())
    )


def _is_measure(value: Any) -> bool:
    """A number, one a layer, nothing where there was none, or what a picture is drawn from."""
    if isinstance(value, list):
        return all(_is_measure(each) and not isinstance(each, (list, dict)) for each in value)
    if isinstance(value, dict):
        return "points" in value
    return isinstance(value, (int, NoneType)) or (isinstance(value, float) and math.isfinite(value))


def cut_torn_line(path: Path) -> None:
    """End the file with its last whole line."""
    if not path.exists():
        return
    content = path.read_bytes()
    whole = content.rfind(b"\n") + 1
    if whole < len(content):
        os.truncate(path, whole)
