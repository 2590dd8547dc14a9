"""Every test here starts without a data root; ``cache`` gives one an empty cache for downloads."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def no_data_root(monkeypatch: pytest.MonkeyPatch) -> None:
    # The fixture data_root has read the variable by then: it belongs to the session, this one to the test.
    monkeypatch.delenv("GRAPHPARTNER_DATA", raising=False)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setattr("pooch.os_cache", lambda project: folder / project)
    return folder / "graphpartner"
