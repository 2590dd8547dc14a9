"""What the cells of a column hold: numbers, true or false, or text; decided by the values, not by how they are stored.

So a column means the same in a CSV file, where everything is text, and in a DataFrame, where it has a type.
"""

import contextlib
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

MISSING = ("", "NA", "N/A", "NaN", "nan", "NULL", "null", "<NA>")
READABLE = 0.95  # from this share of numbers on, a column is one of numbers, and its other cells are mistakes
DAY = 86_400.0 * 1e6  # in microseconds
LARGEST = 1e18  # whose square is still a float32

Comma = Literal["decimal", "groups"]
DECIMAL = r"^[-+]?[0-9]+,[0-9]+$"
GROUPED = r"^[-+]?[1-9][0-9]{0,2}(,[0-9]{3})+(\.[0-9]*)?$"


def as_arrow(column: Any) -> Any:
    """Return a pandas column as one Arrow array."""
    import pyarrow as pa

    array = pa.array(column, from_pandas=True)
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def as_text(column: Any) -> Any:
    """Return a pandas column as an Arrow array of text without blanks around it; missing cells are null."""
    import pandas as pd
    import pyarrow as pa
    from pyarrow import compute

    if isinstance(column.dtype, pd.SparseDtype):
        column = column.sparse.to_dense()
    if str(column.dtype) == "category":
        column = column.astype(object)
    if column.dtype == object:
        column = column.map(str, na_action="ignore")
    array = as_arrow(column)
    if pa.types.is_floating(array.type):  # whole numbers with gaps become floats in pandas
        with contextlib.suppress(pa.ArrowInvalid):
            array = array.cast(pa.int64())
    if pa.types.is_boolean(array.type):
        array = compute.if_else(array, "True", "False")
    array = compute.utf8_trim_whitespace(array.cast(pa.large_string()))
    missing = compute.is_in(array, value_set=pa.array(MISSING, pa.large_string()))
    return compute.if_else(missing, pa.scalar(None, pa.large_string()), array)


class Numbers(NamedTuple):
    """What :func:`as_numbers` returns."""

    values: NDArray[np.float64]
    """NaN where a cell is missing, or no number"""
    bad: NDArray[np.bool_]
    """which cells should be a number and are not, or are too large"""
    comma: Comma | None = None
    """what a comma means in this column"""


def as_numbers(column: Any, certain: bool = False, comma: Comma | None = None) -> Numbers | None:
    """Return the numbers of a column; None if fewer than 95 % of its cells are numbers.

    True is 1 and false 0, dates count in days. A comma may be the decimal point, as in 3,5, or group digits, as in
    16,770: all cells together decide, since 4,039 may be either.

    Args:
        column: of pandas.
        certain: whether it is known to be one of numbers.
        comma: what a comma means in it, if that is known.
    """
    import pandas as pd
    import pyarrow as pa

    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        micros = column.astype("datetime64[us]") if column.dt.tz is None else column.dt.tz_convert(None)
        values = micros.to_numpy().astype("datetime64[us]").astype(np.float64) / DAY
        values[column.isna().to_numpy()] = np.nan
        return Numbers(values, np.zeros(values.size, np.bool_))
    if isinstance(column.dtype, pd.SparseDtype):
        column = column.sparse.to_dense()
    if pd.api.types.is_numeric_dtype(column.dtype):
        return _without_huge(column.to_numpy(dtype=np.float64, na_value=np.nan))
    if not (pd.api.types.is_string_dtype(column.dtype) or column.dtype == object):
        return None
    with contextlib.suppress(pa.ArrowException, TypeError):  # it stops at the first cell that is no plain number
        return _without_huge(np.asarray(as_arrow(column).cast(pa.float64())))
    if _most(column, _is_flag) and (flags := _flags(as_text(column))) is not None:
        return Numbers(flags, np.zeros(flags.size, np.bool_))
    if not certain and not _most(column, _is_number):
        return None
    text = as_text(column)
    comma = comma or _meaning_of_commas(text)
    values = _parse(text, comma)
    present = np.asarray(text.is_valid())
    no_number = np.isnan(values) & present
    if not certain and no_number.sum() > (1 - READABLE) * present.sum():
        return None
    values, too_large, _ = _without_huge(values)
    return Numbers(values, no_number | too_large, comma)


def _without_huge(values: NDArray[np.float64]) -> Numbers:
    """Return numbers with NaN for those too large to compute with, which are marked as bad."""
    bad = np.abs(values) > LARGEST
    return Numbers(np.where(bad, np.nan, values), bad)


def _flags(text: Any) -> NDArray[np.float64] | None:
    """Return 1 for true, 0 for false, NaN where a cell is missing; None if there are other cells."""
    from pyarrow import compute

    lower = compute.utf8_lower(text)
    if not set(compute.unique(lower).drop_null().to_pylist()) <= {"true", "false"}:
        return None
    return np.asarray(compute.equal(lower, "true").cast("float64").to_numpy(zero_copy_only=False))


def _meaning_of_commas(text: Any) -> Comma | None:
    """Return what a comma means in a column, by its cells; None where there is none, or they do not agree."""
    from pyarrow import compute

    with_comma = text.filter(compute.match_substring(text, ","))
    if not len(with_comma):
        return None
    if all_match(with_comma, GROUPED):
        return "groups"
    points = compute.any(compute.match_substring(text, ".")).as_py()
    return "decimal" if all_match(with_comma, DECIMAL) and not points else None


def all_match(text: Any, pattern: str) -> bool:
    """Return whether all cells of an Arrow array of text that are not missing match a pattern."""
    from pyarrow import compute

    return bool(compute.all(compute.match_substring_regex(text, pattern)).as_py())


def _parse(text: Any, comma: Comma | None) -> NDArray[np.float64]:
    """Return numbers or dates, whichever the cells are; NaN where a cell is neither."""
    import pandas as pd
    import pyarrow as pa
    from pyarrow import compute

    plain = text
    if comma is not None:
        fits = compute.match_substring_regex(text, GROUPED if comma == "groups" else DECIMAL)
        plain = compute.if_else(fits, compute.replace_substring(text, ",", "" if comma == "groups" else "."), text)
    values = pd.to_numeric(plain.to_pandas().astype(object), errors="coerce").to_numpy(np.float64)
    present = max(1, len(text) - text.null_count)
    if comma is not None or np.isfinite(values).sum() >= 0.5 * present:
        return values
    try:
        days = np.asarray(text.cast(pa.timestamp("us")).cast(pa.int64()).fill_null(0)) / DAY
        return np.where(np.asarray(text.is_valid()), days, np.nan)
    except pa.ArrowException:
        return values


def _is_number(text: str) -> bool:
    try:
        float(text.replace(",", ""))
    except ValueError:
        return text in MISSING or (text[:4].isdigit() and text[4:5] == "-")
    return True


def _is_flag(text: str) -> bool:
    return text.lower() in ("true", "false")


def _most(column: Any, matches: Callable[[str], bool], probe: int = 200) -> bool:
    """Return whether most of the first cells match: a cheap look before a long one."""
    first = [str(cell).strip() for cell in column.iloc[:probe].dropna()]
    return sum(map(matches, first)) >= 0.5 * len(first)
