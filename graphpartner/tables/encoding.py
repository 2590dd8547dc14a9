"""From columns to features: fitted on one table, stored with the model, applied again to new nodes.

    number       (v − mean) / deviation; a gap is the mean, and a second column marks the gaps
    passthrough  0/1 as they are, and so are the counts or weights of a bag of words: many columns, mostly zero
    category     one column per word (one-hot); an unknown word is all zeros
    text         TF-IDF, (1 + ln tf) · (ln((1 + n) / (1 + df)) + 1), rows of length 1

Where no column is left, features are the position of a node in the graph (:mod:`graphpartner.tables.structure`).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from graphpartner.graph.adjacency import to_torch
from graphpartner.system.errors import InputError
from graphpartner.tables.ids import positions
from graphpartner.tables.parse_cells import LARGEST, Comma, as_numbers, as_text
from graphpartner.tables.problems import Problems, quoted
from graphpartner.tables.read_table import Table
from graphpartner.tables.structure import Structure

FORMAT = 1

Kind = Literal["number", "passthrough", "category", "text"]


@dataclass(frozen=True)
class ColumnCode:
    """How one column becomes features.

    Attributes:
        name: the column.
        kind: number, passthrough, category or text.
        mean: of the numbers; it fills gaps.
        scale: the standard deviation of the numbers.
        gaps: whether a second feature marks missing cells.
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
        """The number of features that the column becomes."""
        return len(self.words) if self.kind in ("category", "text") else 1 + self.gaps

    def block(self, table: Table, problems: Problems) -> Any:
        """Return the features [n, width], dense or SciPy sparse; report cells that are no numbers."""
        column = table.frame[self.name]
        if self.kind == "category":
            return _one_hot(as_text(column), self.words)
        if self.kind == "text":
            return _tf_idf(as_text(column), self)
        numbers = as_numbers(column, certain=True, comma=self.comma)
        if numbers is None:
            problems.add(f"{table.name}: column {self.name!r} has other things than numbers; give numbers")
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
    """Report the cells of a column of numbers that are none, or that are too large to compute with."""
    if not bad.any():
        return
    cells = table.frame[column]

    def describe(row: int) -> str:
        cell = str(cells.iloc[row])
        try:
            too_large = math.isfinite(float(cell))
        except ValueError:
            too_large = False
        why = "is too large to compute with" if too_large else "is no finite number, as the others are"
        return f"{cell!r} in column {column!r} {why}; correct it, or leave the cell empty"

    problems.add_rows(table.locate, np.flatnonzero(bad).tolist(), describe)


@dataclass(frozen=True)
class FeatureEncoder:
    """How a node table becomes features, as :func:`~graphpartner.tables.choose_encoding.fit_encoder` decides.

    Attributes:
        columns: the code of every column that is used.
        sparse: whether features are a sparse CSR tensor.
        structure: how features come from the graph alone, where there are no columns.
    """

    columns: tuple[ColumnCode, ...] = ()
    sparse: bool = False
    structure: Structure | None = None

    @property
    def names(self) -> list[str]:
        """The names of the columns that a table must have."""
        return [code.name for code in self.columns]

    @cached_property
    def num_features(self) -> int:
        """The width of x."""
        return self.structure.width if self.structure else sum(code.width for code in self.columns)

    def check(self, table: Table, problems: Problems) -> bool:
        """Return whether a table has all columns; report those that are missing."""
        missing = [name for name in self.names if name not in set(table.columns)]
        if missing:
            problems.add(
                f"{table.name}: no {'columns' if len(missing) > 1 else 'column'} {quoted(missing)}, which the model "
                f"was fitted on; its columns are {quoted(table.columns)}"
            )
        return not missing

    def transform(self, table: Table, problems: Problems) -> Tensor:
        """Return the features [n, num_features], float32, dense or sparse CSR, of the rows of a table."""
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

    def asdict(self) -> dict[str, Any]:
        """Return all but the arrays, ready for JSON."""
        columns = []
        for code in self.columns:
            known = {field.name: getattr(code, field.name) for field in fields(code) if field.name != "idf"}
            columns.append(known | {"words": list(code.words)})
        structure = asdict(self.structure) if self.structure else None
        return {"format": FORMAT, "sparse": self.sparse, "columns": columns, "structure": structure}

    def arrays(self) -> dict[str, NDArray]:
        """Return the arrays by name: ``idf.3`` belongs to the fourth column."""
        return {f"idf.{place}": code.idf for place, code in enumerate(self.columns) if code.idf is not None}

    @classmethod
    def restore(cls, stored: Mapping[str, Any], arrays: Mapping[str, NDArray]) -> "FeatureEncoder":
        """Return the encoder that :meth:`asdict` and :meth:`arrays` describe.

        Raises:
            InputError: they describe none.
        """
        try:
            if stored["format"] != FORMAT:
                raise InputError(
                    f"format = {stored['format']!r}: must be {FORMAT}, the encoder's format in this version"
                )
            columns = []
            for place, known in enumerate(stored["columns"]):
                idf = np.asarray(arrays[f"idf.{place}"], np.float64) if known["kind"] == "text" else None
                code = ColumnCode(**{**known, "words": tuple(known["words"])}, idf=idf)
                if idf is not None and idf.shape != (len(code.words),):
                    raise InputError(f"idf.{place} = {idf.size} weights: must be {len(code.words)}, one per word")
                columns.append(code)
            structure = Structure(**stored["structure"]) if stored["structure"] else None
            return cls(tuple(columns), bool(stored["sparse"]), structure)
        except (KeyError, TypeError) as error:
            raise InputError(f"the stored encoder is damaged ({error!r}); fit the model again") from error


def _by_column(block: Any) -> tuple[NDArray, NDArray, NDArray]:
    """Return the entries of a block, column by column: values, their rows, and their number per column."""
    if sparse.issparse(block):
        block = block.tocsc()
        return block.data, block.indices, np.diff(block.indptr)
    column, row = np.nonzero(block.T)
    return block[row, column], row, np.bincount(column, minlength=block.shape[1])


def _one_hot(text: Any, words: Sequence[str]) -> sparse.csr_array:
    import pyarrow as pa

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
