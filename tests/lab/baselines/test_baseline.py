"""Initial weights and dropout: each stream has its own draws, which depend on the seed alone."""

import pytest
import torch
from torch.testing import assert_close

from graphpartner.lab.baselines.baseline import InitialWeights, NoDropout, RunDropout
from tests.lab.baselines.graphs import CPU


def test_initial_weights_have_their_distributions() -> None:
    initial = InitialWeights([1, 2], CPU)
    uniform = initial.uniform(100, 80, 0.3)
    assert uniform.shape == (2, 100, 80)
    assert 0.29 < uniform.max() < 0.3
    assert abs(uniform.mean()) < 0.005
    assert abs(uniform.std() - 0.3 / 3**0.5) < 0.003
    normal = initial.normal(100, 80, -0.5, 0.2)
    assert normal.isfinite().all()
    assert abs(normal.mean() + 0.5) < 0.005
    assert abs(normal.std() - 0.2) < 0.005
    assert abs(((normal + 0.5).abs() < 0.2).float().mean() - 0.683) < 0.01
    bound = (6 / 180) ** 0.5
    assert 0.99 * bound < initial.glorot(100, 80).max() < bound


@pytest.mark.parametrize("drawn", [0.0, 1 - 2**-24])
def test_the_extreme_draws_give_finite_normals(monkeypatch: pytest.MonkeyPatch, drawn: float) -> None:
    initial = InitialWeights([1], CPU)
    monkeypatch.setattr(initial, "_draw", lambda rows, columns: torch.full((1, rows, columns), drawn))
    normal = initial.normal(2, 3, 0.0, 1.0)
    assert normal.dtype == torch.float32
    assert_close(normal.abs(), torch.full((1, 2, 3), 5.42), atol=1e-3, rtol=0)


def test_a_run_with_the_largest_draw_among_its_weights_starts_finite() -> None:
    """Seed 12 draws 1 − 2⁻²⁴ somewhere in GRAND's first matrix for CiteSeer: 3,703 features, 32 hidden units."""
    initial = InitialWeights([12], CPU)
    assert initial._draw(3703, 32).max() == 1 - 2**-24
    assert InitialWeights([12], CPU).normal(3703, 32, -0.2, 0.2).isfinite().all()


def test_initial_weights_depend_on_the_seed_and_the_place_alone() -> None:
    many, one = InitialWeights([4, 9], CPU), InitialWeights([9], CPU)
    first = many.glorot(6, 5)
    assert_close(first[1:], one.glorot(6, 5), rtol=0, atol=0)
    assert not torch.equal(many.glorot(6, 5), first)


def dropped_of(dropout: RunDropout, H: torch.Tensor) -> list[torch.Tensor]:
    return [dropout.hidden(H, 0.5), dropout.hidden(H, 0.5, 1), dropout.hidden(H, 0.5, stream="edges")]


def test_layers_and_streams_and_epochs_drop_other_entries() -> None:
    dropout, H = RunDropout([1, 2, 3], 4, CPU), torch.ones(3, 20, 10)
    seen = dropped_of(dropout, H)
    dropout.epoch += 1
    seen += dropped_of(dropout, H)
    for i, one in enumerate(seen):
        assert set(one.unique().tolist()) == {0, 2}
        for other in seen[:i]:
            assert 0.3 < (one == other).float().mean() < 0.7
    dropout.keep(torch.tensor([0, 2]))
    for before, after in zip(seen[3:], dropped_of(dropout, H[:2]), strict=True):
        assert_close(before[[0, 2]], after)


def test_without_dropout_nothing_changes() -> None:
    H = torch.ones(1, 3, 2)
    assert NoDropout().hidden(H, 0.9) is H
    assert NoDropout().input(H[0], 0.9) is not None
    assert RunDropout([1], 2, CPU).hidden(H, 0.0) is H
