"""The package with numba and without it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from graphpartner.train.kernels import kernels

PROGRAM = """
import json, sys
if sys.argv[1] == "without":
    sys.modules["numba"] = None
import graphpartner as gp
from tests.train.toy import toy
settings = gp.Settings(hidden_channels=40, num_steps=3, epochs=8, threshold=0.3, margin=3.0)
runs = gp.train(toy(), settings, seeds=[0, 1], device="cpu", batch_size=2)
runs.best()(toy().x, toy().edge_index)
history = [{name: curve.tolist() for name, curve in curves.items()} for curves in runs.history]
print(json.dumps({"numba": bool(sys.modules.get("numba")), "history": history}))
"""


def train(how: str) -> dict:
    root = Path(__file__).parents[2]
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM, how],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


@pytest.mark.slow
def test_the_package_runs_without_numba() -> None:
    pytest.importorskip("numba")
    compiled, plain = train("with"), train("without")
    assert compiled["numba"]
    assert not plain["numba"]
    for curves, others in zip(compiled["history"], plain["history"], strict=True):
        for name, curve in curves.items():
            np.testing.assert_allclose(others[name], curve, rtol=1e-4, atol=1e-5, err_msg=name)


def test_a_cpu_has_the_loops_of_numba() -> None:
    pytest.importorskip("numba")
    found = kernels("cpu")
    for name in ("drop", "dropped_product", "dropped_gradient", "adam"):
        assert callable(getattr(found, name))
    assert kernels("meta") is None
