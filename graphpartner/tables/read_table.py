"""Read a user's table, wherever it is: CSV, TSV, Parquet, JSON Lines or a pandas DataFrame, as one :class:`Table`.

JSON Lines, one object per line, are read by Arrow in parallel; only a file with a mistake is walked line by line.
"""

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from graphpartner.tables.problems import SHOWN, Locate, Problems, quoted
from graphpartner.tables.text_table import ReadContext, arrow_stream, open_binary, read_text_table

TEXT = (".csv", ".tsv", ".txt")
JSON = (".jsonl", ".ndjson")
KINDS = ".csv, .tsv, .txt, .jsonl, .ndjson (each also as .gz) or .parquet"


@dataclass(frozen=True)
class Table:
    """A table in memory, with the places of its rows.

    Attributes:
        name: the file, or what a person would call it.
        frame: a pandas DataFrame with text column names and rows 0 … n − 1; cells of text files are text.
        locate: maps rows to their places: "nodes.csv, line 7".
    """

    name: str
    frame: Any
    locate: Locate

    @property
    def columns(self) -> list[str]:
        """The names of the columns in order."""
        return list(self.frame.columns)

    def __len__(self) -> int:
        return len(self.frame)


def row_numbers(name: str) -> Locate:
    """Return the places in a table without lines: its rows, counted from 1."""
    return lambda rows: [f"{name}, row {row + 1}" for row in rows]


def read_table(source: Any, what: str, problems: Problems, context: ReadContext | None = None) -> Table | None:
    """Read a file or a DataFrame; return None where it cannot be read and add the reason to the problems.

    ``what`` is "node" or "edge", for messages; ``context`` has the options of text files.
    """
    if not isinstance(source, str | os.PathLike):
        return frame_table(source, f"the {what} table", problems)
    path = Path(source).expanduser()
    name = str(source)
    if not path.is_file():
        kind = "is a folder" if path.is_dir() else "does not exist"
        problems.add(f"{name}: {kind}; give the {what} table as a file ({KINDS})")
        return None
    packed = path.suffix.lower() == ".gz"
    ending = (path.with_suffix("") if packed else path).suffix.lower()
    if ending == ".parquet" and not packed:
        return _read_parquet(path, name, problems)
    if ending in JSON:
        read = _read_json_lines(path, name, problems)
    elif ending in TEXT:
        read = read_text_table(path, name, problems, context or ReadContext(), "\t" if ending == ".tsv" else ",")
    else:
        problems.add(f"{name}: unknown ending; the {what} table must be a {KINDS} file")
        return None
    return _checked(Table(name, *read), problems) if read else None


def frame_table(frame: Any, name: str, problems: Problems) -> Table | None:
    """Return a DataFrame as a table; an index that has a name becomes a column."""
    import pandas as pd

    if not isinstance(frame, pd.DataFrame):
        problems.add(f"{name}: must be a file ({KINDS}) or a pandas DataFrame, not a {type(frame).__name__}")
        return None
    frame = frame.reset_index(drop=frame.index.name is None or frame.index.name in frame.columns)
    frame.columns = [str(column) for column in frame.columns]
    return _checked(Table(name, frame, row_numbers(name)), problems)


def _read_parquet(path: Path, name: str, problems: Problems) -> Table | None:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        arrow = parquet.read_table(path, use_pandas_metadata=True)
    except (pa.ArrowInvalid, OSError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
        problems.add(f"{name}: no Parquet file, or a damaged one ({reason}); write it again")
        return None
    return frame_table(arrow.to_pandas(), name, problems)


def _checked(table: Table, problems: Problems) -> Table | None:
    """Return a table that has rows and columns of different names, with lists of numbers spread over columns."""
    columns = table.columns
    if len(set(columns)) < len(columns):
        repeated = sorted({column for column in columns if columns.count(column) > 1})
        problems.add(f"{table.name}: two columns have the same name, {quoted(repeated)}; rename one of them")
        return None
    if not len(table):
        problems.add(f"{table.name}: a header but no rows; give a table with at least one row")
        return None
    lists = [column for column in columns if _is_list(table.frame[column])]
    return _explode(table, lists, problems) if lists else table


def _is_list(column: Any) -> bool:
    if column.dtype != object:
        return False
    first = column.first_valid_index()
    return first is not None and isinstance(column[first], list | tuple | np.ndarray)


def _explode(table: Table, lists: Sequence[str], problems: Problems) -> Table | None:
    """Turn each column of lists into columns named column[0], column[1], …; a missing list becomes missing cells."""
    import pandas as pd

    parts = {}
    for column in table.columns:
        cells = table.frame[column]
        if column not in lists:
            parts[column] = cells
            continue
        lengths = np.array([len(cell) if isinstance(cell, list | tuple | np.ndarray) else -1 for cell in cells])
        width = int(lengths.max())
        odd = np.flatnonzero((lengths >= 0) & (lengths != width))
        if odd.size:
            problems.add_rows(
                table.locate,
                odd.tolist(),
                lambda row, column=column, lengths=lengths, width=width: (  # type: ignore[misc]
                    f"the list in column {column!r} has length {lengths[row]}, others have {width}; "
                    "give lists of one length"
                ),
            )
            return None
        missing = [np.nan] * width
        try:
            block = np.array([cell if n == width else missing for cell, n in zip(cells, lengths, strict=True)], float)
        except (TypeError, ValueError):
            problems.add(f"{table.name}: column {column!r} has lists of other things than numbers; leave it out")
            return None
        parts |= {f"{column}[{place}]": pd.Series(block[:, place]) for place in range(width)}
    return Table(table.name, pd.DataFrame(parts), table.locate)


def _read_json_lines(path: Path, name: str, problems: Problems) -> tuple[Any, Locate] | None:
    """Return the table in a JSON Lines file and the places of its rows; None where it cannot be read.

    Text stays text ("007") and numbers stay numbers.
    """
    import pyarrow as pa
    from pyarrow import json as arrow_json

    def read(schema: Any = None) -> Any:
        options = arrow_json.ParseOptions(explicit_schema=schema, newlines_in_values=False)
        with arrow_stream(path) as stream:
            return arrow_json.read_json(stream, parse_options=options)

    def locate(rows: Sequence[int]) -> list[str]:
        lines = [number for number, _ in _json_lines(path)]
        return [f"{name}, line {lines[row]}" for row in rows]

    try:
        table = read()
        dates = [field.name for field in table.schema if pa.types.is_timestamp(field.type)]
        if dates:  # Arrow's guess; ids may look like dates
            table = read(
                pa.schema([pa.field(each.name, pa.string()) if each.name in dates else each for each in table.schema])
            )
        return table.to_pandas(), locate
    except (pa.ArrowInvalid, OSError, EOFError):
        frame = _walk_json_lines(path, name, problems)
        return None if frame is None else (frame, locate)


def _json_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that are not blank, with their numbers from 1."""
    with open_binary(path) as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                yield number, line


def _walk_json_lines(path: Path, name: str, problems: Problems) -> Any:
    """Read what Arrow refused line by line: mixed types in a column are fine, broken lines are problems."""
    import pandas as pd

    example = 'write one object per line, {"id": "a", …}'
    rows, wrong, count = [], [], 0
    try:
        for number, line in _json_lines(path):
            try:
                row = json.loads(line.decode("utf-8-sig"))
                reason = "" if isinstance(row, dict) else f"a JSON {type(row).__name__}, not an object"
            except UnicodeDecodeError as error:
                reason = f"byte {error.start + 1} (0x{line[error.start]:02X}) is not UTF-8"
            except json.JSONDecodeError as error:
                reason = f"no JSON ({error.msg} at character {error.pos + 1})"
            if not reason:
                rows.append(row)
                continue
            count += 1
            if count <= SHOWN:
                wrong.append(f"{name}, line {number}: {reason}; {example}, in UTF-8")
    except (OSError, EOFError) as error:
        problems.add(f"{name}: cannot be unpacked ({error}); compress it again")
        return None
    if wrong:
        problems.add_all(wrong, count)
    elif not rows:
        problems.add(f"{name}: the file is empty; {example}")
    return None if wrong or not rows else pd.DataFrame(rows)
