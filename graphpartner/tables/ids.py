"""From ids to positions: text, integers or UUIDs, a million at a time, without a Python loop over them.

Ids are compared as text without blanks around them: the integer 7 and the text "7" are one node, "007" is another.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphpartner.tables.parse_cells import as_arrow
from graphpartner.tables.problems import Problems
from graphpartner.tables.read_table import Table

WHOLE = r"^(-?[0-9]+)\.0+$"


def as_keys(column: Any) -> Any:
    """Return the ids of a pandas column as an Arrow array of text; None if they are neither text nor whole numbers."""
    import pyarrow as pa
    from pyarrow import compute

    try:
        array = as_arrow(column.map(str, na_action="ignore") if column.dtype == object else column)
        if pa.types.is_null(array.type):  # an empty column has no type
            array = array.cast(pa.large_string())
        if pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        if pa.types.is_floating(array.type):
            array = array.cast(pa.int64())
    except (pa.ArrowException, TypeError):
        return None
    if pa.types.is_integer(array.type):
        return array.cast(pa.large_string())
    if not (pa.types.is_string(array.type) or pa.types.is_large_string(array.type)):
        return None
    return compute.utf8_trim_whitespace(array.cast(pa.large_string()))


def positions(keys: Any, among: Any) -> NDArray[np.int64]:
    """Return the first position of each key among others, or −1."""
    from pyarrow import compute

    found = compute.index_in(keys, value_set=among, skip_nulls=True)
    return np.asarray(found.fill_null(-1)).astype(np.int64)


def without_point_zero(keys: Any) -> Any:
    """Return "12.0" as "12", the other keys as they are: spreadsheets and columns with gaps write whole numbers so."""
    from pyarrow import compute

    return compute.replace_substring_regex(keys, pattern=WHOLE, replacement=r"\1")


def node_ids(table: Table, column: str | None, problems: Problems) -> tuple[NDArray, Any]:
    """Return the ids as given and as keys; report those that are missing or repeated."""
    import pandas as pd
    from pyarrow import compute

    if column is None:
        ids = np.arange(len(table))
        return ids, as_keys(pd.Series(ids))
    cells = table.frame[column]
    keys = as_keys(cells)
    if keys is None:
        problems.add(f"{table.name}: column {column!r} (--id) has neither text nor whole numbers; give other ids")
        problems.stop_if_any()
    first = positions(keys, keys)
    missing = np.asarray(compute.equal(keys.fill_null(""), ""))
    problems.add_rows(
        table.locate, np.flatnonzero(missing).tolist(), lambda row: f"no id in column {column!r}; give the node one"
    )
    repeated = np.flatnonzero((first != np.arange(first.size)) & ~missing)

    def describe(row: int) -> str:
        (place,) = table.locate([int(first[row])])
        where = place.rpartition(", ")[2]
        return f"id {str(cells.iloc[row])!r} is already in {where}; remove one of the two, or give it another id"

    problems.add_rows(table.locate, repeated.tolist(), describe)
    ids = cells.to_numpy() if cells.dtype.kind in "iuf" else cells.to_numpy(dtype=object)
    if ids.dtype == object and pd.api.types.infer_dtype(ids, skipna=True) not in ("string", "integer"):
        ids = np.array([each if isinstance(each, (str, int)) else str(each) for each in ids], dtype=object)
    return ids, keys
