"""CSV, TSV and their relatives: Arrow reads them in parallel, every cell as text ("007" stays itself).

Only a file that Arrow refuses, or one with a row to be pointed at, is walked line by line.
"""

import codecs
import contextlib
import csv
import gzip
import io
import sys
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, cast

from graphpartner.tables.problems import SHOWN, Locate, Problems
from graphpartner.tables.reading import Reading
from graphpartner.tables.wide import WIDE, number_columns, read_wide

SEPARATORS = {",": "comma", "\t": "tab", ";": "semicolon", "|": "bar", " ": "space"}
MARKS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
HEAD_BYTES = 1 << 18
HEAD_LINES, MOST_BYTES = 4, 1 << 26
HEAD_ROWS = 50


def read_text_table(
    path: Path, name: str, problems: Problems, reading: Reading, usual: str
) -> tuple[Any, Locate] | None:
    """The table in a text file, and where its rows are; None where it cannot be read.

    Args:
        path: the file, packed if it ends in .gz.
        name: what messages call it.
        problems: where to report.
        reading: how.
        usual: the separator that the file's ending suggests.
    """
    import pandas as pd
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    try:
        with _open(path) as file:
            head = file.read(HEAD_BYTES)
            while head.count(b"\n") < HEAD_LINES and len(head) < MOST_BYTES and (more := file.read(HEAD_BYTES)):
                head += more  # of very long lines
    except (OSError, EOFError) as error:
        problems.add(f"{name} cannot be read ({error}); give a readable file.")
        return None
    encoding = next((codec for mark, codec in MARKS.items() if head.startswith(mark)), "utf-8")
    sample = _sample(head, encoding)
    if not sample.strip():
        problems.add(f"{name} is empty; give a table with a header line and at least one row.")
        return None
    sep = reading.sep or _separator(sample, usual, name, problems)
    if sep is None:
        return None
    try:
        lines = csv.reader(io.StringIO(sample, newline=""), delimiter=sep)
        blank, header = next((place, row) for place, row in enumerate(lines) if row)
    except csv.Error as error:
        problems.add(f"{name}, line 1: no header can be read ({error}); give the names of the columns there.")
        return None
    if len(header) == 1 and (better := _separator(sample, sep, name, problems)) not in (sep, None):
        problems.add(
            f"{name}, line 1: one column only if separated by {SEPARATORS.get(sep, sep)}; it looks separated by "
            f"{SEPARATORS[better]}: leave out --sep, or give that one."
        )
        return None
    names = [f"f{column}" for column in range(len(header))]
    options = (
        # a block holds many rows even of a very wide table
        arrow_csv.ReadOptions(
            column_names=names,
            skip_rows_after_names=blank + 1,
            block_size=max(1 << 20, 128 * len(sample.split("\n", 1)[0])),
            encoding="utf-8" if encoding == "utf-8-sig" else encoding,
        ),
        arrow_csv.ParseOptions(delimiter=sep, newlines_in_values=True),
    )
    as_text = arrow_csv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=True, null_values=[""]
    )
    frame = None
    try:
        if numbers := _numbers(sample, sep, header, reading.text):
            width = len(sample) / (sample.count("\n") + 1)  # Arrow takes bytes long before it is done with them
            with contextlib.suppress(pa.ArrowException), reading.stream(path, counted=False) as stream:  # else as text
                wanted = [names[place] for place in numbers]
                frame = read_wide(stream, names, wanted, *options, lambda rows: reading.count(round(rows * width)))
        if frame is None:
            with reading.stream(path) as stream:
                table = arrow_csv.read_csv(stream, *options, as_text)
            frame = pd.DataFrame({column: table.column(column).to_pandas() for column in names})
    except (pa.ArrowException, UnicodeError, OSError, EOFError) as error:
        if not (_report_bytes(path, name, encoding, problems) or _report_rows(path, name, sep, encoding, problems)):
            problems.add(f"{name} cannot be read ({str(error).splitlines()[0]}); write it again as a plain CSV file.")
        return None
    frame.columns = [column.strip() for column in header]

    def locate(rows: Sequence[int]) -> list[str]:
        lines = _lines_of(path, sep, encoding, rows)
        return [f"{name}, line {lines[row]}" for row in rows]

    return frame, locate


def _numbers(sample: str, sep: str, header: list[str], text: Collection[str]) -> list[int]:
    """The places of the columns that hold numbers, in a table that has very many of them."""
    if len(header) < WIDE:
        return []
    rows = islice(csv.reader(io.StringIO(sample, newline=""), delimiter=sep), 1, 1 + HEAD_ROWS)
    try:
        whole = [row for row in rows if len(row) == len(header)]
    except csv.Error:  # a very long text: Arrow reads it
        return []
    return number_columns(whole, {place for place, name in enumerate(header) if name.strip() in text})


def _open(path: Path) -> BinaryIO:
    return cast(BinaryIO, gzip.open(path)) if path.suffix.lower() == ".gz" else path.open("rb")


def _sample(head: bytes, encoding: str) -> str:
    """The first whole lines as text; what cannot be decoded is found later, with its line."""
    text = head.decode(encoding, errors="replace")
    if len(head) < HEAD_BYTES or "\n" not in text:
        return text
    return text[: text.rindex("\n")]


def _separator(sample: str, usual: str, name: str, problems: Problems) -> str | None:
    """The separator that splits the first rows into as many fields as the header; None if two do so equally well."""
    shares = {}
    for sep in SEPARATORS:
        widths = []
        try:
            for row in csv.reader(io.StringIO(sample, newline=""), delimiter=sep):
                widths += [len(row)] if row else []
                if len(widths) == HEAD_ROWS:
                    break
        except csv.Error:
            continue
        if widths and widths[0] > 1:
            shares[sep] = widths.count(widths[0]) / len(widths)
    if " " in shares and len(shares) > 1:
        del shares[" "]  # a blank separates only where nothing else does
    if not shares:
        return usual  # one column
    best = [sep for sep, share in shares.items() if share == max(shares.values())]
    if usual in best or len(best) == 1:
        return usual if usual in best else best[0]
    words = " or ".join(SEPARATORS[sep] for sep in best)
    problems.add(f"{name}, line 1: the columns may be separated by {words}; say which one with --sep.")
    return None


def _rows(path: Path, sep: str, encoding: str) -> Iterator[tuple[int, list[str]]]:
    """The rows that are not blank, the header first, each with the line it begins on."""
    limit = csv.field_size_limit(sys.maxsize)
    try:
        with io.TextIOWrapper(_open(path), encoding=encoding, errors="replace", newline="") as text:
            reader = csv.reader(text, delimiter=sep)
            line = 1
            for row in reader:
                if row:
                    yield line, row
                line = reader.line_num + 1
    finally:
        csv.field_size_limit(limit)


def _lines_of(path: Path, sep: str, encoding: str, rows: Sequence[int]) -> dict[int, int]:
    """The lines on which these rows begin (row 0 is the one after the header); a quoted field may span several."""
    wanted, last, found = set(rows), max(rows), {}
    for row, (line, _) in enumerate(_rows(path, sep, encoding), -1):
        if row in wanted:
            found[row] = line
        if row >= last:
            break
    return found


def _report_rows(path: Path, name: str, sep: str, encoding: str, problems: Problems) -> bool:
    """Report the rows with too few or too many fields; whether there were any."""
    wrong, count, width = [], 0, None
    try:
        for line, row in _rows(path, sep, encoding):
            width = width or len(row)
            if len(row) == width:
                continue
            count += 1
            if count <= SHOWN:
                why = "complete the row, or quote a field that contains the separator"
                if any("\n" in field for field in row):
                    why = 'a quoted field spans several lines: perhaps a " is not closed'
                wrong.append(
                    f"{name}, line {line}: {len(row)} fields, but the header has {width} "
                    f"(separated by {SEPARATORS.get(sep, sep)}); {why}."
                )
    except (OSError, EOFError) as error:
        problems.add(f"{name} cannot be unpacked ({error}); compress it again.")
        return True
    problems.add_all(wrong, count)
    return count > 0


def _report_bytes(path: Path, name: str, encoding: str, problems: Problems) -> bool:
    """Report the lines that are not in the encoding the file should have; whether there were any."""
    if encoding == "utf-16":
        try:
            with io.TextIOWrapper(_open(path), encoding=encoding) as text:
                line = 1
                for line, _ in enumerate(text, 2):  # noqa: B007
                    pass
        except UnicodeError as error:
            problems.add(f"{name}, line {line}: no UTF-16, though the file begins as such ({error}); save it as UTF-8.")
            return True
        except (OSError, EOFError):
            pass
        return False
    wrong, mixed = [], False
    count = 0
    try:
        with _open(path) as file:
            for number, line_bytes in enumerate(file, 1):
                try:
                    mixed |= not line_bytes.isascii() and bool(line_bytes.decode("utf-8"))
                except UnicodeDecodeError as error:
                    count += 1
                    if count <= SHOWN:
                        byte = line_bytes[error.start]
                        wrong.append((number, error.start + 1, byte))
    except (OSError, EOFError):
        return False  # the walk over the rows says so
    remedy = "save the file as UTF-8" + (" (other lines are UTF-8 already: the encodings are mixed)" if mixed else "")
    problems.add_all(
        [
            f"{name}, line {number}, byte {place}: 0x{byte:02X} is not UTF-8 "
            f"(in Latin-1 it is {bytes([byte]).decode('latin-1')!r}); {remedy}."
            for number, place, byte in wrong
        ],
        count,
    )
    return count > 0
