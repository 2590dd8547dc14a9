"""What the cells of a column say: numbers, yes or no, or text. Decided by the values, not by how they are stored.

So a column means the same in a CSV file, where everything is text, and in a DataFrame, where it has a type.
"""

import contextlib
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

MISSING = ("", "NA", "N/A", "NaN", "nan", "NULL", "null", "<NA>")
READABLE = 0.95  # a column of which so many cells are numbers is one of numbers, and the others are mistakes
DAY = 86_400.0 * 1e6  # in microseconds
LARGEST = 1e18  # whose square is still a float32

Comma = Literal["decimal", "groups"]
DECIMAL = r"^[-+]?[0-9]+,[0-9]+$"
GROUPED = r"^[-+]?[1-9][0-9]{0,2}(,[0-9]{3})+(\.[0-9]*)?$"


def as_text(column: Any) -> Any:
    """A pandas column as an Arrow array of text without blanks around it; cells that say nothing are null."""
    import pandas as pd
    import pyarrow as pa
    from pyarrow import compute

    if isinstance(column.dtype, pd.SparseDtype):
        column = column.sparse.to_dense()
    if str(column.dtype) == "category":
        column = column.astype(object)
    if column.dtype == object:
        column = column.map(str, na_action="ignore")
    array = pa.array(column, from_pandas=True)
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if pa.types.is_floating(array.type):  # whole numbers with gaps become floats in pandas
        with contextlib.suppress(pa.ArrowInvalid):
            array = array.cast(pa.int64())
    if pa.types.is_boolean(array.type):
        array = compute.if_else(array, "True", "False")
    array = compute.utf8_trim_whitespace(array.cast(pa.large_string()))
    known = pa.array(MISSING, pa.large_string())
    return compute.if_else(compute.is_in(array, value_set=known), pa.scalar(None, pa.large_string()), array)


class Numbers(NamedTuple):
    """What :func:`as_numbers` finds."""

    values: NDArray[np.float64]
    """NaN where a cell says nothing, or no number"""
    bad: NDArray[np.bool_]
    """which cells should be a number and are not, or are too large"""
    comma: Comma | None = None
    """what a comma means in this column"""


def as_numbers(column: Any, certain: bool = False, comma: Comma | None = None) -> Numbers | None:
    """The numbers of a column; None if fewer than 95 % of its cells are some.

    True counts 1 and false 0, dates count in days. A comma may stand for the decimal point, as in 3,5, or group
    digits, as in 16,770: that is decided by all cells together, since 4,039 may be either.

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
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)
        return _within_reach(values)
    if not _is_text(column):
        return None
    with contextlib.suppress(pa.ArrowException, TypeError):  # it stops at the first cell that is no plain number
        values = np.asarray(_cast(pa.array(column, from_pandas=True), pa.float64()))
        return _within_reach(values)
    if _most(column, _is_flag) and (flags := _flags(as_text(column))) is not None:
        return Numbers(flags, np.zeros(flags.size, np.bool_))
    if not certain and not _most(column, _is_number):
        return None
    text = as_text(column)
    comma = comma or _meaning_of_commas(text)
    values = _read(text, comma)
    said = np.asarray(text.is_valid())
    if not certain and (np.isnan(values) & said).sum() > (1 - READABLE) * said.sum():
        return None
    no_number = np.isnan(values) & said
    values, too_large, _ = _within_reach(values)
    return Numbers(values, no_number | too_large, comma)


def _within_reach(values: NDArray[np.float64]) -> Numbers:
    """The numbers that can be reckoned with, NaN for the others, and which these are."""
    bad = np.abs(values) > LARGEST
    return Numbers(np.where(bad, np.nan, values), bad)


def _flags(text: Any) -> NDArray[np.float64] | None:
    """1 for true, 0 for false, NaN where nothing is said; None if the cells say other things."""
    from pyarrow import compute

    lower = compute.utf8_lower(text)
    if not set(compute.unique(lower).drop_null().to_pylist()) <= {"true", "false"}:
        return None
    return np.asarray(compute.equal(lower, "true").cast("float64").to_numpy(zero_copy_only=False))


def _meaning_of_commas(text: Any) -> Comma | None:
    """What a comma means in a column, by its cells; None where there is none, or they do not agree."""
    from pyarrow import compute

    with_comma = text.filter(compute.match_substring(text, ","))
    if not len(with_comma):
        return None
    if all_match(with_comma, GROUPED):
        return "groups"
    points = compute.any(compute.match_substring(text, ".")).as_py()
    return "decimal" if all_match(with_comma, DECIMAL) and not points else None


def all_match(text: Any, pattern: str) -> bool:
    """Whether all cells of an Arrow array of text that say something match a pattern."""
    from pyarrow import compute

    return bool(compute.all(compute.match_substring_regex(text, pattern)).as_py())


def _read(text: Any, comma: Comma | None) -> NDArray[np.float64]:
    """Numbers or dates, whichever the cells are; NaN where a cell is none of them."""
    import pandas as pd
    import pyarrow as pa
    from pyarrow import compute

    plain = text
    if comma is not None:
        fits = compute.match_substring_regex(text, GROUPED if comma == "groups" else DECIMAL)
        plain = compute.if_else(fits, compute.replace_substring(text, ",", "" if comma == "groups" else "."), text)
    values = pd.to_numeric(plain.to_pandas().astype(object), errors="coerce").to_numpy(np.float64)
    said = max(1, len(text) - text.null_count)
    if comma is not None or np.isfinite(values).sum() >= 0.5 * said:
        return values
    try:
        days = np.asarray(_cast(text, pa.timestamp("us")).cast(pa.int64()).fill_null(0)) / DAY
        return np.where(np.asarray(text.is_valid()), days, np.nan)
    except pa.ArrowException:
        return values


def _cast(array: Any, kind: Any) -> Any:
    import pyarrow as pa

    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    return array.cast(kind)


def _is_text(column: Any) -> bool:
    import pandas as pd

    return pd.api.types.is_string_dtype(column.dtype) or column.dtype == object


def _is_number(text: str) -> bool:
    try:
        float(text.replace(",", ""))
    except ValueError:
        return text in MISSING or (text[:4].isdigit() and text[4:5] == "-")
    return True


def _is_flag(text: str) -> bool:
    return text.lower() in ("true", "false")


def _most(column: Any, says: Callable[[str], bool], probe: int = 200) -> bool:
    """Whether most of the first cells are of a kind: a cheap look before a long one."""
    first = [str(cell).strip() for cell in column.iloc[:probe].dropna()]
    return sum(map(says, first)) >= 0.5 * len(first)
