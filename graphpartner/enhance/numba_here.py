"""Is numba installed? The join runs without it, only slower, and nothing imports it before it is needed."""

from importlib.util import find_spec

HAS_NUMBA = find_spec("numba") is not None
