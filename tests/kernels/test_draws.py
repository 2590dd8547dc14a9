import itertools

import numpy as np
import pytest
import torch

from graphpartner.kernels import draws

MASK32, MASK64 = 2**32 - 1, 2**64 - 1


def splitmix(state: int) -> int:
    z = (state + 0x9E3779B97F4A7C15) & MASK64
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK64
    return z ^ (z >> 31)


def key_of(seed: int, stream: str, epoch: int) -> tuple[int, int]:
    mixed = splitmix(seed & MASK64)
    mixed = splitmix((mixed + draws.STREAMS.index(stream)) & MASK64)
    mixed = splitmix((mixed + epoch) & MASK64)
    return mixed & MASK32, mixed >> 32


def bits_of(key: tuple[int, int], counter: int) -> int:
    x = (counter & MASK32) ^ key[0]
    x ^= x >> 16
    x = x * 0x7FEB352D & MASK32
    x ^= x >> 15
    x = (x + key[1]) * 0x846CA68B & MASK32
    return x ^ (x >> 16)


def unsigned(tensor: torch.Tensor) -> np.ndarray:
    return tensor.numpy().astype(np.int64) & MASK32


def test_splitmix_gives_its_published_values() -> None:
    # the first numbers of SplitMix64 with seed 0
    assert splitmix(0) == 0xE220A8397B1DCDAF
    assert splitmix(0x9E3779B97F4A7C15) == 0x6E789E6AA1B965F4


SEEDS = [0, 1, -1, 2**31, 2**63, 2**64 - 1, 123456789]


@pytest.mark.parametrize("stream", draws.STREAMS)
def test_keys_in_python_integers(stream: str) -> None:
    keys = unsigned(draws.keys(SEEDS, stream, 4))
    assert keys.shape == (4, len(SEEDS), 2)
    for (epoch, r), seed in zip(itertools.product(range(4), range(len(SEEDS))), SEEDS * 4, strict=True):
        assert tuple(keys[epoch, r]) == key_of(seed, stream, epoch)


def test_bits_in_python_integers() -> None:
    counters = [0, 1, 2, 1000, 2**31 - 1, -(2**31), -1]
    key = draws.keys(SEEDS, "hidden", 2)
    drawn = unsigned(draws.bits(key, torch.tensor(counters, dtype=torch.int32)))
    assert drawn.shape == (2, len(SEEDS), len(counters))
    for epoch, r, c in np.ndindex(drawn.shape):
        assert drawn[epoch, r, c] == bits_of(key_of(SEEDS[r], "hidden", epoch), counters[c])


def test_counters_count_row_by_row_and_wrap() -> None:
    assert draws.counters(2, 3).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert draws.counters(7).dtype == torch.int32


def test_a_key_depends_on_its_own_seed_alone() -> None:
    alone = {seed: draws.keys([seed], "input", 3)[:, 0] for seed in SEEDS}
    for order in (SEEDS, SEEDS[::-1], SEEDS[2:4]):
        keys = draws.keys(order, "input", 3)
        for r, seed in enumerate(order):
            assert torch.equal(keys[:, r], alone[seed])
    assert torch.equal(draws.keys(SEEDS, "input", 9)[:3], draws.keys(SEEDS, "input", 3))  # nor on the number of epochs


def test_streams_seeds_and_epochs_have_keys_of_their_own() -> None:
    keys = torch.stack([draws.keys(list(range(50)), stream, 50) for stream in draws.STREAMS]).reshape(-1, 2)
    assert len({tuple(key) for key in keys.tolist()}) == len(keys)


# Statistics, within 5 standard deviations

COUNT = 200_000


def draw(seed: int = 0, stream: str = "hidden", epoch: int = 0) -> np.ndarray:
    key = draws.keys([seed], stream, epoch + 1)[epoch, 0]
    return draws.uniform(key, draws.counters(COUNT)).double().numpy()


@pytest.mark.parametrize(("seed", "stream", "epoch"), [(0, "hidden", 0), (1, "input", 7), (99, "weight1", 0)])
def test_uniform_is_uniform(seed: int, stream: str, epoch: int) -> None:
    u = draw(seed, stream, epoch)
    assert u.min() >= 0
    assert u.max() < 1
    assert abs(u.mean() - 1 / 2) < 5 * (1 / 12 / COUNT) ** 0.5
    assert abs(u.var() - 1 / 12) < 5 * (1 / 180 / COUNT) ** 0.5
    cells = np.bincount((u * 100).astype(int), minlength=100)
    chi2 = ((cells - COUNT / 100) ** 2 / (COUNT / 100)).sum()
    assert abs(chi2 - 99) < 5 * (2 * 99) ** 0.5


def correlation(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.corrcoef(a, b)[0, 1])


def test_neighbours_are_uncorrelated() -> None:
    u, limit = draw(), 5 / COUNT**0.5
    for lag in (1, 2, 3, 16, 64, 1024):
        assert abs(correlation(u[:-lag], u[lag:])) < limit, lag
    for other in (draw(epoch=1), draw(seed=1), draw(seed=2), *(draw(stream=s) for s in draws.STREAMS if s != "hidden")):
        assert abs(correlation(u, other)) < limit
        assert abs(correlation(u[:-1], other[1:])) < limit
        assert abs(correlation(np.abs(u - 0.5), np.abs(other - 0.5))) < limit


def test_the_same_entry_is_uncorrelated_over_seeds_and_over_epochs() -> None:
    keys = draws.keys(list(range(3000)), "hidden", 40)
    u = draws.uniform(keys, draws.counters(2)).double().numpy()  # [epochs, seeds, 2]
    limit = 5 / u[1:, :, 0].size ** 0.5
    assert abs(correlation(u[1:, :, 0].ravel(), u[:-1, :, 0].ravel())) < limit  # epochs
    assert abs(correlation(u[:, 1:, 0].ravel(), u[:, :-1, 0].ravel())) < limit * 1.1  # seeds
    assert abs(correlation(u[..., 0].ravel(), u[..., 1].ravel())) < limit  # counters
    assert abs(u.mean() - 0.5) < 5 * (1 / 12 / u.size) ** 0.5


def test_every_bit_is_a_coin() -> None:
    drawn = unsigned(draws.bits(draws.keys([5], "input", 1)[0, 0], draws.counters(COUNT)))
    for bit in range(32):
        share = ((drawn >> bit) & 1).mean()
        assert abs(share - 0.5) < 5 * 0.5 / COUNT**0.5, bit


@pytest.mark.parametrize("probability", [0.0, 0.1, 0.5, 0.77, 1.0])
def test_keep_below_has_its_probability(probability: float) -> None:
    threshold = draws.keep_below(torch.tensor([probability]))
    assert threshold.dtype == torch.int32
    drawn = draws.bits(draws.keys([3], "hidden", 1)[0, 0], draws.counters(COUNT))
    share = (drawn < threshold).double().mean().item()
    assert abs(share - probability) <= 5 * (probability * (1 - probability) / COUNT) ** 0.5


@pytest.mark.parametrize("among", [1, 2, 7, 3327, 100_000])
def test_choices_are_in_range_and_uniform(among: int) -> None:
    key = draws.keys([0, 1], "negatives", 1)[0]
    chosen = draws.choices(key, COUNT, among)
    assert chosen.shape == (2, COUNT)
    assert chosen.dtype == torch.int64
    assert chosen.min() >= 0
    assert chosen.max() < among
    for row in chosen.double():
        variance = (among**2 - 1) / 12
        assert abs(row.mean().item() - (among - 1) / 2) <= 5 * (variance / COUNT) ** 0.5
    if among < 5000:
        cells = np.bincount(chosen[0].numpy(), minlength=among)
        chi2 = ((cells - COUNT / among) ** 2 / (COUNT / among)).sum()
        assert abs(chi2 - (among - 1)) <= 5 * (2 * (among - 1)) ** 0.5


def test_choices_in_python_integers() -> None:
    key = draws.keys([8], "negatives", 1)[0]
    expected = [bits_of(key_of(8, "negatives", 0), c) * 1000 >> 32 for c in range(20)]
    assert draws.choices(key, 20, 1000)[0].tolist() == expected


@pytest.mark.parametrize("shape", [(500, 300), (300, 20)])
def test_glorot(shape: tuple[int, int]) -> None:
    weights = draws.glorot(draws.keys([0, 1, 2], "weight1", 1)[0], *shape)
    assert weights.shape == (3, *shape)
    assert weights.dtype == torch.float32
    bound, count = (6 / sum(shape)) ** 0.5, shape[0] * shape[1]
    for weight in weights.double():
        assert weight.abs().max() <= bound * (1 + 1e-6)
        assert weight.abs().max() > 0.99 * bound
        assert abs(weight.mean().item()) < 5 * bound / (3 * count) ** 0.5
        assert abs(weight.var().item() - bound**2 / 3) < 5 * bound**2 * (4 / 45 / count) ** 0.5
    assert torch.equal(weights[1], draws.glorot(draws.keys([1], "weight1", 1)[0], *shape)[0])  # whatever R


def test_glorot_in_python_integers() -> None:
    weight = draws.glorot(draws.keys([6], "weight2", 1)[0], 3, 4)[0]
    expected = [(bits_of(key_of(6, "weight2", 0), c) >> 8) / 2**24 * 2 - 1 for c in range(12)]
    np.testing.assert_allclose(weight.reshape(-1), np.array(expected) * (6 / 7) ** 0.5, rtol=1e-6)
