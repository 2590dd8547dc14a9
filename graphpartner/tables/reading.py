"""How a user's files are to be read, and how much of them has been."""

import io
import os
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any

from graphpartner.system.progress import Progress, silent


class Reading:
    """What holds for all text files of one graph.

    Args:
        sources: what the user gave as tables; the files among them are what ``progress`` counts the bytes of.
        sep: the separator; None finds it: comma, tab, semicolon, bar or space.
        text: columns whose cells stay as they are written, even where they look like numbers.
        progress: called with (bytes read, bytes in all).
    """

    def __init__(
        self,
        sources: Iterable[Any] = (),
        sep: str | None = None,
        text: Collection[str] = (),
        progress: Progress = silent,
    ) -> None:
        self.sep, self.text, self._progress = sep, text, progress
        files = [Path(source).expanduser() for source in sources if isinstance(source, str | os.PathLike)]
        self._total, self._done = sum(file.stat().st_size for file in files if file.is_file()), 0

    def stream(self, path: Path, counted: bool = True) -> Any:
        """The bytes of a file for Arrow, unpacked if it ends in .gz; those taken are counted, or the caller does."""
        import pyarrow as pa

        source = _Counted(path, self.count) if counted else str(path)
        return pa.input_stream(source, compression="gzip" if path.suffix.lower() == ".gz" else None)

    def count(self, amount: int) -> None:
        """So many bytes more."""
        self._done = min(self._total, self._done + amount)  # what is read once more counts once
        self._progress(self._done, max(1, self._total))


class _Counted(io.FileIO):
    """A file that says how much is taken from it."""

    def __init__(self, path: Path, told: Callable[[int], None]) -> None:
        super().__init__(path)
        self._told = told

    def read(self, size: int | None = -1, /) -> Any:
        """As of any file."""
        content = super().read(-1 if size is None else size)
        self._told(len(content or b""))
        return content
