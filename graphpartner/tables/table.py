"""A table of someone's, wherever it is: CSV, TSV, Parquet, JSON Lines or a pandas DataFrame, as one :class:`Table`.

JSON Lines: one object a line. Arrow reads it in parallel; only a file with a mistake is walked line by line.
"""

import gzip
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from graphpartner.tables.problems import SHOWN, Locate, Problems, quoted
from graphpartner.tables.reading import Reading
from graphpartner.tables.text import read_text_table

TEXT = (".csv", ".tsv", ".txt")
JSON = (".jsonl", ".ndjson")
KINDS = ".csv, .tsv, .txt, .jsonl, .ndjson (each also as .gz) or .parquet"


@dataclass(frozen=True)
class Table:
    """A table in memory that knows where its rows are from.

    Attributes:
        name: the file, or what a person would call it.
        frame: a pandas DataFrame with text column names and rows 0 … n − 1; cells of text files are text.
        locate: where rows are: "nodes.csv, line 7".
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
    """Places in a table without lines: its rows, counted from 1."""
    return lambda rows: [f"{name}, row {row + 1}" for row in rows]


def read_table(source: Any, what: str, problems: Problems, reading: Reading | None = None) -> Table | None:
    """The table in a file or a DataFrame; None where it cannot be read, the reason being among the problems.

    Args:
        source: a path or a pandas DataFrame.
        what: "node" or "edge", for messages.
        problems: where to report.
        reading: how a text file is read.
    """
    if not isinstance(source, str | os.PathLike):
        return frame_table(source, f"the {what} table", problems)
    path = Path(source).expanduser()
    name = str(source)
    if not path.is_file():
        kind = "is a folder" if path.is_dir() else "does not exist"
        problems.add(f"{name} {kind}; give the {what} table as a file ({KINDS}).")
        return None
    suffixes = [suffix.lower() for suffix in path.suffixes]
    packed = suffixes[-1:] == [".gz"]
    ending = "".join((suffixes[:-1] if packed else suffixes)[-1:])
    if ending == ".parquet" and not packed:
        return _read_parquet(path, name, problems)
    if ending not in TEXT + JSON:
        problems.add(f"{name} has an unknown ending; name the {what} table {KINDS}, after what it is.")
        return None
    if ending in JSON:
        read = read_json_lines(path, name, problems)
    else:
        read = read_text_table(path, name, problems, reading or Reading(), "\t" if ending == ".tsv" else ",")
    return _checked(Table(name, *read), problems) if read else None


def frame_table(frame: Any, name: str, problems: Problems) -> Table | None:
    """A DataFrame as a table; an index that has a name is a column of its own."""
    import pandas as pd

    if not isinstance(frame, pd.DataFrame):
        problems.add(f"{name} is a {type(frame).__name__}, but must be a file ({KINDS}) or a pandas DataFrame.")
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
        problems.add(f"{name} is no Parquet file, or a damaged one ({_first_line(error)}); write it again.")
        return None
    frame = arrow.to_pandas()
    frame = frame.reset_index(drop=frame.index.name is None)
    frame.columns = [str(column) for column in frame.columns]
    return _checked(Table(name, frame, row_numbers(name)), problems)


def _checked(table: Table, problems: Problems) -> Table | None:
    """The table with lists of numbers spread over columns, if it has rows and names its columns apart."""
    columns = table.columns
    twice = (
        sorted({column for column in columns if columns.count(column) > 1}) if len(set(columns)) < len(columns) else []
    )
    if twice:
        problems.add(f"{table.name} has two columns of the same name: {quoted(twice)}; rename one of them.")
        return None
    if not len(table):
        problems.add(f"{table.name} has a header but no rows; give a table with at least one row.")
        return None
    lists = [column for column in columns if _is_list(table.frame[column])]
    return _explode(table, lists, problems) if lists else table


def _is_list(column: Any) -> bool:
    if column.dtype != object:
        return False
    first = column.first_valid_index()
    return first is not None and isinstance(column[first], list | tuple | np.ndarray)


def _explode(table: Table, lists: Sequence[str], problems: Problems) -> Table | None:
    """Every column of lists as one column a place, named column[0], column[1], … ; a missing list is missing cells."""
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
                    f"the list in column {column!r} has {lengths[row]} numbers, others have {width}; "
                    "give every row as many."
                ),
            )
            return None
        missing = [np.nan] * width
        try:
            block = np.array([cell if n == width else missing for cell, n in zip(cells, lengths, strict=True)], float)
        except (TypeError, ValueError):
            problems.add(f"{table.name}: column {column!r} holds lists of other things than numbers; leave it out.")
            return None
        parts |= {f"{column}[{place}]": pd.Series(block[:, place]) for place in range(width)}
    return Table(table.name, pd.DataFrame(parts), table.locate)


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")


def read_json_lines(path: Path, name: str, problems: Problems) -> tuple[Any, Locate] | None:
    """The table in a JSON Lines file, and where its rows are; None where it cannot be read.

    Text stays text ("007") and numbers stay numbers.
    """
    import pyarrow as pa
    from pyarrow import json as arrow_json

    def read(schema: Any = None) -> Any:
        options = arrow_json.ParseOptions(explicit_schema=schema, newlines_in_values=False)
        with pa.input_stream(str(path), compression="gzip" if path.suffix.lower() == ".gz" else None) as stream:
            return arrow_json.read_json(stream, parse_options=options)

    def locate(rows: Sequence[int]) -> list[str]:
        lines = [number for number, _ in _lines(path)]
        return [f"{name}, line {lines[row]}" for row in rows]

    try:
        table = read()
        if any(pa.types.is_timestamp(field.type) for field in table.schema):  # Arrow's guess; ids may look like dates
            kept = [
                pa.field(field.name, pa.string()) if pa.types.is_timestamp(field.type) else field
                for field in table.schema
            ]
            table = read(pa.schema(kept))
        return table.to_pandas(), locate
    except (pa.ArrowInvalid, OSError, EOFError):
        frame = _walk(path, name, problems)
        return None if frame is None else (frame, locate)


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines that are not blank, with their numbers from 1."""
    with gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                yield number, line


def _walk(path: Path, name: str, problems: Problems) -> Any:
    """What Arrow refused, read line by line: mixed types in a column are fine, broken lines are problems."""
    import pandas as pd

    rows, wrong, count = [], [], 0
    try:
        for number, line in _lines(path):
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
                wrong.append(f'{name}, line {number}: {reason}; write one object a line, {{"id": "a", …}}, in UTF-8.')
    except (OSError, EOFError) as error:
        problems.add(f"{name} cannot be unpacked ({error}); compress it again.")
        return None
    if wrong:
        problems.add_all(wrong, count)
        return None
    if not rows:
        problems.add(f'{name} is empty; write one object a line, {{"id": "a", …}}.')
        return None
    return pd.DataFrame(rows)
