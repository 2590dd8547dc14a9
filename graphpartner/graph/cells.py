"""What the cells of a column say: numbers, yes or no, or text. Decided by the values, not by how they are stored.

So a column means the same in a CSV file, where everything is text, and in a DataFrame, where it has a type.
"""

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

MISSING = ("", "NA", "N/A", "NaN", "nan", "NULL", "null", "<NA>")
READABLE = 0.95  # a column of which so many cells are numbers is one of numbers, and the others are mistakes
DAY = 86_400.0 * 1e6  # in microseconds
LARGEST = 1e18  # whose square is still a float32


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


def as_numbers(column: Any, certain: bool = False) -> tuple[NDArray[np.float64], NDArray[np.bool_]] | None:
    """The numbers of a column (NaN where there is none) and which cells should be one and are not, or too large.

    True counts 1 and false 0, dates count in days; a comma may stand for the decimal point. None if fewer than 95 % of
    the cells are numbers, unless the column is certain to be one of numbers.
    """
    import pandas as pd
    import pyarrow as pa

    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        micros = column.astype("datetime64[us]") if column.dt.tz is None else column.dt.tz_convert(None)
        values = micros.to_numpy().astype("datetime64[us]").astype(np.float64) / DAY
        values[column.isna().to_numpy()] = np.nan
        return values, np.zeros(values.size, np.bool_)
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
        return flags, np.zeros(flags.size, np.bool_)
    if not certain and not _most(column, _is_number):
        return None
    text = as_text(column)
    values = _read(text)
    said = np.asarray(text.is_valid())
    if not certain and (np.isnan(values) & said).sum() > (1 - READABLE) * said.sum():
        return None
    values, bad = _within_reach(values)
    return values, bad | (np.isnan(values) & said)


def _within_reach(values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """The numbers that can be reckoned with, NaN for the others, and which these are."""
    bad = np.abs(values) > LARGEST
    return np.where(bad, np.nan, values), bad


def _flags(text: Any) -> NDArray[np.float64] | None:
    """1 for true, 0 for false, NaN where nothing is said; None if the cells say other things."""
    from pyarrow import compute

    lower = compute.utf8_lower(text)
    if not set(compute.unique(lower).drop_null().to_pylist()) <= {"true", "false"}:
        return None
    return np.asarray(compute.equal(lower, "true").cast("float64").to_numpy(zero_copy_only=False))


def _read(text: Any) -> NDArray[np.float64]:
    """Numbers, decimal commas or dates, whichever the cells are; NaN where a cell is none of them."""
    import pandas as pd
    import pyarrow as pa
    from pyarrow import compute

    plain = text.to_pandas().astype(object)
    values = pd.to_numeric(plain, errors="coerce").to_numpy(np.float64)
    said = max(1, len(text) - text.null_count)
    if np.isfinite(values).sum() >= 0.5 * said:
        return values
    comma = compute.match_substring_regex(text, r"^[-+]?[0-9]+,[0-9]+$")
    if (compute.sum(comma).as_py() or 0) > 0:
        return pd.to_numeric(plain.str.replace(",", "."), errors="coerce").to_numpy(np.float64)
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
        float(text.replace(",", ".", 1))
    except ValueError:
        return text in MISSING or (text[:4].isdigit() and text[4:5] == "-")
    return True


def _is_flag(text: str) -> bool:
    return text.lower() in ("true", "false")


def _most(column: Any, says: Callable[[str], bool], probe: int = 200) -> bool:
    """Whether most of the first cells are of a kind: a cheap look before a long one."""
    first = [str(cell).strip() for cell in column.iloc[:probe].dropna()]
    return sum(map(says, first)) >= 0.5 * len(first)
