"""What tests of several rooms need."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data_root() -> Path:
    """A folder with the raw files of all six graphs: GRAPHPARTNER_DATA, or beside the repository; else skips."""
    root = Path(os.environ.get("GRAPHPARTNER_DATA") or Path(__file__).parents[2] / "shared" / "data")
    if not (root / "Cora" / "raw").is_dir():
        pytest.skip("no data root: set GRAPHPARTNER_DATA")
    return root
