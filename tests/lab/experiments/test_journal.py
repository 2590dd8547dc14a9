"""Nothing is run twice, a torn line is cut off, and a kill loses at most the batch in flight."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from graphpartner.lab.experiments.journal import Journal, read_lines
from graphpartner.system.errors import InputError
from tests.lab.experiments.examples import line, run

REPOSITORY = Path(__file__).parents[3]


def test_lines_are_found_again(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "runs")
    journal.append("table1", [line(run(0), accuracy=70.0), line(run(1), accuracy=71.0)])
    again = Journal(tmp_path / "runs")
    assert again.find(run(1))["measured"] == {"accuracy": 71.0}
    assert again.find(run(1), "table1") is not None
    assert again.find(run(1), "fig3") is None
    assert again.find(run(2)) is None


def test_a_run_is_known_by_its_whole_configuration() -> None:
    base = run(0, alpha=0.1)
    assert base.key == run(0, alpha=0.1).key
    assert base.key == base.with_measures(["energy"]).key  # what is measured is no part of it
    others = [run(1, alpha=0.1), run(0, alpha=0.2), run(0, method="gcn", alpha=0.1), run(0, graph="cora", alpha=0.1)]
    assert len({base.key, *(other.key for other in others)}) == 5


def test_a_run_with_another_measure_is_joined(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.append("fig3", [line(run(0), accuracy=70.0)])
    wanted = run(0, measures=("accuracy", "mad_gap"))
    assert journal.find(wanted) is None
    journal.append("fig3", [line(run(0), mad_gap=0.5)])
    assert journal.find(wanted)["measured"] == {"accuracy": 70.0, "mad_gap": 0.5}
    assert Journal(tmp_path).find(wanted)["measured"] == {"accuracy": 70.0, "mad_gap": 0.5}


def test_a_torn_line_is_ignored_and_repaired(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.append("table1", [line(run(seed), accuracy=70.0) for seed in range(3)])
    path = tmp_path / "table1.jsonl"
    whole = path.read_bytes()
    for end in range(len(whole) - 1, whole[:-1].rfind(b"\n"), -37):  # wherever the third line was torn
        path.write_bytes(whole[:end])
        torn = Journal(tmp_path)
        assert torn.find(run(1)) is not None
        assert torn.find(run(2)) is None
        torn.append("table1", [line(run(2), accuracy=72.0)])
        assert [each["seed"] for each in read_lines(path)] == [0, 1, 2]
        assert Journal(tmp_path).find(run(2))["measured"] == {"accuracy": 72.0}


def test_a_damaged_line_is_named(tmp_path: Path) -> None:
    whole = line(run(0), accuracy=70.0)
    (tmp_path / "table1.jsonl").write_text(f"{json.dumps(whole)}\nnonsense\n{json.dumps(whole)}\n")
    with pytest.raises(InputError, match=r"table1\.jsonl, line 2: must be JSON .*; delete the line to run it again$"):
        Journal(tmp_path)
    without = {name: value for name, value in whole.items() if name != "seed"}
    for wrong, words in (
        (whole | {"measured": 3}, "measured = 3: must be keys and values"),
        (whole | {"measured": {"accuracy": "abc"}}, "measured.accuracy = 'abc': must be a number"),
        (whole | {"format": 2}, "format = 2: must be 1"),
        (without, "the key seed is missing"),
    ):
        (tmp_path / "table1.jsonl").write_text(json.dumps(wrong) + "\n")
        with pytest.raises(InputError, match=rf"table1\.jsonl, line 1: {words}"):
            Journal(tmp_path)
    (tmp_path / "table1.jsonl").unlink()
    (tmp_path / "table1.jsonl.gz").write_bytes(b"no archive")
    with pytest.raises(InputError, match=r"table1\.jsonl\.gz: is damaged"):
        Journal(tmp_path)


def test_compressed_lines_are_read_and_added_to(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.append("table1", [line(run(0), accuracy=70.0)])
    journal.compress("table1")
    assert [path.name for path in tmp_path.iterdir()] == ["table1.jsonl.gz"]
    packed = (tmp_path / "table1.jsonl.gz").read_bytes()
    later = Journal(tmp_path)
    later.append("table1", [line(run(1), accuracy=71.0)])
    assert len(Journal(tmp_path).lines["table1"]) == 2
    later.compress("table1")
    assert len(read_lines(tmp_path / "table1.jsonl.gz")) == 2
    assert packed != (tmp_path / "table1.jsonl.gz").read_bytes()
    Journal(tmp_path).compress("table1")  # nothing new: nothing to do


def test_two_programs_lose_nothing_to_each_other(tmp_path: Path) -> None:
    one, two = Journal(tmp_path), Journal(tmp_path)
    one.append("table1", [line(run(0), accuracy=70.0)])
    two.append("table1", [line(run(1), accuracy=71.0)])
    one.compress("table1")
    two.append("table1", [line(run(2), accuracy=72.0)])
    two.compress("table1")
    one.append("table1", [line(run(3), accuracy=73.0)])
    one.compress("table1")
    assert sorted(each["seed"] for each in read_lines(tmp_path / "table1.jsonl.gz")) == [0, 1, 2, 3]


@pytest.mark.parametrize("harm", [lambda whole: b"", lambda whole: whole[:40], lambda whole: _flipped(whole)])
def test_a_damaged_archive_is_named(tmp_path: Path, harm) -> None:
    journal = Journal(tmp_path)
    journal.append("table1", [line(run(seed), accuracy=70.0 + seed) for seed in range(20)])
    journal.compress("table1")
    path = tmp_path / "table1.jsonl.gz"
    path.write_bytes(harm(path.read_bytes()))
    with pytest.raises(InputError, match=r"table1\.jsonl\.gz: is damaged"):
        Journal(tmp_path)


def _flipped(whole):
    middle = len(whole) // 2
    return whole[:middle] + bytes(255 - byte for byte in whole[middle : middle + 2]) + whole[middle + 2 :]


@pytest.mark.parametrize("value", ["NaN", "{}", '"high"', "[[1.0]]", "[NaN]"])
def test_a_measure_that_is_none(tmp_path: Path, value) -> None:
    (tmp_path / "table1.jsonl").write_text(
        f'{{"key": "k", "format": 1, "seed": 0, "version": "", "device": "", "measured": {{"accuracy": {value}}}}}\n'
    )
    with pytest.raises(InputError, match=r"table1\.jsonl, line 1: .*measured\.accuracy"):
        Journal(tmp_path)


def test_runs_are_kept_in_a_folder(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("mine")
    with pytest.raises(InputError, match="runs: must be a folder"):
        Journal(tmp_path / "runs")


@pytest.mark.slow
def test_kill_and_resume(tmp_path: Path) -> None:
    """Really killed between batches; the second call does only the runs that are missing."""
    options = ["--quick", "--methods", "gpnn", "--seeds", "3", "--device", "cpu", "--out", str(tmp_path)]
    command = [sys.executable, "-m", "graphpartner.cli", "reproduce", "table3", *options]
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY), "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
    journal = tmp_path / "quick" / "runs" / "table3.jsonl"
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while not (journal.exists() and len(read_lines(journal)) >= 2):
        assert process.poll() is None, "it ended before it could be killed"
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    before = {each["key"]: each for each in read_lines(journal)}
    assert 2 <= len(before) < 7  # one look at the edges, and two rows of three
    assert not (tmp_path / "quick" / "table3.json").exists()
    with open(journal, "ab") as file:
        file.write(b'{"key": "torn')
    subprocess.run(command, env=environment, check=True, capture_output=True, timeout=120)
    after = {each["key"]: each for each in read_lines(journal.with_name("table3.jsonl.gz"))}
    assert len(after) == 7
    assert {key: after[key] for key in before} == before  # seconds and all: not run again
    cells = json.loads((tmp_path / "quick" / "table3.json").read_text())
    assert [each["runs"] for each in cells if each["measure"] == "accuracy"] == [3, 3]
