"""What is random in a run: its initial weights, and what it drops in every epoch. Each depends on its seed alone."""

import torch
from torch import Tensor

from graphpartner.kernels import draws
from graphpartner.kernels.dropout import Dropout, DroppedFeatures, Rate
from graphpartner.kernels.spmm import SparseMatrix


class InitialWeights:
    """Initial weights of R runs, [R, rows, columns] each; every matrix that is asked for has a stream of its own."""

    def __init__(self, seeds: list[int], device: torch.device) -> None:
        self.seeds, self.device, self.asked = seeds, device, 0

    def _draw(self, rows: int, columns: int) -> Tensor:
        """Uniform in [0, 1)."""
        key = draws.keys(self.seeds, "weight1", 1, layer=self.asked)[0].to(self.device)
        self.asked += 1
        drawn = draws.uniform(key, draws.counters(rows * columns, device=self.device))
        return drawn.reshape(len(self.seeds), rows, columns)

    def uniform(self, rows: int, columns: int, bound: float) -> Tensor:
        """Uniform between −bound and bound."""
        return (self._draw(rows, columns) * 2 - 1) * bound

    def glorot(self, rows: int, columns: int) -> Tensor:
        """Uniform with bound √(6 / (rows + columns))."""
        return self.uniform(rows, columns, (6 / (rows + columns)) ** 0.5)

    def normal(self, rows: int, columns: int, mean: float, sd: float) -> Tensor:
        """Normal, by the inverse of its distribution function at the middle of each of the 2²⁴ steps of a draw.

        In float32 the middle of the last step would be 1, and its normal infinite: one weight in 17 million.
        """
        middle = self._draw(rows, columns).double() + 2**-25
        return (mean + sd * torch.special.ndtri(middle)).float()

    def full(self, rows: int, columns: int, value: float = 0.0) -> Tensor:
        """The same number everywhere."""
        return torch.full((len(self.seeds), rows, columns), value, device=self.device)


class NoDropout:
    """No noise at all: how a trained model is asked."""

    training = False

    def input(self, X: SparseMatrix | Tensor, rate: float) -> SparseMatrix | Tensor | DroppedFeatures:
        """X [n, d] as it is."""
        return X

    def hidden(self, H: Tensor, rate: float, layer: int = 0, stream: str = "hidden") -> Tensor:
        """H [R, n, h] as it is."""
        return H


class RunDropout(NoDropout):
    """What R runs drop in one epoch after the other.

    Args:
        seeds: one a run.
        epochs: how many there are at most.
        device: where the draws are made.
    """

    training = True

    def __init__(self, seeds: list[int], epochs: int, device: torch.device) -> None:
        self.seeds, self.epochs, self.device = seeds, epochs, device
        self.epoch = torch.zeros(1, dtype=torch.int64, device=device)
        self._keys: dict[tuple[str, int], Tensor] = {}
        self._rates: dict[float, Rate] = {}

    def dropout(self, rate: float, layer: int = 0, stream: str = "hidden") -> Dropout:
        """This epoch's dropout of a layer. The epoch is a tensor, so that it can be part of a captured program."""
        if (stream, layer) not in self._keys:
            self._keys[stream, layer] = draws.keys(self.seeds, stream, self.epochs, layer).to(self.device)
        if rate not in self._rates:
            self._rates[rate] = Rate(torch.full((len(self.seeds),), rate, device=self.device))
        return Dropout(self._keys[stream, layer].index_select(0, self.epoch)[0], self._rates[rate])

    def input(self, X: SparseMatrix | Tensor, rate: float) -> SparseMatrix | Tensor | DroppedFeatures:
        """X̃ of every run, to be multiplied by its weights."""
        return DroppedFeatures(X, self.dropout(rate, stream="input")) if rate else X

    def hidden(self, H: Tensor, rate: float, layer: int = 0, stream: str = "hidden") -> Tensor:
        """H [R, n, h] with a share of its entries dropped and the others scaled; every layer drops others."""
        return self.dropout(rate, layer, stream).hidden(H) if rate else H

    def keep(self, replicas: Tensor) -> None:
        """Go on with these runs alone."""
        self.seeds = [self.seeds[replica] for replica in replicas.tolist()]
        self._keys = {name: key[:, replicas] for name, key in self._keys.items()}
        self._rates = {}
