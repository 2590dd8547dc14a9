"""The examples run as written."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]


def run(name, *arguments, cwd):
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY), "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
    command = [sys.executable, REPOSITORY / "examples" / name, *map(str, arguments)]
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_own_csv(tmp_path):
    out = run("own_csv.py", tmp_path, "8s", cwd=tmp_path)
    assert "measured on" in out
    assert "label propagation" in out
    rows = (tmp_path / "predictions.csv").read_text().splitlines()
    assert rows[0].startswith("id,class,probability,partner_class,partner_probability,graph_class,graph_probability")
    assert [row.split(",")[0] for row in rows[1:4]] == ["paper-0000", "paper-0001", "paper-0002"]
    assert len(rows) == 599
    new = (tmp_path / "new.csv").read_text().splitlines()
    assert re.match(r"paper-0598,.*,both,False$", new[1])
    assert re.match(r"paper-0599,.*,,,partner,False$", new[2])  # no edge: the graph has no opinion


@pytest.mark.slow
def test_pyg_loop(tmp_path):
    out = run("pyg_loop.py", 40, cwd=tmp_path)
    test = float(re.search(r"test ([\d.]+)%", out)[1])
    assert test > 55
    before, after = map(float, re.search(r"energy ([\d.]+) before propagation, ([\d.]+) after", out).groups())
    assert after < before
