"""What tests of several rooms need."""

import os
from pathlib import Path

import hypothesis
import pytest
import torch

# How long an example takes says nothing here: the first one compiles loops, and cores are shared.
hypothesis.settings.register_profile("patient", deadline=None)
hypothesis.settings.load_profile("patient")


def pytest_configure(config: pytest.Config) -> None:
    """Tests that run beside each other keep to one core each: threads that wait for each other's cores crawl."""
    if hasattr(config, "workerinput"):
        torch.set_num_threads(1)
        try:
            import numba
        except ImportError:
            return
        numba.set_num_threads(1)


@pytest.fixture(scope="session")
def data_root() -> Path:
    """A folder with the raw files of all six graphs: GRAPHPARTNER_DATA, or beside the repository; else skips."""
    root = Path(os.environ.get("GRAPHPARTNER_DATA") or Path(__file__).parents[2] / "shared" / "data")
    if not (root / "Cora" / "raw").is_dir():
        pytest.skip("no data root: set GRAPHPARTNER_DATA")
    return root
