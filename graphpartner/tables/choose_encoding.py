"""How should each column become features? Decided from its values; every decision is noted."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphpartner.tables.encoding import ColumnCode, FeatureEncoder, report_numbers
from graphpartner.tables.parse_cells import as_numbers, as_text
from graphpartner.tables.problems import Problems, many, quoted
from graphpartner.tables.table import Table

BAG_COLUMNS = 20  # so many mostly-zero columns are a bag of words
BAG_LARGEST = 1000.0  # counts are smaller than this; amounts of money are not
WORDS_IN_TEXT = 2.5
MOST_WORDS = 20_000
MOST_CATEGORIES = 1000
FEW_CATEGORIES = 50


@dataclass(frozen=True)
class ColumnProfile:
    """What is known of a column after one look at it.

    ``bag`` says that it may belong to a bag of words: not negative, mostly zero; ``largest`` is its largest
    value, where none is negative or missing.
    """

    code: ColumnCode | None
    nonzero: int = 0
    bag: bool = False
    largest: float = np.inf
    why_not: str = ""


def fit_encoder(table: Table, columns: Sequence[str], problems: Problems, notes: list[str]) -> FeatureEncoder:
    """Fit a code for each column; an encoder without columns if nothing can be learned from any."""
    drafts = {name: _profile(table, name, problems) for name in columns}
    bag = _bag(drafts)
    n, codes, nonzero = len(table), [], 0
    for name, draft in drafts.items():
        if draft.code is None:
            continue
        code = draft.code
        if name in bag:
            code = ColumnCode(name, "kept", comma=code.comma)
        dense = code.kind == "number"
        nonzero += n if dense else draft.nonzero
        codes.append(code)
    _note(table.name, codes, {name: draft.why_not for name, draft in drafts.items() if draft.code is None}, notes)
    return FeatureEncoder(tuple(codes)).with_layout_for(n, nonzero)


def _bag(drafts: dict[str, ColumnProfile]) -> set[str]:
    """The columns of a bag of words, if there are enough: the mostly-zero ones, and frequent words of the same size."""
    bag = {name for name, draft in drafts.items() if draft.bag}
    if len(bag) < BAG_COLUMNS:
        return set()
    largest = max(drafts[name].largest for name in bag)
    return bag | {name for name, draft in drafts.items() if 2 * len(bag) >= len(drafts) and draft.largest <= largest}


def _profile(table: Table, name: str, problems: Problems) -> ColumnProfile:
    """One look at a column."""
    column = table.frame[name]
    if str(column.dtype) == "category":  # the user has said what it is
        return ColumnProfile(None, why_not="empty") if column.isna().all() else _category(name, as_text(column))
    numbers = as_numbers(column)
    if numbers is None:
        return _words(name, as_text(column))
    values, bad, comma = numbers
    report_numbers(table, name, bad, problems)
    gap = np.isnan(values)
    known = values[~gap] if gap.any() else values
    if not known.size:
        return ColumnProfile(None, why_not="empty")
    gaps = known.size < values.size
    low, high = float(known.min()), float(known.max())
    if low == high and not gaps:
        return ColumnProfile(None, why_not="always the same")
    nonzero = int(np.count_nonzero(known))
    mean = float(known.mean())
    binary = low >= 0 and high <= 1 and bool(((known == 0) | (known == 1)).all())
    if binary:
        sparse = not gaps and 2 * nonzero <= values.size
        code = ColumnCode(name, "kept", mean=mean, gaps=gaps, comma=comma)
        return ColumnProfile(code, nonzero + int(gap.sum()), sparse, np.inf if gaps else high)
    code = ColumnCode(name, "number", mean=mean, scale=float(known.std()) or 1.0, gaps=gaps, comma=comma)
    sparse = not gaps and low >= 0 and high <= BAG_LARGEST and 2 * nonzero <= values.size
    return ColumnProfile(code, nonzero, sparse, np.inf if gaps or low < 0 else high)


def _words(name: str, text: Any) -> ColumnProfile:
    """A column of words: text if most cells are sentences of their own, else categories, else nothing to learn from."""
    from pyarrow import compute

    said = len(text) - text.null_count
    if not said:
        return ColumnProfile(None, why_not="empty")
    distinct = len(compute.unique(text.drop_null()))
    if distinct == 1 and said == len(text):
        return ColumnProfile(None, why_not="always the same")
    blanks = compute.mean(compute.count_substring_regex(text, pattern=r"\s+")).as_py()
    if 1 + blanks >= WORDS_IN_TEXT and (2 * distinct >= said or distinct > MOST_CATEGORIES):
        return _text(name, text)
    if distinct > FEW_CATEGORIES and distinct > 0.9 * said:
        return ColumnProfile(None, why_not="another word in nearly every row, like an id")
    return _category(name, text)


def _category(name: str, text: Any) -> ColumnProfile:
    """One-hot, of the most frequent categories where there are very many."""
    from pyarrow import compute

    counts = {item["values"]: item["counts"] for item in compute.value_counts(text.drop_null()).to_pylist()}
    words = sorted(sorted(counts), key=lambda word: -counts[word])[:MOST_CATEGORIES]
    return ColumnProfile(ColumnCode(name, "category", words=tuple(sorted(words))), sum(counts[word] for word in words))


def _text(name: str, text: Any) -> ColumnProfile:
    """TF-IDF of the words that appear in most rows, 20,000 at most; a word in one row only tells nothing."""
    from sklearn.feature_extraction.text import CountVectorizer

    documents = text.fill_null("").to_pylist()
    counter = CountVectorizer(binary=True, strip_accents="unicode", min_df=2 if len(documents) > 100 else 1)
    try:
        seen = counter.fit_transform(documents)
    except ValueError:  # no words at all, or none twice
        return ColumnProfile(None, why_not="no words in it")
    frequency = np.asarray(seen.sum(axis=0)).ravel()
    words = counter.get_feature_names_out()
    most = np.sort(np.argsort(-frequency, kind="stable")[:MOST_WORDS])
    idf = np.log((1 + len(documents)) / (1 + frequency[most])) + 1.0
    code = ColumnCode(name, "text", words=tuple(str(word) for word in words[most]), idf=idf)
    return ColumnProfile(code, int(frequency[most].sum()))


def _note(table: str, codes: Sequence[ColumnCode], left_out: dict[str, str], notes: list[str]) -> None:
    """Say what became of every column."""
    gaps = [code.name for code in codes if code.gaps]
    for kind, meaning in (("number", "standardised"), ("kept", "kept as they are (0/1, or a bag of words)")):
        names = [code.name for code in codes if code.kind == kind]
        if names:
            notes.append(f"{table}: {many(len(names), 'numeric column')} {meaning}: {quoted(names)}.")
    for comma, meaning in (("decimal", "the decimal point (3,5)"), ("groups", "groups of digits (16,770)")):
        names = [code.name for code in codes if code.comma == comma]
        if names:
            notes.append(f"{table}: commas are read as {meaning} in {quoted(names)}.")
    if gaps:
        notes.append(f"{table}: gaps filled with the mean and marked in a column of their own: {quoted(gaps)}.")
    for code in codes:
        if code.kind == "category":
            notes.append(f"{table}: {code.name!r} has {many(code.width, 'word')}, one-hot.")
        elif code.kind == "text":
            notes.append(f"{table}: {code.name!r} is text, TF-IDF of {many(code.width, 'word')}.")
    for why, number in Counter(left_out.values()).items():
        names = [name for name, reason in left_out.items() if reason == why]
        notes.append(f"{table}: {many(number, 'column')} left out ({why}): {quoted(names)}.")
