"""The time budget of a fit, and how it is ended early."""

import re
import threading
import time

from graphpartner.system.errors import InputError

UNITS = {"": 1, "s": 1, "m": 60, "min": 60, "h": 3600}


def parse_budget(text: str) -> float:
    """Return the seconds of ``90``, ``90s``, ``2m``, ``1.5h``."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", text.lower())
    if not found or found[2] not in UNITS or float(found[1]) <= 0:
        raise InputError(f"--budget {text}: must be a time, e.g. 90s, 2m or 1h")
    return float(found[1]) * UNITS[found[2]]


class Clock:
    """A deadline; it has passed as soon as :meth:`stop` is called, on this clock or on one made from it."""

    def __init__(self, seconds: float, stopped: threading.Event | None = None) -> None:
        self.start = time.monotonic()
        self.end = self.start + seconds
        self.stopped = stopped or threading.Event()

    def part(self, share: float) -> "Clock":
        """Return a clock for a share of the time left."""
        return Clock(max(0.0, self.left() * share), self.stopped)

    def left(self) -> float:
        """Return the seconds left; 0 after a stop."""
        return 0.0 if self.stopped.is_set() else self.end - time.monotonic()

    def over(self) -> bool:
        """Return whether no time is left."""
        return self.left() <= 0

    def stop(self) -> None:
        """Leave no time, on all clocks made from one another."""
        self.stopped.set()
