"""What is wrong with someone's files: gathered while reading, told together, each with its place and a remedy."""

from collections.abc import Callable, Sequence
from itertools import zip_longest

from graphpartner.system.errors import InputError

SHOWN = 20  # as many as a person reads at once

Locate = Callable[[Sequence[int]], list[str]]
"""Rows of a table, counted from 0 → where each is: "nodes.csv, line 7"."""


class Problems:
    """The problems found so far, by kind, so that a thousand of one kind do not hide the only one of another."""

    def __init__(self) -> None:
        self._kinds: list[tuple[int, Callable[[int], list[str]]]] = []

    def __bool__(self) -> bool:
        return bool(self._kinds)

    def add(self, message: str) -> None:
        """One problem of a whole file or argument: the message names it and says what to do."""
        self._kinds.append((1, lambda number: [message][:number]))

    def add_all(self, messages: Sequence[str], count: int | None = None) -> None:
        """Problems of one kind; ``count`` is how many there are where not all have a message."""
        if messages:
            self._kinds.append((count or len(messages), lambda number: list(messages[:number])))

    def add_rows(self, locate: Locate, rows: Sequence[int], describe: Callable[[int], str]) -> None:
        """Problems of one kind in these rows of a table; only those that will be shown are located and described."""

        def tell(number: int) -> list[str]:
            first = [int(row) for row in rows[:number]]
            return [f"{place}: {describe(row)}" for place, row in zip(locate(first), first, strict=True)]

        if len(rows):
            self._kinds.append((len(rows), tell))

    def stop_if_any(self) -> None:
        """Raise one InputError with the first 20 problems, of all kinds, if there are any.

        Raises:
            InputError: one line for each problem, and how many more there are.
        """
        if not self._kinds:
            return
        shares = [0] * len(self._kinds)
        turns = zip_longest(*([kind] * min(count, SHOWN) for kind, (count, _) in enumerate(self._kinds)))
        for kind in [kind for turn in turns for kind in turn if kind is not None][:SHOWN]:
            shares[kind] += 1
        told = [line for share, (_, tell) in zip(shares, self._kinds, strict=True) for line in tell(share)]
        total = sum(count for count, _ in self._kinds)
        if total == 1:
            raise InputError(told[0])
        more = [f"  and {total - len(told):,} more"] if total > len(told) else []
        raise InputError("\n".join([f"{total:,} problems:", *(f"  {line}" for line in told), *more]))


def quoted(names: Sequence[object]) -> str:
    """Names for a message: 'a', 'b', 'c'; after ten of them only how many more."""
    shown = ", ".join(repr(str(name)) for name in list(names)[:10])
    return shown + (f" and {len(names) - 10} more" if len(names) > 10 else "") if names else "none"


def many(number: int, thing: str) -> str:
    """A number with its noun: 1 node, 2,000 nodes."""
    return f"{number:,} {thing}" + ("" if number == 1 else "s")
