"""How each column becomes features: decided from its values, with a note on every decision."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from graphpartner.tables.encoding import ColumnCode, FeatureEncoder, report_numbers
from graphpartner.tables.parse_cells import as_numbers, as_text
from graphpartner.tables.problems import Problems, pluralise, quoted
from graphpartner.tables.read_table import Table

BAG_COLUMNS = 20  # this many mostly-zero columns are a bag of words
BAG_LARGEST = 1000.0  # counts are smaller than this; amounts of money are not
WORDS_IN_TEXT = 2.5
MAX_WORDS = 20_000
MAX_CATEGORIES = 1000
FEW_CATEGORIES = 50
SPARSE_CELLS = 1_000_000  # smaller tables are dense
SPARSE_DENSITY = 0.1


@dataclass(frozen=True)
class ColumnProfile:
    """What one look at a column finds.

    Attributes:
        code: how the column becomes features; None where it is left out.
        nonzero: the number of its features other than 0.
        bag: whether it may belong to a bag of words: not negative, mostly zero.
        largest: its largest value, where none is negative or missing.
        skip_reason: why it is left out.
    """

    code: ColumnCode | None
    nonzero: int = 0
    bag: bool = False
    largest: float = np.inf
    skip_reason: str = ""


def fit_encoder(table: Table, columns: Sequence[str], problems: Problems, notes: list[str]) -> FeatureEncoder:
    """Fit a code for each column; return an encoder without columns if nothing can be learned from any."""
    profiles = {name: _profile(table, name, problems) for name in columns}
    bag = _bag_of_words(profiles)
    codes, nonzero = [], 0
    for name, profile in profiles.items():
        if profile.code is not None:
            code = ColumnCode(name, "passthrough", comma=profile.code.comma) if name in bag else profile.code
            nonzero += len(table) if code.kind == "number" else profile.nonzero
            codes.append(code)
    _note(table.name, codes, {name: p.skip_reason for name, p in profiles.items() if p.code is None}, notes)
    encoder = FeatureEncoder(tuple(codes))
    cells = len(table) * encoder.num_features
    return replace(encoder, sparse=cells >= SPARSE_CELLS and nonzero <= SPARSE_DENSITY * cells)


def _bag_of_words(profiles: dict[str, ColumnProfile]) -> set[str]:
    """Return the columns of a bag of words, if there are enough: mostly-zero ones, and frequent words of their size."""
    bag = {name for name, profile in profiles.items() if profile.bag}
    if len(bag) < BAG_COLUMNS:
        return set()
    if 2 * len(bag) < len(profiles):
        return bag
    largest = max(profiles[name].largest for name in bag)
    return bag | {name for name, profile in profiles.items() if profile.largest <= largest}


def _profile(table: Table, name: str, problems: Problems) -> ColumnProfile:
    """Look at a column once."""
    column = table.frame[name]
    if str(column.dtype) == "category":  # the user's own declaration
        return ColumnProfile(None, skip_reason="empty") if column.isna().all() else _category(name, as_text(column))
    numbers = as_numbers(column)
    if numbers is None:
        return _words(name, as_text(column))
    values, bad, comma = numbers
    report_numbers(table, name, bad, problems)
    gap = np.isnan(values)
    known = values[~gap] if gap.any() else values
    if not known.size:
        return ColumnProfile(None, skip_reason="empty")
    gaps = known.size < values.size
    low, high = float(known.min()), float(known.max())
    if low == high and not gaps:
        return ColumnProfile(None, skip_reason="always the same")
    nonzero = int(np.count_nonzero(known))
    mean = float(known.mean())
    sparse = not gaps and low >= 0 and high <= BAG_LARGEST and 2 * nonzero <= values.size
    largest = np.inf if gaps or low < 0 else high
    if low >= 0 and high <= 1 and bool(((known == 0) | (known == 1)).all()):
        code = ColumnCode(name, "passthrough", mean=mean, gaps=gaps, comma=comma)
        return ColumnProfile(code, nonzero + int(gap.sum()), sparse, largest)
    code = ColumnCode(name, "number", mean=mean, scale=float(known.std()) or 1.0, gaps=gaps, comma=comma)
    return ColumnProfile(code, nonzero, sparse, largest)


def _words(name: str, text: Any) -> ColumnProfile:
    """Profile a column of words: text if most cells are sentences of their own, else categories, else left out."""
    from pyarrow import compute

    present = len(text) - text.null_count
    if not present:
        return ColumnProfile(None, skip_reason="empty")
    distinct = len(compute.unique(text.drop_null()))
    if distinct == 1 and present == len(text):
        return ColumnProfile(None, skip_reason="always the same")
    blanks = compute.mean(compute.count_substring_regex(text, pattern=r"\s+")).as_py()
    if 1 + blanks >= WORDS_IN_TEXT and (2 * distinct >= present or distinct > MAX_CATEGORIES):
        return _text(name, text)
    if distinct > FEW_CATEGORIES and distinct > 0.9 * present:
        return ColumnProfile(None, skip_reason="a different word in nearly every row, like an id")
    return _category(name, text)


def _category(name: str, text: Any) -> ColumnProfile:
    """Profile categories, one-hot: the most frequent ones where there are very many."""
    from pyarrow import compute

    counts = {item["values"]: item["counts"] for item in compute.value_counts(text.drop_null()).to_pylist()}
    words = sorted(sorted(counts), key=lambda word: -counts[word])[:MAX_CATEGORIES]
    return ColumnProfile(ColumnCode(name, "category", words=tuple(sorted(words))), sum(counts[word] for word in words))


def _text(name: str, text: Any) -> ColumnProfile:
    """Profile text, TF-IDF: of the words in most rows, at most 20,000; nothing is learned from a word in one row."""
    from sklearn.feature_extraction.text import CountVectorizer

    documents = text.fill_null("").to_pylist()
    counter = CountVectorizer(binary=True, strip_accents="unicode", min_df=2 if len(documents) > 100 else 1)
    try:
        counts = counter.fit_transform(documents)
    except ValueError:  # no words at all, or none twice
        return ColumnProfile(None, skip_reason="no words in it")
    frequency = np.asarray(counts.sum(axis=0)).ravel()
    words = counter.get_feature_names_out()
    chosen = np.sort(np.argsort(-frequency, kind="stable")[:MAX_WORDS])
    idf = np.log((1 + len(documents)) / (1 + frequency[chosen])) + 1.0
    code = ColumnCode(name, "text", words=tuple(str(word) for word in words[chosen]), idf=idf)
    return ColumnProfile(code, int(frequency[chosen].sum()))


def _note(table: str, codes: Sequence[ColumnCode], left_out: dict[str, str], notes: list[str]) -> None:
    """Note what became of every column."""
    for kind, meaning in (("number", "standardised"), ("passthrough", "kept as they are (0/1, or a bag of words)")):
        names = [code.name for code in codes if code.kind == kind]
        if names:
            notes.append(f"{table}: {pluralise(len(names), 'numeric column')} {meaning}: {quoted(names)}.")
    for comma, meaning in (("decimal", "the decimal point (3,5)"), ("groups", "groups of digits (16,770)")):
        names = [code.name for code in codes if code.comma == comma]
        if names:
            notes.append(f"{table}: commas are read as {meaning} in {quoted(names)}.")
    if gaps := [code.name for code in codes if code.gaps]:
        notes.append(f"{table}: gaps filled with the mean and marked in a column of their own: {quoted(gaps)}.")
    for code in codes:
        if code.kind == "category":
            notes.append(f"{table}: {code.name!r} has {pluralise(code.width, 'word')}, one-hot.")
        elif code.kind == "text":
            notes.append(f"{table}: {code.name!r} is text, TF-IDF of {pluralise(code.width, 'word')}.")
    for why, number in Counter(left_out.values()).items():
        names = [name for name, reason in left_out.items() if reason == why]
        notes.append(f"{table}: {pluralise(number, 'column')} left out ({why}): {quoted(names)}.")
