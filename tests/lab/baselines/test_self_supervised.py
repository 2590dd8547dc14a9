import pytest
import torch

from graphpartner.graph.datasets import load_graph
from graphpartner.lab.baselines.dgi import DGI
from graphpartner.lab.baselines.grace import GRACE
from graphpartner.lab.baselines.mvgrl import MVGRL
from graphpartner.lab.baselines.self_supervised import train_self_supervised
from graphpartner.system.errors import InputError
from tests.lab.baselines.test_pretrain import METHODS
from tests.training.graphs import toy


@pytest.mark.parametrize("method", METHODS)
def test_runs_do_not_depend_on_who_runs_beside_them(method: str) -> None:
    data, settings = toy(), METHODS[method]
    alone = train_self_supervised(settings, data, [3, 5, 8], device="cpu")
    together = train_self_supervised(settings, data, [3, 5, 8], device="cpu", batch_size=3)
    assert alone.name == method
    assert alone.logits.shape == (3, 40, 3)
    assert alone.epochs.tolist() == together.epochs.tolist()
    torch.testing.assert_close(alone.probabilities(), together.probabilities(), rtol=1e-2, atol=1e-2)
    torch.testing.assert_close(alone.val_loss, together.val_loss, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("method", METHODS)
def test_no_label_outside_training_and_validation_is_read(method: str) -> None:
    data, settings = toy(), METHODS[method]
    runs = train_self_supervised(settings, data, [1], device="cpu")
    data.y = torch.where(data.train_mask | data.val_mask, data.y, (data.y + 1) % 3)
    changed = train_self_supervised(settings, data, [1], device="cpu")
    assert torch.equal(runs.logits, changed.logits)
    data.y = torch.where(data.train_mask, (data.y + 1) % 3, data.y)
    assert not torch.equal(runs.logits, train_self_supervised(settings, data, [1], device="cpu").logits)


def test_every_seed_can_have_a_split_of_its_own() -> None:
    data, settings = toy(), METHODS["dgi"]
    one = train_self_supervised(settings, data, [1], device="cpu")
    other = toy()
    other.train_mask, other.val_mask = data.val_mask, data.train_mask
    swapped = train_self_supervised(settings, other, [2], device="cpu")
    data.train_mask = torch.stack([data.train_mask, data.val_mask])
    data.val_mask = torch.stack([data.val_mask, other.val_mask])
    both = train_self_supervised(settings, data, [1, 2], device="cpu", batch_size=2)
    torch.testing.assert_close(both.logits, torch.cat([one.logits, swapped.logits]), rtol=1e-2, atol=2e-2)


def test_parameters_are_counted() -> None:
    settings = DGI(hidden_channels=16, epochs=1)
    runs = train_self_supervised(settings, toy(), [0], device="cpu")
    # W, b, slope, M, its bias; then the regression
    assert runs.parameters == 24 * 16 + 16 + 1 + 16 * 16 + 1 + 17 * 3


def test_wrong_input_is_named() -> None:
    with pytest.raises(InputError, match="batch_size = 0"):
        train_self_supervised(DGI(), toy(), [0], batch_size=0)
    with pytest.raises(InputError, match=r"seeds = \[\]: must hold"):
        train_self_supervised(DGI(), toy(), [])
    data = toy()
    data.train_mask = data.train_mask.repeat(2, 1)
    with pytest.raises(InputError, match="2 splits for 3 seeds"):
        train_self_supervised(DGI(), data, [0, 1, 2], device="cpu")


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        DGI(hidden_channels=64, epochs=20, lr=0.01),
        MVGRL(hidden_channels=64, epochs=10, lr=0.01, windows=1, sparsify=True),
        GRACE(hidden_channels=64, projection_channels=64, epochs=6, lr=0.01, temperature=0.9),
    ],
    ids=["dgi", "mvgrl", "grace"],
)
def test_citeseer_is_learned(settings: DGI | MVGRL | GRACE) -> None:
    data = load_graph("citeseer")
    told: list[tuple[int, int]] = []
    runs = train_self_supervised(settings, data, [0], device="cpu", progress=lambda *state: told.append(state))
    assert runs.accuracy(data.test_mask).item() > 0.55  # at most 0.47 with the weights they start with
    assert told[-1] == (settings.epochs, settings.epochs)
