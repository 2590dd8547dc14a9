"""How a long computation tells how far it is: a function of (done, total)."""

from collections.abc import Callable

Progress = Callable[[int, int], None]


def silent(done: int, total: int) -> None:
    """Say nothing: the default of every ``progress`` argument."""
