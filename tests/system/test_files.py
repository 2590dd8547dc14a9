import os
from pathlib import Path

import pytest

from graphpartner.system.files import write_atomically


def test_write_atomically(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    write_atomically(file, b"old")
    assert file.read_bytes() == b"old"
    assert file.stat().st_mode & 0o777 == 0o644

    def fail(*_: object) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="the disk is full"):
        write_atomically(file, b"new")
    assert file.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [file]
