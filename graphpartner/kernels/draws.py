"""Counter-based random numbers: functions of a run's seed, the epoch and a place alone.

Every draw is a hash of (key, counter): the key is made of the run's seed, the stream and the epoch, the counter is the
place of an entry in its matrix. So a run among a hundred draws what it would draw alone, on any device and in any order
of computation, and the same entry of X is dropped whether X is stored sparse or dense.

The hash xors the counter with one half of the key, adds the other half between two rounds of the 32-bit mixer
x ^= x ≫ 16, x *= 0x7feb352d, x ^= x ≫ 15, x *= 0x846ca68b, x ^= x ≫ 16, and returns 32 random bits. It is written here
in the wrapping int32 arithmetic of PyTorch; compiled kernels repeat it bit for bit.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

STREAMS = ("weight1", "weight2", "input", "hidden", "partner", "negatives", "edges", "nodes")

LAYER = 256  # numbers reserved for the streams of one layer

MULTIPLIER1 = 0x7FEB352D
MULTIPLIER2 = 0x846CA68B - 2**32  # as a signed int32


def keys(seeds: list[int], stream: str, epochs: int, layer: int = 0) -> Tensor:
    """Return both halves of the keys of one stream, int32 [epochs, R, 2]; every layer and every view has its own.

    A 64-bit mixer (splitmix64) of seed, stream and epoch makes the keys of neighbouring seeds and epochs unrelated.
    """
    seed = np.array([s & (2**64 - 1) for s in seeds], np.uint64)[None, :]
    epoch = np.arange(epochs, dtype=np.uint64)[:, None]
    number = STREAMS.index(stream) + LAYER * layer
    mixed = _splitmix(_splitmix(_splitmix(seed) + np.uint64(number)) + epoch)
    halves = np.stack([mixed & np.uint64(2**32 - 1), mixed >> np.uint64(32)], -1)
    return torch.from_numpy(halves.astype(np.uint32).view(np.int32))


def child_seeds(seed: int, count: int) -> list[int]:
    """Derive the seeds of ``count`` further runs, such as teachers, from that of a run."""
    parent = _splitmix(np.array([seed & (2**64 - 1)], np.uint64))
    places: NDArray[np.uint64] = np.arange(count, dtype=np.uint64) + np.uint64(2**63)
    with np.errstate(over="ignore"):
        return [int(child) for child in _splitmix(parent + places)]


def bits(key: Tensor, counter: Tensor) -> Tensor:
    """Return 32 random bits as int32 [..., m], for keys [..., 2] and counters int32 [m]."""
    x = counter ^ key[..., 0, None]
    x = x ^ ((x >> 16) & 0xFFFF)
    x = x * MULTIPLIER1
    x = x ^ ((x >> 15) & 0x1FFFF)
    x = (x + key[..., 1, None]) * MULTIPLIER2
    return x ^ ((x >> 16) & 0xFFFF)


def counters(*shape: int, device: torch.device | str = "cpu") -> Tensor:
    """Return the counters of a matrix of this shape, row by row, int32 (wrapping beyond 2³² entries)."""
    total = int(np.prod(shape))
    return torch.arange(total, device=device).to(torch.int32).reshape(shape)


def keep_below(probability: Tensor) -> Tensor:
    """Return the int32 threshold that a draw is below with this probability (at most 1 − 2⁻³²)."""
    return (probability.double() * 2**32 - 2**31).clamp(max=2**31 - 1).to(torch.int32)


def uniform(key: Tensor, counter: Tensor) -> Tensor:
    """Draw uniformly from [0, 1), float32 with 24 random bits."""
    return ((bits(key, counter) >> 8) & 0xFFFFFF).to(torch.float32) * 2**-24


def choices(key: Tensor, count: int, among: int) -> Tensor:
    """Draw ``count`` numbers with replacement from 0 … among − 1, int64 [..., count]."""
    drawn = bits(key, counters(count, device=key.device)).long() & 0xFFFFFFFF
    return (drawn * among) >> 32


def glorot(key: Tensor, rows: int, columns: int) -> Tensor:
    """Draw Glorot-uniform weights, float32 [..., rows, columns]."""
    bound = (6.0 / (rows + columns)) ** 0.5
    flat = uniform(key, counters(rows * columns, device=key.device))
    return (flat * 2 - 1).mul_(bound).reshape(*key.shape[:-1], rows, columns)


def _splitmix(state: NDArray[np.uint64]) -> NDArray[np.uint64]:
    with np.errstate(over="ignore"):
        z = state + np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))
