"""Journals carried over to format 1: line by line, with the same measured values; the committed ones among them."""

import gzip
import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from graphpartner.lab.experiments.jobs import Run
from graphpartner.lab.experiments.journal import read_lines

REPOSITORY = Path(__file__).parents[3]
RUNS = REPOSITORY / "results" / "runs"

MEASURED = {
    "beyond": (2855, "4285c91023d0def5"),
    "bounds": (960, "875331951e3da31a"),
    "fig1": (20, "8e594eb1243dc69c"),
    "fig3": (700, "cf90761fee4427ca"),
    "fig4": (1130, "c9646ad856d2fb3d"),
    "fig5": (400, "282234c42e5cea5f"),
    "scores": (3510, "4f71ddf4ce30aace"),
    "table1-appnp": (110, "f12b56dcd78bfdd4"),
    "table1-dagnn": (90, "be91b11a9d45411d"),
    "table1-dgi": (100, "a193a383f7406a47"),
    "table1-gat": (120, "785ee4e9a2d21cf0"),
    "table1-gcn": (110, "11ca56f33b60fe20"),
    "table1-gcnii": (140, "19eb0a40ec11b9c5"),
    "table1-gpnn": (2560, "d3fdfce72e5254c7"),
    "table1-grace": (180, "7cd9c1751c1c5b79"),
    "table1-grand": (100, "e15f161f91c9447f"),
    "table1-jknet-dropedge": (180, "f44d00d360afd8d1"),
    "table1-jknet": (160, "aaac38ff0ea7998e"),
    "table1-mlp": (110, "1ec05669e0d2bab8"),
    "table1-mvgrl": (130, "80b43804c1db329c"),
    "table1-sgc": (150, "4fe61c6033015c06"),
    "table2": (6, "bba04613574cf159"),
    "table3": (612, "25b07b29552f5fb1"),
    "table4": (240, "da715ebfc27c2f5a"),
}
"""By journal: lines, and a hash of their measured values in order, as they were before format 1."""


def measured(lines: list[dict[str, Any]]) -> tuple[int, str]:
    text = "".join(json.dumps(line["measured"], sort_keys=True) + "\n" for line in lines)
    return len(lines), hashlib.sha256(text.encode()).hexdigest()[:16]


def key_of(line: dict[str, Any]) -> str:
    names = ("method", "graph", "settings", "seed", "device", "members", "timing")
    return Run(**{name: line[name] for name in names}, together=line.get("together", 0)).key


def old(seed: int, method: str, value: float, timing: str = "", **settings: Any) -> dict[str, Any]:
    """A line as it was before format 1: the version in its key, younger settings left out."""
    identity = {
        "method": method, "graph": "cora", "settings": {"epochs": 3} | settings, "seed": seed, "device": "cpu",
        "version": "0.1.0", "members": 1, "timing": timing,
    } | ({"together": 10} if timing else {})  # fmt: skip
    key = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:16]
    return identity | {"key": key, "machine": "a CPU", "measured": {"accuracy": value, "layers": [value, None]}}


@pytest.mark.parametrize("ending", ["jsonl", "jsonl.gz"])
def test_lines_are_carried_over_one_to_one(
    tmp_path: Path, ending: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(REPOSITORY / "tools")
    import migrate_journals

    before = [
        old(0, "gpnn", 81.0), old(1, "gpnn", 82.0, generations=3, groups=16), old(0, "dgi", 0.1),
        old(0, "mvgrl", 0.2, regression_decay=0.01), old(0, "gcn", 0.3), old(0, "gcnii", 1 / 3, timing="together"),
    ]  # fmt: skip
    text = "".join(json.dumps(line, sort_keys=True) + "\n" for line in before).encode()
    path = tmp_path / f"table1.{ending}"
    path.write_bytes(gzip.compress(text) if ending.endswith("gz") else text)
    monkeypatch.setattr(sys, "argv", ["migrate_journals", str(tmp_path)])
    migrate_journals.main()
    assert "6 lines changed to format 1" in capsys.readouterr().out
    after = read_lines(path)
    younger = [
        {"generations": 1, "groups": 1}, {"generations": 3, "groups": 16}, {"regression_decay": 0.0},
        {"regression_decay": 0.01}, {}, {},
    ]  # fmt: skip
    for then, now, settings in zip(before, after, younger, strict=True):
        assert now == then | {"format": 1, "key": key_of(now), "settings": then["settings"] | settings}
        assert now["key"] != then["key"]
    content = path.read_bytes()
    migrate_journals.main()
    assert "0 lines changed" in capsys.readouterr().out
    assert path.read_bytes() == content
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


def test_the_committed_journals_are_whole() -> None:
    found = {}
    for path in sorted(RUNS.iterdir()):
        lines = read_lines(path)
        found[path.name.removesuffix(".jsonl.gz")] = measured(lines)
        assert {line["format"] for line in lines} == {1}
        assert [line["key"] for line in lines] == [key_of(line) for line in lines]
        assert len({line["key"] for line in lines}) == len(lines)
        assert path.stat().st_size < 2e6
    assert found == MEASURED
