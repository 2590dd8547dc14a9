"""Training with numba and without it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import graphpartner as gp
from graphpartner.training.settings import Settings
from tests.training.graphs import toy

SETTINGS = Settings(hidden_channels=40, num_steps=3, epochs=8, threshold=0.3, margin=3.0)
PROGRAM = """
import json, sys
sys.modules["numba"] = None
from tests.training.test_kernels import losses
history = losses()
assert not any(name.startswith("numba.") for name in sys.modules)
print(json.dumps(history))
"""


def losses() -> list[dict[str, list[float]]]:
    runs = gp.train(toy(), SETTINGS, seeds=[0, 1], device="cpu", batch_size=2)
    assert runs.best()(toy().x, toy().edge_index).logits.isfinite().all()
    return [{name: curve.tolist() for name, curve in curves.items()} for curves in runs.history]


@pytest.mark.slow
def test_the_package_runs_without_numba() -> None:
    pytest.importorskip("numba")
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for curves, plain in zip(losses(), json.loads(done.stdout), strict=True):
        for name, curve in curves.items():
            np.testing.assert_allclose(plain[name], curve, rtol=1e-4, atol=1e-5, err_msg=name)
