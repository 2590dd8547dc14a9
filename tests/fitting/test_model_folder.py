"""The model folder: written whole or not at all, the same after reading; every alteration is noticed."""

import dataclasses
import json
import os
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from graphpartner.fitting.candidates import BASE, Candidate
from graphpartner.fitting.fitted_model import FittedModel, Member
from graphpartner.fitting.model_folder import FILES, load_model, save_model
from graphpartner.system.errors import InputError

ALL = (*FILES, "model.json")


def model(sparse: bool = False, hops: int = 1, links: bool = True) -> FittedModel:
    torch.manual_seed(0)
    n, d, C = 6, 4, 3
    x = torch.randn(n, d) * (torch.rand(n, d) < 0.5)
    edge_index = torch.tensor([[0, 1, 1, 2, 3, 4], [1, 0, 2, 1, 4, 3]])
    data = Data(x=x.to_sparse_csr() if sparse else x, edge_index=edge_index, y=torch.tensor([0, 1, 2, 0, -1, -1]))
    graph = Candidate("graph", BASE.replace(num_steps=2, alpha=0.3, hidden_channels=5), hops, links)
    plain = Candidate("mlp", BASE.replace(num_steps=0, alpha=1.0, hidden_channels=5))
    width = (hops + 1) * (d + 1 + n * links)
    members = [
        Member(graph, torch.randn(2, width, 5), torch.randn(2, 5, C), 0.6, 0.0),
        Member(plain, torch.randn(1, d + 1, 5), torch.randn(1, 5, C), 0.2, 1.0),
    ]
    encoder = ({"kind": "test"}, {"mean": np.arange(3.0)})
    return FittedModel(
        data, [f"n{i}" for i in range(n)], ["a", "b", "c"], members, torch.tensor([0, 1, 2, 3]), (0.8, 0.2), 1.3, 0.9,
        encoder, {"decisions": ["none"]}, torch.tensor([0.5, -0.5, 0.0]),
    )  # fmt: skip


@pytest.mark.parametrize("sparse", [False, True])
def test_round_trip(tmp_path: Path, sparse: bool) -> None:
    first = model(sparse)
    second = load_model(save_model(first, tmp_path / "m"))
    assert sorted(path.name for path in (tmp_path / "m").iterdir()) == sorted(ALL)
    for one, other in zip(first.predict(), second.predict(), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)
    assert second.ids == first.ids
    assert second.classes == ["a", "b", "c"]
    assert second.encoder[0] == {"kind": "test"}
    np.testing.assert_array_equal(second.encoder[1]["mean"], np.arange(3.0))
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


def test_predictions_are_probabilities_and_new_isolated_nodes_are_cold() -> None:
    known = model()
    data = Data(
        x=torch.cat([known.data.x, torch.randn(2, 4)]),
        edge_index=torch.cat([known.data.edge_index, torch.tensor([[0, 6], [6, 0]])], 1),
        num_nodes=8,
    )
    found = known.predict(new=data)
    for part in found[:3]:
        torch.testing.assert_close(part.sum(1), torch.ones(8))
    assert found.cold.tolist() == [False] * 7 + [True]
    torch.testing.assert_close(found.both[7], found.partner[7])
    assert not torch.allclose(found.both[6], found.partner[6])


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("harm", ["cut", "flip", "remove"])
def test_harm_is_noticed_and_named(tmp_path: Path, name: str, harm: str) -> None:
    path = save_model(model(), tmp_path / "m") / name
    content = path.read_bytes()
    if harm == "remove":
        path.unlink()
    elif harm == "cut":
        path.write_bytes(content[: len(content) // 2])
    else:
        place = content.index(b"n3") if name == "ids.json" else len(content) // 2
        path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
    with pytest.raises(InputError, match=name.replace(".", r"\.")):
        load_model(tmp_path / "m")


def test_the_class_shift_is_kept_and_moves_the_ensemble_alone(tmp_path: Path) -> None:
    shifted = load_model(save_model(model(), tmp_path / "m")).predict()
    plain = dataclasses.replace(model(), shift=torch.zeros(1)).predict()
    torch.testing.assert_close(plain.partner, shifted.partner)
    odds = (shifted.both / plain.both).log()
    torch.testing.assert_close(odds - odds[:, 2:], torch.tensor([[0.5, -0.5, 0.0]]).expand(6, 3))


def test_a_later_format_is_refused(tmp_path: Path) -> None:
    path = save_model(model(), tmp_path / "m") / "model.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format": 2}))
    with pytest.raises(InputError, match="format 2"):
        load_model(tmp_path / "m")


def test_an_older_model_is_not_lost_when_writing_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_model(model(), tmp_path / "m")
    (tmp_path / "m" / "mine.txt").write_text("keep")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        save_model(model(hops=0), tmp_path / "m")
    monkeypatch.undo()
    assert load_model(tmp_path / "m").members[0].candidate.hops == 1
    assert [path.name for path in tmp_path.iterdir()] == ["m"]
    save_model(model(hops=0), tmp_path / "m")
    assert load_model(tmp_path / "m").members[0].candidate.hops == 0
    assert (tmp_path / "m" / "mine.txt").read_text() == "keep"


def test_the_move_is_undone_when_it_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_model(model(), tmp_path / "m")
    rename = Path.rename

    def fails_for_new(path: Path, target: Path) -> Path:
        if path.name.startswith(".m-") and "before" not in path.name:
            raise OSError(1, "not allowed")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", fails_for_new)
    with pytest.raises(OSError, match="not allowed"):
        save_model(model(hops=0), tmp_path / "m")
    monkeypatch.undo()
    assert load_model(tmp_path / "m").members[0].candidate.hops == 1


def test_a_folder_that_is_no_model_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(InputError, match="holds no model"):
        save_model(model(), tmp_path)
    with pytest.raises(InputError, match="is no model"):
        load_model(tmp_path)
