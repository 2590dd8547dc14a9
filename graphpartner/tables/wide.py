"""Text tables with hundreds of columns of plain numbers, as a bag of words has: read block by block, zeros left out.

As text, such a table takes gigabytes and most of a minute. A cell that turns out to be no number sends the whole table
back to the ordinary way, which says where it is.
"""

import re
from collections.abc import Callable, Collection, Sequence
from typing import Any

from scipy import sparse

from graphpartner.tables.parse_cells import MISSING

WIDE = 100  # fewer columns of numbers are no trouble as text
NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")  # 007 is a name
SPARSE_BELOW = 0.5


def number_columns(rows: Sequence[Sequence[str]], text: Collection[int] = ()) -> list[int]:
    """The columns that hold plain numbers in these rows, if there are many; whole numbers that all differ may be ids.

    Args:
        rows: the first ones of a table, all of the same length.
        text: columns that are read as text in any case.
    """
    found = []
    for place, column in enumerate(zip(*rows, strict=True)):
        cells = set(column)
        if place in text or not all(cell == "0" or not cell or NUMBER.fullmatch(cell) for cell in cells):
            continue
        if len(cells) < len(column) or any("." in cell for cell in cells):
            found.append(place)
    return found if len(found) >= WIDE else []


def read_wide(
    stream: Any, names: list[str], numbers: Sequence[str], read: Any, parse: Any, told: Callable[[int], None]
) -> Any:
    """A pandas DataFrame of the named columns; those of numbers are sparse where most of them are zero.

    Args:
        stream: the bytes of the table.
        names: all columns, in order.
        numbers: the columns that hold numbers.
        read: Arrow's options, as for any other table.
        parse: likewise.
        told: called with the number of rows after every block.

    Raises:
        pyarrow.ArrowException: where a cell among the numbers is none.
    """
    import pandas as pd
    import pyarrow as pa
    from pyarrow import csv

    types = dict.fromkeys(names, pa.string()) | dict.fromkeys(numbers, pa.float64())
    convert = csv.ConvertOptions(column_types=types, strings_can_be_null=True, null_values=list(MISSING))
    others = [name for name, kind in types.items() if kind != pa.float64()]
    blocks, texts = [], []
    with csv.open_csv(stream, read, parse, convert) as reader:
        for batch in reader:
            block = batch.select(numbers).to_tensor(null_to_nan=True, row_major=False).to_numpy()
            blocks.append(sparse.csr_array(block.T))
            texts.append(batch.select(others))
            told(batch.num_rows)
    x = sparse.hstack(blocks, format="csr").T
    if x.nnz < SPARSE_BELOW * x.shape[0] * x.shape[1]:
        values = pd.DataFrame.sparse.from_spmatrix(sparse.csc_matrix(x), columns=list(numbers))
    else:
        values = pd.DataFrame(x.toarray(), columns=list(numbers))
    text = pa.Table.from_batches(texts)
    return pd.concat([pd.DataFrame({name: text.column(name).to_pandas() for name in others}), values], axis=1)[names]
