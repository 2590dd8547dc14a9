import csv
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import graphpartner as gp
from graphpartner.model.gpnn import GPNN
from graphpartner.training.runs import Runs
from graphpartner.training.settings import Settings
from tests.reference import assert_near, dense_forward
from tests.training.graphs import toy
from tests.training.reference import HISTORY, enhanced

SETTINGS = Settings(hidden_channels=16, num_steps=3, epochs=60, patience=5, threshold=0.3, lr=0.1)
FILES = {"weights.safetensors", "predictions.csv", "history.csv", "runs.json"}


@pytest.fixture(scope="module")
def runs() -> Runs:
    each = [SETTINGS.replace(alpha=alpha) for alpha in (0.1, 0.5, 0.9)]
    return gp.train(toy(), each, seeds=[3, 1, 2], device="cpu", batch_size=2)


def test_logits_are_those_of_the_weights(runs: Runs) -> None:
    data = toy()
    X, A = data.x.double().numpy(), enhanced(data, SETTINGS).numpy()
    assert len(runs) == 3
    assert runs.logits.shape == (3, 40, 3)
    for r, settings in enumerate(runs.settings):
        W1, W2 = runs.weight1[r].double().numpy(), runs.weight2[r].double().numpy()
        assert_near(runs.logits[r], dense_forward(X, W1, W2, A, 3, settings.alpha).logits, 1e-4)


def test_probabilities_sum_to_one(runs: Runs) -> None:
    probabilities = runs.probabilities()
    torch.testing.assert_close(probabilities.sum(-1), torch.ones(3, 40))
    assert torch.equal(probabilities.argmax(-1), runs.logits.argmax(-1))
    torch.testing.assert_close(probabilities, runs.logits.exp() / runs.logits.exp().sum(-1, keepdim=True))


def test_val_loss_is_that_of_the_best_weights(runs: Runs) -> None:
    data = toy()
    for r in range(3):
        loss = torch.nn.functional.cross_entropy(runs.logits[r][data.val_mask], data.y[data.val_mask])
        assert runs.val_loss[r].item() == pytest.approx(loss.item(), rel=1e-4)
        assert runs.history[r]["val_loss"].min() == pytest.approx(loss.item(), rel=1e-4)


def test_accuracy_by_hand_leaves_out_who_has_no_label(runs: Runs) -> None:
    data = toy()
    right = runs.logits.argmax(-1) == data.y
    nodes = data.test_mask & (data.y >= 0)
    assert nodes.sum() == data.test_mask.sum() - 1
    torch.testing.assert_close(runs.accuracy(data.test_mask), right[:, nodes].float().mean(1))
    own = torch.stack([data.test_mask, data.val_mask, data.train_mask])
    expected = [right[r, own[r] & (data.y >= 0)].float().mean().item() for r in range(3)]
    assert runs.accuracy(own).tolist() == pytest.approx(expected)


def test_history_ends_where_a_run_stopped(runs: Runs) -> None:
    assert len(runs.history) == 3
    for r, curves in enumerate(runs.history):
        assert tuple(curves) == HISTORY
        best, length = int(runs.best_epoch[r]), len(curves["loss"])
        assert length == min(60, best + 5 + 1) == runs.epochs[r]
        assert all(len(curve) == length for curve in curves.values())
        assert all(np.isfinite(curve).all() for curve in curves.values())
        assert curves["val_loss"].argmin() == best
    assert runs.epochs.min() < 60


def test_best_is_the_run_with_the_lowest_validation_loss(runs: Runs) -> None:
    data = toy()
    best = int(runs.val_loss.argmin())
    model = runs.best()
    assert isinstance(model, GPNN)
    assert not model.training
    enhance = gp.Enhance(k=SETTINGS.k, threshold=SETTINGS.threshold, beta=SETTINGS.beta)
    logits = model(data.x, enhance(data).adj_t).logits
    torch.testing.assert_close(logits, runs.logits[best], rtol=1e-4, atol=1e-4)
    with torch.no_grad():  # a copy
        model.weight1.zero_()
    assert runs.weight1[best].abs().max() > 0


def test_the_best_run_and_its_file_know_how_frequent_classes_are(tmp_path: Path) -> None:
    data = toy()
    each = [SETTINGS.replace(prior_temperature=T) for T in (0.5, 0.0)]
    runs = gp.train(data, each, seeds=[0, 1], device="cpu")
    A_en = gp.Enhance(k=SETTINGS.k, threshold=SETTINGS.threshold, beta=SETTINGS.beta)(data).adj_t
    stored = load_file(runs.save(tmp_path)[0])["log_prior"]
    assert stored[1].tolist() == [0, 0, 0]
    assert stored[0].exp().sum().item() == pytest.approx(1, abs=1e-4)
    for run in range(2):
        runs.val_loss = torch.tensor([0.0 if run == place else 1.0 for place in range(2)])
        torch.testing.assert_close(runs.best()(data.x, A_en).logits, runs.logits[run], rtol=1e-4, atol=1e-4)


def test_save_writes_whole_files(runs: Runs, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    paths = runs.save(folder, about={"graph": "toy"})
    assert (
        {path.name for path in paths} == FILES == {path.name for path in folder.iterdir()}
    )  # and nothing half-written

    weights = load_file(folder / "weights.safetensors")
    assert torch.equal(weights["weight1"], runs.weight1)
    assert torch.equal(weights["weight2"], runs.weight2)

    with open(folder / "predictions.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    mean = runs.probabilities().mean(0)
    assert [int(row["node"]) for row in rows] == list(range(40))
    assert [int(row["class"]) for row in rows] == mean.argmax(-1).tolist()
    assert [float(row["probability"]) for row in rows] == pytest.approx(mean.max(-1).values.tolist(), abs=1e-6)
    agree = (runs.logits.argmax(-1) == mean.argmax(-1)).float().mean(0)
    assert [float(row["agreement"]) for row in rows] == pytest.approx(agree.tolist(), abs=1e-4)

    with open(folder / "history.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == int(runs.epochs.sum())
    assert {int(row["seed"]) for row in rows} == {1, 2, 3}
    first = [float(row["loss"]) for row in rows if row["seed"] == "3"]
    assert first == pytest.approx(runs.history[0]["loss"].tolist(), rel=1e-5)

    summary = json.loads((folder / "runs.json").read_text())
    assert summary["graph"] == "toy"
    assert summary["seeds"] == [3, 1, 2]
    assert [Settings(**each) for each in summary["settings"]] == runs.settings
    assert summary["val_loss"] == pytest.approx(runs.val_loss.tolist())
    assert summary["best_epoch"] == runs.best_epoch.tolist()
    assert summary["epochs"] == runs.epochs.tolist()


def test_saving_again_overwrites(runs: Runs, tmp_path: Path) -> None:
    other = gp.train(toy(), SETTINGS, seeds=np.arange(8, 10), device="cpu")
    other.save(tmp_path)
    runs.save(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == FILES
    assert json.loads((tmp_path / "runs.json").read_text())["seeds"] == [3, 1, 2]
    assert torch.equal(load_file(tmp_path / "weights.safetensors")["weight1"], runs.weight1)


def test_a_failed_save_leaves_the_old_file(runs: Runs, tmp_path: Path) -> None:
    runs.save(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(TypeError):
        runs.save(tmp_path, about={"not for json": object()})
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
