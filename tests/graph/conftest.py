"""Every test here starts without a data root; ``cache`` gives one an empty cache for downloads."""

import pytest


@pytest.fixture(autouse=True)
def no_data_root(monkeypatch):
    # The fixture data_root has read the variable by then: it belongs to the session, this one to the test.
    monkeypatch.delenv("GRAPHPARTNER_DATA", raising=False)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    monkeypatch.setattr("pooch.os_cache", lambda project: folder / project)
    return folder / "graphpartner"
