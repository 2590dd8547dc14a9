"""JSON Lines: one object a line. Arrow reads it in parallel; only a file with a mistake is walked line by line."""

import gzip
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from graphpartner.graph.problems import SHOWN, Locate, Problems


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
