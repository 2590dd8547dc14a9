"""From columns to features: fitted on what is given, stored with the model, applied again to new nodes.

    numbers   (v − mean) / deviation; a gap is the mean, and a second column says where gaps are
    0/1       as they are, and so are the counts or weights of a bag of words: many columns, mostly zero
    category  one column a word (one-hot); an unknown word is all zeros
    text      TF-IDF, (1 + ln tf) · (ln((1 + n) / (1 + df)) + 1), rows of length 1
    nothing   where no column is left, the place of a node in the graph (:mod:`graphpartner.tables.structure`)

Everything is sparse where that pays, dense otherwise. ``asdict`` and ``arrays`` are plain JSON and plain arrays.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from graphpartner.graph.adjacency import to_torch
from graphpartner.system.errors import InputError
from graphpartner.tables.parse_cells import LARGEST, Comma, as_numbers, as_text
from graphpartner.tables.problems import Problems, quoted
from graphpartner.tables.structure import Structure
from graphpartner.tables.table import Table

FORMAT = 1
SPARSE_CELLS = 1_000_000  # smaller tables are dense
SPARSE_DENSITY = 0.1

Kind = Literal["number", "kept", "category", "text"]


@dataclass(frozen=True)
class ColumnCode:
    """How one column becomes features.

    Attributes:
        name: the column.
        kind: number, kept (as it is), category or text.
        mean: what a gap is filled with; a number is taken relative to it.
        scale: the deviation that a number is divided by.
        gaps: whether a second feature says where cells are missing.
        words: the categories, or the vocabulary.
        idf: the weights of the vocabulary, [words].
        comma: what a comma means in numbers: the decimal point, or that digits are grouped.
    """

    name: str
    kind: Kind
    mean: float = 0.0
    scale: float = 1.0
    gaps: bool = False
    words: tuple[str, ...] = ()
    idf: NDArray[np.float64] | None = None
    comma: Comma | None = None

    @property
    def width(self) -> int:
        """How many features the column becomes."""
        return len(self.words) if self.kind in ("category", "text") else 1 + self.gaps

    def block(self, table: Table, problems: Problems) -> Any:
        """The features [n, width], dense or SciPy sparse; cells that are no numbers go to the problems."""
        column = table.frame[self.name]
        if self.kind == "category":
            return _one_hot(as_text(column), self.words)
        if self.kind == "text":
            return _tf_idf(as_text(column), self)
        numbers = as_numbers(column, certain=True, comma=self.comma)
        if numbers is None:
            problems.add(f"{table.name}: column {self.name!r} holds other things than numbers; give numbers.")
            return np.zeros((len(table), self.width), np.float32)
        values, bad, _ = numbers
        report_numbers(table, self.name, bad, problems)
        gap = np.isnan(values)
        filled = np.where(gap, self.mean, values)
        if self.kind == "number":
            filled = (filled - self.mean) / self.scale
            report_numbers(table, self.name, ~bad & (np.abs(filled) > LARGEST), problems)
        parts = [filled, gap] if self.gaps else [filled]
        return np.stack(parts, axis=1).astype(np.float32)


def report_numbers(table: Table, column: str, bad: NDArray[np.bool_], problems: Problems) -> None:
    """Report the cells of a column of numbers that are none, or that are too large to reckon with."""
    if not bad.any():
        return
    cells = table.frame[column]

    def describe(row: int) -> str:
        cell = str(cells.iloc[row])
        try:
            too_large = math.isfinite(float(cell))
        except ValueError:
            too_large = False
        why = "is far larger than can be reckoned with" if too_large else "is no finite number, as the others are"
        return f"{cell!r} in column {column!r} {why}; correct it, or leave the cell empty."

    problems.add_rows(table.locate, np.flatnonzero(bad).tolist(), describe)


@dataclass(frozen=True)
class FeatureEncoder:
    """How the columns of a node table become features.

    Made by :func:`~graphpartner.tables.choose_encoding.fit_encoder`.

    Attributes:
        columns: the code of every column that is used.
        sparse: whether features are a sparse CSR tensor.
        structure: how features come from the graph alone, where no column has any.
    """

    columns: tuple[ColumnCode, ...] = ()
    sparse: bool = False
    structure: Structure | None = None

    @property
    def names(self) -> list[str]:
        """The columns that a table must have."""
        return [code.name for code in self.columns]

    @cached_property
    def num_features(self) -> int:
        """The width of x."""
        return self.structure.width if self.structure else sum(code.width for code in self.columns)

    def check(self, table: Table, problems: Problems) -> bool:
        """Whether a table has all columns; those that are missing go to the problems."""
        missing = [name for name in self.names if name not in set(table.columns)]
        if missing:
            problems.add(
                f"{table.name} lacks {'columns' if len(missing) > 1 else 'the column'} {quoted(missing)} that the "
                f"model was fitted on; add them (its columns are {quoted(table.columns)})."
            )
        return not missing

    def transform(self, table: Table, problems: Problems) -> Tensor:
        """The features [n, num_features], float32, dense or sparse CSR, of the rows of a table with these columns."""
        n = len(table)
        if not self.sparse:
            x = np.empty((n, self.num_features), np.float32)
            start = 0
            for code in self.columns:
                block = code.block(table, problems)
                x[:, start : start + code.width] = block.toarray() if sparse.issparse(block) else block
                start += code.width
            return torch.from_numpy(x)
        parts = [_by_column(code.block(table, problems)) for code in self.columns]
        data, indices, lengths = (np.concatenate(part) for part in zip(*parts, strict=True))
        indptr = np.concatenate([[0], np.cumsum(lengths)])
        return to_torch(sparse.csc_array((data, indices, indptr), shape=(n, self.num_features)).tocsr())

    def with_layout_for(self, n: int, nonzero: int) -> "FeatureEncoder":
        """The same encoder, sparse if a table of n rows with so many features other than 0 had better be."""
        cells = n * self.num_features
        return replace(self, sparse=cells >= SPARSE_CELLS and nonzero <= SPARSE_DENSITY * cells)

    def asdict(self) -> dict[str, Any]:
        """All of it but the arrays, ready for JSON."""
        columns = []
        for code in self.columns:
            known = {field.name: getattr(code, field.name) for field in fields(code) if field.name != "idf"}
            columns.append(known | {"words": list(code.words)})
        structure = asdict(self.structure) if self.structure else None
        return {"format": FORMAT, "sparse": self.sparse, "columns": columns, "structure": structure}

    def arrays(self) -> dict[str, NDArray]:
        """The arrays by name: ``idf.3`` belongs to the fourth column."""
        return {f"idf.{place}": code.idf for place, code in enumerate(self.columns) if code.idf is not None}

    @classmethod
    def restore(cls, stored: Mapping[str, Any], arrays: Mapping[str, NDArray]) -> "FeatureEncoder":
        """The encoder that :meth:`asdict` and :meth:`arrays` describe.

        Raises:
            InputError: they describe none.
        """
        try:
            if stored["format"] != FORMAT:
                raise InputError(f"The encoder has format {stored['format']!r}, but this version reads {FORMAT}.")
            columns = []
            for place, known in enumerate(stored["columns"]):
                idf = np.asarray(arrays[f"idf.{place}"], np.float64) if known["kind"] == "text" else None
                code = ColumnCode(**{**known, "words": tuple(known["words"])}, idf=idf)
                if idf is not None and idf.shape != (len(code.words),):
                    raise InputError(
                        f"The encoder has {idf.size} weights for {len(code.words)} words of {code.name!r}."
                    )
                columns.append(code)
            structure = Structure(**stored["structure"]) if stored["structure"] else None
            return cls(tuple(columns), bool(stored["sparse"]), structure)
        except (KeyError, TypeError) as error:
            raise InputError(f"The stored encoder is damaged ({error!r}); fit the model again.") from error


def _by_column(block: Any) -> tuple[NDArray, NDArray, NDArray]:
    """What a block stores, column after column: values, their rows, and how many each column has."""
    if sparse.issparse(block):
        block = block.tocsc()
        return block.data, block.indices, np.diff(block.indptr)
    column, row = np.nonzero(block.T)
    return block[row, column], row, np.bincount(column, minlength=block.shape[1])


def _one_hot(text: Any, words: Sequence[str]) -> sparse.csr_array:
    import pyarrow as pa

    from graphpartner.tables.ids import positions

    place = positions(text, pa.array(words, pa.large_string()))
    (row,) = np.nonzero(place >= 0)
    return sparse.csr_array((np.ones(row.size, np.float32), (row, place[row])), shape=(len(text), len(words)))


def _tf_idf(text: Any, code: ColumnCode) -> sparse.csr_array:
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectorizer = TfidfVectorizer(
        vocabulary=list(code.words), sublinear_tf=True, strip_accents="unicode", dtype=np.float32
    )
    vectorizer.idf_ = code.idf
    return sparse.csr_array(vectorizer.transform(text.fill_null("").to_pylist()))
