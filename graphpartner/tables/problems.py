"""Problems in a user's files: collected while reading and raised together, each with its place and a remedy."""

from collections.abc import Callable, Sequence
from itertools import zip_longest

from graphpartner.system.errors import InputError

SHOWN = 20  # as many as a person reads at once

Locate = Callable[[Sequence[int]], list[str]]
"""Rows of a table, counted from 0 → their places: "nodes.csv, line 7"."""


class Problems:
    """The problems found so far, by kind, so that a thousand of one kind do not hide the only one of another."""

    def __init__(self) -> None:
        self._kinds: list[tuple[int, Callable[[int], list[str]]]] = []

    def __bool__(self) -> bool:
        return bool(self._kinds)

    def add(self, message: str) -> None:
        """Add one problem of a whole file or argument; the message names it and a remedy."""
        self._kinds.append((1, lambda number: [message][:number]))

    def add_all(self, messages: Sequence[str], count: int | None = None) -> None:
        """Add problems of one kind; ``count`` is their number where not all have a message."""
        if messages:
            self._kinds.append((count or len(messages), lambda number: list(messages[:number])))

    def add_rows(self, locate: Locate, rows: Sequence[int], describe: Callable[[int], str]) -> None:
        """Add problems of one kind in these rows of a table; only those shown are located and described."""

        def messages(number: int) -> list[str]:
            first = [int(row) for row in rows[:number]]
            return [f"{place}: {describe(row)}" for place, row in zip(locate(first), first, strict=True)]

        if len(rows):
            self._kinds.append((len(rows), messages))

    def stop_if_any(self) -> None:
        """Raise one InputError with the first 20 problems, taken from all kinds in turn, if there are any.

        Raises:
            InputError: one line per problem, and the number of those left out.
        """
        if not self._kinds:
            return
        shares = [0] * len(self._kinds)
        turns = zip_longest(*([kind] * min(count, SHOWN) for kind, (count, _) in enumerate(self._kinds)))
        for kind in [kind for turn in turns for kind in turn if kind is not None][:SHOWN]:
            shares[kind] += 1
        shown = [line for share, (_, messages) in zip(shares, self._kinds, strict=True) for line in messages(share)]
        total = sum(count for count, _ in self._kinds)
        if total == 1:
            raise InputError(shown[0])
        more = [f"  and {total - len(shown):,} more"] if total > len(shown) else []
        raise InputError("\n".join([f"{total:,} problems:", *(f"  {line}" for line in shown), *more]))


def quoted(names: Sequence[object]) -> str:
    """Return names for a message: 'a', 'b', 'c'; after the tenth only their number."""
    shown = ", ".join(repr(str(name)) for name in list(names)[:10])
    return shown + (f" and {len(names) - 10} more" if len(names) > 10 else "") if names else "none"


def pluralise(number: int, noun: str) -> str:
    """Return a number with its noun: 1 node, 2,000 nodes."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")
