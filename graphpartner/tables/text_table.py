"""Read CSV, TSV and their relatives: Arrow parses them in parallel, every cell as text ("007" stays "007").

Only a file that Arrow refuses, or one with a row that a message points at, is walked line by line.

A table with hundreds of columns of plain numbers, such as a bag of words, would take gigabytes and most of a minute as
text. It is read block by block and its zeros are left out; a cell that turns out to be no number sends the whole table
back to the ordinary way, where its place is reported.
"""

import codecs
import contextlib
import csv
import gzip
import io
import os
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, cast

from scipy import sparse

from graphpartner.system.progress import Progress, silent
from graphpartner.tables.parse_cells import MISSING
from graphpartner.tables.problems import SHOWN, Locate, Problems

SEPARATORS = {",": "comma", "\t": "tab", ";": "semicolon", "|": "bar", " ": "space"}
MARKS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
HEAD_BYTES = 1 << 18
HEAD_LINES, MAX_HEAD_BYTES = 4, 1 << 26
HEAD_ROWS = 50
WIDE = 100  # fewer columns of numbers are no trouble as text
NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")  # 007 is a name
SPARSE_BELOW = 0.5


class ReadContext:
    """What the text files of one graph share: options, and the progress of reading them.

    Args:
        sources: the tables of the graph; the sizes of the files among them are the total of ``progress``.
        sep: the separator; None finds it: comma, tab, semicolon, bar or space.
        text: columns whose cells stay as they are written, even where they look like numbers.
        progress: called with (bytes read, total bytes).
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

    def count(self, size: int) -> None:
        """Report that ``size`` more bytes have been read."""
        self._done = min(self._total, self._done + size)  # what is read once more counts once
        self._progress(self._done, max(1, self._total))


class _CountedFile(io.FileIO):
    """A file that reports the number of bytes read from it."""

    def __init__(self, path: Path, count: Callable[[int], None]) -> None:
        super().__init__(path)
        self._count = count

    def read(self, size: int | None = -1, /) -> Any:
        """Read as from any file."""
        content = super().read(-1 if size is None else size)
        self._count(len(content or b""))
        return content


def arrow_stream(path: Path, count: Callable[[int], None] | None = None) -> Any:
    """Open a file for Arrow, unpacked if it ends in .gz; ``count`` is called with the sizes of the parts read."""
    import pyarrow as pa

    source = str(path) if count is None else _CountedFile(path, count)
    return pa.input_stream(source, compression="gzip" if path.suffix.lower() == ".gz" else None)


def open_binary(path: Path) -> BinaryIO:
    """Open a file for reading bytes, unpacked if it ends in .gz."""
    return cast(BinaryIO, gzip.open(path)) if path.suffix.lower() == ".gz" else path.open("rb")


@dataclass(frozen=True)
class _TextFile:
    """A text file and its layout: ``sample`` is its first whole lines, ``blank`` the blank ones above the header."""

    path: Path
    name: str
    encoding: str
    sample: str
    sep: str
    header: list[str]
    blank: int


def read_text_table(
    path: Path, name: str, problems: Problems, context: ReadContext, usual_sep: str
) -> tuple[Any, Locate] | None:
    """Return the table in a text file and the places of its rows; None where it cannot be read.

    ``name`` is the name of the file in messages, ``usual_sep`` the separator that its ending suggests.
    """
    import pyarrow as pa

    file = _detect_layout(path, name, problems, context.sep, usual_sep)
    if file is None:
        return None
    try:
        frame = _read_frame(file, context)
    except (pa.ArrowException, UnicodeError, OSError, EOFError) as error:
        if not (_report_bytes(file, problems) or _report_rows(file, problems)):
            problems.add(f"{name}: cannot be read ({str(error).splitlines()[0]}); write it again as a plain CSV file")
        return None
    frame.columns = [column.strip() for column in file.header]

    def locate(rows: Sequence[int]) -> list[str]:
        lines = _lines_of(file, rows)
        return [f"{name}, line {lines[row]}" for row in rows]

    return frame, locate


def _detect_layout(path: Path, name: str, problems: Problems, sep: str | None, usual_sep: str) -> _TextFile | None:
    """Return the encoding, separator and header of a file, found in its first lines; None where there are none."""
    try:
        with open_binary(path) as file:
            head = file.read(HEAD_BYTES)
            while head.count(b"\n") < HEAD_LINES and len(head) < MAX_HEAD_BYTES and (more := file.read(HEAD_BYTES)):
                head += more  # of very long lines
    except (OSError, EOFError) as error:
        problems.add(f"{name}: cannot be read ({error}); give a readable file")
        return None
    encoding = next((codec for mark, codec in MARKS.items() if head.startswith(mark)), "utf-8")
    sample = head.decode(encoding, errors="replace")  # what cannot be decoded is found later, with its line
    if len(head) >= HEAD_BYTES and "\n" in sample:
        sample = sample[: sample.rindex("\n")]
    if not sample.strip():
        problems.add(f"{name}: the file is empty; give a table with a header line and at least one row")
        return None
    sep = sep or _find_separator(sample, usual_sep, name, problems)
    if sep is None:
        return None
    try:
        blank, header = next((place, row) for place, row in enumerate(_split(sample, sep)) if row)
    except csv.Error as error:
        problems.add(f"{name}, line 1: no header can be read ({error}); give the names of the columns there")
        return None
    if len(header) == 1 and (better := _find_separator(sample, sep, name, problems)) not in (sep, None):
        problems.add(
            f"{name}, line 1: one column only if separated by {SEPARATORS.get(sep, sep)}; it looks separated by "
            f"{SEPARATORS[better]}: leave out --sep, or give that one"
        )
        return None
    return _TextFile(path, name, encoding, sample, sep, header, blank)


def _split(sample: str, sep: str) -> Iterator[list[str]]:
    return csv.reader(io.StringIO(sample, newline=""), delimiter=sep)


def _find_separator(sample: str, usual: str, name: str, problems: Problems) -> str | None:
    """Return the separator that gives the first rows as many fields as the header; None if two do so equally well."""
    shares = {}
    for sep in SEPARATORS:
        try:
            widths = [len(row) for row in islice(filter(None, _split(sample, sep)), HEAD_ROWS)]
        except csv.Error:
            continue
        if widths and widths[0] > 1:
            shares[sep] = widths.count(widths[0]) / len(widths)
    if " " in shares and len(shares) > 1:
        del shares[" "]  # a blank separates only where nothing else does
    if not shares:
        return usual  # one column
    best = [sep for sep, share in shares.items() if share == max(shares.values())]
    if usual in best:
        return usual
    if len(best) == 1:
        return best[0]
    candidates = " or ".join(SEPARATORS[sep] for sep in best)
    problems.add(f"{name}, line 1: the columns may be separated by {candidates}; name the separator with --sep")
    return None


def _read_frame(file: _TextFile, context: ReadContext) -> Any:
    """Return the cells as a DataFrame of text, or of text and numbers where very many columns are numbers."""
    import pandas as pd
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    names = [f"f{column}" for column in range(len(file.header))]
    options = (
        # a block holds many rows even of a very wide table
        arrow_csv.ReadOptions(
            column_names=names,
            skip_rows_after_names=file.blank + 1,
            block_size=max(1 << 20, 128 * len(file.sample.split("\n", 1)[0])),
            encoding="utf-8" if file.encoding == "utf-8-sig" else file.encoding,
        ),
        arrow_csv.ParseOptions(delimiter=file.sep, newlines_in_values=True),
    )
    rows = islice(_split(file.sample, file.sep), 1, 1 + HEAD_ROWS)
    written = {place for place, name in enumerate(file.header) if name.strip() in context.text}
    numbers = []
    with contextlib.suppress(csv.Error):  # a very long text: Arrow reads it
        numbers = number_columns([row for row in rows if len(row) == len(names)], written)
    if numbers:
        row_size = len(file.sample) / (file.sample.count("\n") + 1)  # Arrow takes bytes long before it parses them
        with contextlib.suppress(pa.ArrowException), arrow_stream(file.path) as stream:  # then as text
            wanted = [names[place] for place in numbers]
            return _read_wide(stream, names, wanted, *options, lambda rows: context.count(round(rows * row_size)))
    as_text = arrow_csv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=True, null_values=[""]
    )
    with arrow_stream(file.path, context.count) as stream:
        table = arrow_csv.read_csv(stream, *options, as_text)
    return pd.DataFrame({column: table.column(column).to_pandas() for column in names})


def number_columns(rows: Sequence[Sequence[str]], text: Collection[int] = ()) -> list[int]:
    """Return the columns of plain numbers in the first rows, if there are many; whole numbers all different may be ids.

    ``text`` are the columns that are read as text in any case.
    """
    found = []
    for place, column in enumerate(zip(*rows, strict=True)):
        cells = set(column)
        if place in text or not all(cell == "0" or not cell or NUMBER.fullmatch(cell) for cell in cells):
            continue
        if len(cells) < len(column) or any("." in cell for cell in cells):
            found.append(place)
    return found if len(found) >= WIDE else []


def _read_wide(
    stream: Any, names: list[str], numbers: Sequence[str], read: Any, parse: Any, on_rows: Callable[[int], None]
) -> Any:
    """Return a DataFrame of the named columns; those of numbers are sparse where most of them are zero.

    ``read`` and ``parse`` are Arrow's options; ``on_rows`` is called with the number of rows of every block.

    Raises:
        pyarrow.ArrowException: a cell among the numbers is none.
    """
    import pandas as pd
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    types = dict.fromkeys(names, pa.string()) | dict.fromkeys(numbers, pa.float64())
    convert = arrow_csv.ConvertOptions(column_types=types, strings_can_be_null=True, null_values=list(MISSING))
    others = [name for name, kind in types.items() if kind != pa.float64()]
    blocks, texts = [], []
    with arrow_csv.open_csv(stream, read, parse, convert) as reader:
        for batch in reader:
            block = batch.select(numbers).to_tensor(null_to_nan=True, row_major=False).to_numpy()
            blocks.append(sparse.csr_array(block.T))
            texts.append(batch.select(others))
            on_rows(batch.num_rows)
    x = sparse.hstack(blocks, format="csr").T
    if x.nnz < SPARSE_BELOW * x.shape[0] * x.shape[1]:
        values = pd.DataFrame.sparse.from_spmatrix(sparse.csc_matrix(x), columns=list(numbers))
    else:
        values = pd.DataFrame(x.toarray(), columns=list(numbers))
    text = pa.Table.from_batches(texts)
    return pd.concat([pd.DataFrame({name: text.column(name).to_pandas() for name in others}), values], axis=1)[names]


def _rows(file: _TextFile) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows that are not blank, the header first, each with the line it begins on."""
    limit = csv.field_size_limit(sys.maxsize)
    try:
        with io.TextIOWrapper(open_binary(file.path), encoding=file.encoding, errors="replace", newline="") as text:
            reader = csv.reader(text, delimiter=file.sep)
            line = 1
            for row in reader:
                if row:
                    yield line, row
                line = reader.line_num + 1
    finally:
        csv.field_size_limit(limit)


def _lines_of(file: _TextFile, rows: Sequence[int]) -> dict[int, int]:
    """Return the lines on which rows begin (row 0 follows the header); a quoted field may span several."""
    wanted, last, found = set(rows), max(rows), {}
    for row, (line, _) in enumerate(_rows(file), -1):
        if row in wanted:
            found[row] = line
        if row >= last:
            break
    return found


def _report_rows(file: _TextFile, problems: Problems) -> bool:
    """Report the rows with too few or too many fields; return whether there are any."""
    wrong, count, width = [], 0, None
    try:
        for line, row in _rows(file):
            width = width or len(row)
            if len(row) == width:
                continue
            count += 1
            if count <= SHOWN:
                why = "complete the row, or quote a field that contains the separator"
                if any("\n" in field for field in row):
                    why = 'a quoted field spans several lines: perhaps a " is not closed'
                wrong.append(
                    f"{file.name}, line {line}: {len(row)} fields, but the header has {width} "
                    f"(separated by {SEPARATORS.get(file.sep, file.sep)}); {why}"
                )
    except (OSError, EOFError) as error:
        problems.add(f"{file.name}: cannot be unpacked ({error}); compress it again")
        return True
    problems.add_all(wrong, count)
    return count > 0


def _report_bytes(file: _TextFile, problems: Problems) -> bool:
    """Report the lines that are not in the encoding of the file; return whether there are any."""
    if file.encoding == "utf-16":
        return _report_utf16(file, problems)
    wrong, count, mixed = [], 0, False
    try:
        with open_binary(file.path) as lines:
            for number, line in enumerate(lines, 1):
                try:
                    mixed |= not line.isascii() and bool(line.decode("utf-8"))
                except UnicodeDecodeError as error:
                    count += 1
                    if count <= SHOWN:
                        wrong.append((number, error.start + 1, line[error.start]))
    except (OSError, EOFError):
        return False  # the walk over the rows reports it
    remedy = "save the file as UTF-8" + (" (other lines are UTF-8 already: the encodings are mixed)" if mixed else "")
    problems.add_all(
        [
            f"{file.name}, line {number}, byte {place}: 0x{byte:02X} is not UTF-8 "
            f"(in Latin-1 it is {bytes([byte]).decode('latin-1')!r}); {remedy}"
            for number, place, byte in wrong
        ],
        count,
    )
    return count > 0


def _report_utf16(file: _TextFile, problems: Problems) -> bool:
    """Report the first line that is no UTF-16; return whether there is one."""
    line = 1
    try:
        with io.TextIOWrapper(open_binary(file.path), encoding=file.encoding) as text:
            for _ in text:
                line += 1
    except UnicodeError as error:
        problems.add(f"{file.name}, line {line}: no UTF-16, though the file begins as such ({error}); save it as UTF-8")
        return True
    except (OSError, EOFError):
        pass  # the walk over the rows reports it
    return False
