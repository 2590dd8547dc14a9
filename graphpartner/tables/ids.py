"""From ids to positions: text, integers or UUIDs, a million at a time, without a Python loop over them.

Ids are compared as text without blanks around them: the integer 7 and the text "7" are one node, "007" is another.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphpartner.tables.problems import Problems
from graphpartner.tables.table import Table

WHOLE = r"^(-?[0-9]+)\.0+$"


def as_keys(column: Any) -> Any:
    """The ids of a pandas column as an Arrow array of text; None if they are neither text nor whole numbers."""
    import pyarrow as pa
    from pyarrow import compute

    if column.dtype == object:
        column = column.map(str, na_action="ignore")
    try:
        array = pa.array(column, from_pandas=True)
    except (pa.ArrowException, TypeError):
        return None
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if pa.types.is_null(array.type):  # an empty column has no type
        array = array.cast(pa.large_string())
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_floating(array.type):
        try:
            array = array.cast(pa.int64())
        except pa.ArrowInvalid:
            return None
    if pa.types.is_integer(array.type):
        return array.cast(pa.large_string())
    if not (pa.types.is_string(array.type) or pa.types.is_large_string(array.type)):
        return None
    return compute.utf8_trim_whitespace(array.cast(pa.large_string()))


def positions(keys: Any, among: Any) -> NDArray[np.int64]:
    """Where each key is among others: the first place, or −1."""
    from pyarrow import compute

    found = compute.index_in(keys, value_set=among, skip_nulls=True)
    return np.asarray(found.fill_null(-1)).astype(np.int64)


def without_point_zero(keys: Any) -> Any:
    """The same keys with "12.0" as "12": what a spreadsheet or a column with gaps makes of whole numbers."""
    from pyarrow import compute

    return compute.replace_substring_regex(keys, pattern=WHOLE, replacement=r"\1")


def node_ids(table: Table, column: str | None, problems: Problems) -> tuple[NDArray, Any]:
    """The ids as given and as keys; missing and repeated ones go to the problems."""
    import pandas as pd
    from pyarrow import compute

    if column is None:
        ids = np.arange(len(table))
        return ids, as_keys(pd.Series(ids))
    cells = table.frame[column]
    keys = as_keys(cells)
    if keys is None:
        problems.add(f"{table.name}: column {column!r} (--id) holds neither text nor whole numbers; give other ids.")
        problems.stop_if_any()
    first = positions(keys, keys)
    missing = np.asarray(compute.equal(keys.fill_null(""), ""))
    problems.add_rows(
        table.locate, np.flatnonzero(missing).tolist(), lambda row: f"no id in column {column!r}; give the node one."
    )
    again = np.flatnonzero((first != np.arange(first.size)) & ~missing)

    def describe(row: int) -> str:
        (place,) = table.locate([int(first[row])])
        where = place.rpartition(", ")[2]
        return f"id {str(cells.iloc[row])!r} is there twice, first in {where}; remove one, or give it another id."

    problems.add_rows(table.locate, again.tolist(), describe)
    ids = cells.to_numpy() if cells.dtype.kind in "iuf" else cells.to_numpy(dtype=object)
    if ids.dtype == object and pd.api.types.infer_dtype(ids, skipna=True) not in ("string", "integer"):
        ids = np.array([each if isinstance(each, (str, int)) else str(each) for each in ids], dtype=object)
    return ids, keys
