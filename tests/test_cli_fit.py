"""``gpnn fit`` and ``gpnn predict`` as a user meets them."""

import json
import os
import signal
import subprocess
import sys
import time
from datetime import date
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.fitting.test_fitter import planted

REPOSITORY = Path(__file__).parents[1]


def start(folder, *arguments):
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY), "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "graphpartner.cli", *map(str, arguments)]
    return subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def gpnn(folder, *arguments):
    process = start(folder, *arguments)
    out, err = process.communicate(timeout=300)
    return process.returncode, out, err


def write(folder, n=400):
    data = planted(n, "within")
    names = np.array([f"id {7 * i}" for i in range(n)])[::-1].copy()  # in no order a program would choose
    label = np.array(["ash", "elm", "oak"])[data.y.numpy()]
    label[::4] = ""
    table = pd.DataFrame({"id": names, "kind": label} | {f"f{j}": data.x[:, j].numpy() for j in range(6)})
    table.to_csv(folder / "nodes.csv", index=False)
    source, target = data.edge_index.numpy()
    pd.DataFrame({"source": names[source], "target": names[target]})[source < target].to_csv(
        folder / "edges.csv", index=False
    )
    return table


FIT = ("fit", "--nodes", "nodes.csv", "--edges", "edges.csv", "--label", "kind", "--out", "model", "--device", "cpu")


@pytest.mark.slow
def test_fit_and_predict(tmp_path):
    table = write(tmp_path)
    code, out, err = gpnn(tmp_path, *FIT, "--budget", "5s")
    assert code == 0, err
    for words in (
        "accuracy",
        "with 95 % confidence",
        "majority",
        "MLP",
        "label propagation",
        "calibration error",
        "oak",
    ):
        assert words in out
    assert "The graph helps" in out
    code, out, err = gpnn(tmp_path, "predict", "model", "--out", "p.parquet", "--min-confidence", "0.9")
    assert code == 0, err
    found = pd.read_parquet(tmp_path / "p.parquet")
    assert found["id"].tolist() == table["id"].tolist()
    assert (found["abstain"] == (found["probability"] < 0.9)).all()
    assert set(found["class"]) == {"ash", "elm", "oak"}
    assert found["probability"].between(1 / 3 - 1e-6, 1).all()
    new = table.drop(columns="kind")[:3].assign(id=["x", "y", "z"])
    new.to_csv(tmp_path / "new.csv", index=False)
    pd.DataFrame({"source": ["y", "x"], "target": [table["id"][1], "y"]}).to_csv(
        tmp_path / "new-edges.csv", index=False
    )
    arguments = ("--nodes", "new.csv", "--edges", "new-edges.csv", "--out", "new-p.csv")
    code, out, err = gpnn(tmp_path, "predict", "model", *arguments)
    assert code == 0, err
    assert "1 new nodes without an edge" in out
    found = pd.read_csv(tmp_path / "new-p.csv")
    assert found["id"].tolist() == ["x", "y", "z"]
    assert found["answered_by"].tolist() == ["both", "both", "partner"]
    assert found["graph_class"].isna().tolist() == [False, False, True]
    assert found["class"][2] == found["partner_class"][2]


def run(monkeypatch, folder, *arguments):
    from graphpartner.cli import main

    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", ["gpnn", *map(str, arguments)])
    main()


@pytest.mark.slow
@pytest.mark.parametrize("kind", [Decimal, lambda i: date.fromordinal(730_000 + i), lambda i: 2**63 * (i % 2) + i, int])
def test_ids_of_every_type_go_all_the_way(tmp_path, monkeypatch, kind):
    table = write(tmp_path, 90)
    places = {name: place for place, name in enumerate(table["id"])}
    ids = [kind(place) for place in range(90)]
    table.assign(id=ids).to_parquet(tmp_path / "nodes.parquet")
    edges = pd.read_csv(tmp_path / "edges.csv")
    for end in ("source", "target"):
        edges[end] = [str(ids[places[name]]) for name in edges[end]]
    edges.to_csv(tmp_path / "edges.csv", index=False)
    fit = ["nodes.parquet" if each == "nodes.csv" else each for each in FIT]
    run(monkeypatch, tmp_path, *fit, "--budget", "1s")
    run(monkeypatch, tmp_path, "predict", "model", "--out", "known.parquet")
    assert list(map(str, pd.read_parquet(tmp_path / "known.parquet")["id"])) == list(map(str, ids))
    both = table.assign(id=list(map(str, ids))).drop(columns="kind")[:2]
    both = pd.concat([both, both.assign(id=["x", "y"])])
    both.to_csv(tmp_path / "new.csv", index=False)
    run(monkeypatch, tmp_path, "predict", "model", "--nodes", "new.csv", "--out", "new.parquet")
    assert pd.read_parquet(tmp_path / "new.parquet")["id"].tolist() == [str(ids[0]), str(ids[1]), "x", "y"]


@pytest.mark.slow
def test_a_link_to_a_folder_stays_one(tmp_path, monkeypatch):
    write(tmp_path, 90)
    (tmp_path / "real").mkdir()
    (tmp_path / "model").symlink_to("real")
    run(monkeypatch, tmp_path, *FIT, "--budget", "1s", "--sep", ",")
    assert (tmp_path / "model").is_symlink()
    assert (tmp_path / "real" / "model.json").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["edges.csv", "model", "nodes.csv", "real"]


@pytest.mark.slow
def test_ctrl_c_keeps_the_best_so_far(tmp_path):
    write(tmp_path)
    process = start(tmp_path, *FIT, "--budget", "10m", "--json")
    seen = ""
    while "fitting:" not in seen:  # some runs have ended
        seen += process.stderr.readline()
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, seen + err
    assert json.loads(out)["interrupted"] is True
    assert (tmp_path / "model" / "model.json").exists()
    assert gpnn(tmp_path, "predict", "model", "--out", "p.csv")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((*FIT, "--budget", "soon"), "--budget soon: must be a time"),
        ((*FIT, "--seed", "-1"), "--seed -1"),
        ((*FIT, "--out", "/dev/null/model"), "--out /dev/null: cannot be made a folder"),  # before anything is read
        (("predict", "nowhere", "--out", "p.csv"), "nowhere: is no model"),
        (("predict", "nowhere", "--out", "p.txt"), "must end in .csv or .parquet"),
        (("predict", "nowhere", "--out", "p.csv", "--min-confidence", "2"), "must lie between 0 and 1"),
        (("predict", "nowhere", "--out", "p.csv", "--edges", "e.csv"), "needs --nodes"),
    ],
)
def test_wrong_input(tmp_path, monkeypatch, capsys, arguments, words):
    from graphpartner.cli import main

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["gpnn", *arguments])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2
    assert words in capsys.readouterr().err


def test_a_folder_of_someone_elses_is_not_overwritten(tmp_path, monkeypatch, capsys):
    from graphpartner.cli import main

    write(tmp_path, 30)
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "thesis.tex").write_text("precious")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["gpnn", *FIT])
    with pytest.raises(SystemExit):
        main()
    assert "holds no model" in capsys.readouterr().err
