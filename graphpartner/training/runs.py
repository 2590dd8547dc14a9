"""Finished runs: the best weights of each, their predictions, and their files."""

import csv
import io
import json
import math
import os
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graphpartner.model.calibration import with_class_prior
from graphpartner.model.gpnn import GPNN, forward
from graphpartner.model.metrics import accuracy
from graphpartner.model.propagation import propagate_to_depths
from graphpartner.system.files import write_atomically
from graphpartner.training.batch import HISTORY
from graphpartner.training.loop import Trained
from graphpartner.training.prepared import PreparedGraph
from graphpartner.training.settings import Settings


class Runs:
    """R finished runs of one graph.

    Attributes:
        seeds: one per run.
        settings: one per run.
        val_loss: the lowest validation loss of each run, [R]; for a run of several groups, the mean over the groups.
        best_epoch: the epoch of that loss, [R].
        batches: number of networks trained together, per batch.
    """

    def __init__(
        self,
        problem: PreparedGraph,
        settings: list[Settings],
        seeds: list[int],
        y: Tensor,
        trained: Trained,
        batches: list[int],
    ) -> None:
        self.problem, self.settings, self.seeds = problem, settings, seeds
        self.weight1, self.weight2 = trained.weights
        self.val_loss, self.best_epoch = trained.val_loss.cpu(), trained.best_epoch.cpu()
        self.batches = batches
        self._y = y.cpu()
        self._history = trained.history.cpu().numpy()

    def __len__(self) -> int:
        return len(self.seeds)

    @property
    def history(self) -> list[dict[str, NDArray[np.float32]]]:
        """Losses and validation accuracy per epoch until early stopping, for each run."""
        curves = []
        for run, best in enumerate(self.best_epoch.tolist()):
            end = min(self.settings[run].epochs, best + self.settings[run].patience + 1)
            curves.append({name: self._history[:end, run, column] for column, name in enumerate(HISTORY)})
        return curves

    @property
    def epochs(self) -> Tensor:
        """Number of epochs of each run, [R]."""
        return torch.tensor([len(curves["loss"]) for curves in self.history])

    @property
    def logits(self) -> Tensor:
        """α H^φ1 + (1 − α) H^φ2 of the best weights, [R, n, C], on the CPU.

        Where the settings give a ``prior_temperature`` T, they are divided by T, and :attr:`log_prior` is added.
        """
        return self._predicted[0]

    @property
    def log_prior(self) -> Tensor:
        """Logarithm of the class prior that each run estimates, ln π, [R, 1, C]; 0 where T = 0."""
        return self._predicted[1]

    @cached_property
    def _predicted(self) -> tuple[Tensor, Tensor]:
        logits, priors = [], []
        step = max(1, max(self.batches) // self.settings[0].groups)
        for start in range(0, len(self), step):
            part = slice(start, start + step)
            alpha = torch.tensor([each.alpha for each in self.settings[part]], device=self.weight1.device)
            weights = self.weight1[part], self.weight2[part]
            propagate = propagate_to_depths(self.problem.propagate, [each.num_steps for each in self.settings[part]])
            with torch.no_grad():
                out = forward(self.problem.X, *weights, propagate, alpha[:, None, None], smooth=False)
            temperature = torch.tensor([each.prior_temperature for each in self.settings[part]])
            corrected, prior = with_class_prior(out.logits, temperature)
            logits.append(corrected.cpu())
            priors.append(prior.cpu())
        return torch.cat(logits), torch.cat(priors)

    def probabilities(self) -> Tensor:
        """Return O of Eq. 14, [R, n, C]."""
        return self.logits.softmax(-1)

    def accuracy(self, mask: Tensor) -> Tensor:
        """Return the accuracy of each run, [R], over the labelled nodes under a mask [n] or [R, n]."""
        return accuracy(self.logits, self._y, mask.cpu())

    def best(self) -> GPNN:
        """Return the run with the lowest validation loss, as a module in evaluation mode.

        Where the settings give a ``prior_temperature`` T, its W^(2) is divided by T and ln π is its ``class_bias``.
        """
        run = int(self.val_loss.argmin())
        settings = self.settings[run]
        model = GPNN(
            self.weight1.shape[1],
            self.weight1.shape[2],
            self.weight2.shape[2],
            settings.num_steps,
            settings.alpha,
            settings.dropout,
            settings.input_dropout,
            normalize=settings.features == "row",
        )
        with torch.no_grad():
            model.weight1.copy_(self.weight1[run])
            model.weight2.copy_(self.weight2[run] / (settings.prior_temperature or 1))
            model.class_bias.copy_(self.log_prior[run, 0])
        return model.eval()

    def save(self, folder: str | os.PathLike[str], about: dict[str, Any] | None = None) -> list[Path]:
        """Write the runs into a folder and return the files, each of which is written atomically.

        ``weights.safetensors`` holds W^(1) and W^(2) of every run, and ``log_prior`` where a run has one;
        ``predictions.csv`` one line per node, with class and probability of the mean over the runs; ``history.csv`` one
        line per run and epoch; ``runs.json`` seeds, settings, validation loss, and the entries of ``about``.
        """
        from safetensors.torch import save

        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        weights = {"weight1": self.weight1.cpu().contiguous(), "weight2": self.weight2.cpu().contiguous()}
        if any(each.prior_temperature for each in self.settings):
            weights["log_prior"] = self.log_prior[:, 0].contiguous()
        contents = {
            "weights.safetensors": save(weights),
            "predictions.csv": self._predictions().encode(),
            "history.csv": self._curves().encode(),
            "runs.json": json.dumps(self._summary() | (about or {}), indent=2).encode(),
        }
        for name, content in contents.items():
            write_atomically(folder / name, content)
        return [folder / name for name in contents]

    def _summary(self) -> dict[str, Any]:
        return {
            "seeds": self.seeds,
            "settings": [each.asdict() for each in self.settings],
            "val_loss": [loss if math.isfinite(loss) else None for loss in self.val_loss.tolist()],
            "best_epoch": self.best_epoch.tolist(),
            "epochs": self.epochs.tolist(),
            "plan": self.problem.propagate.explain(),
            "batches": self.batches,
        }

    def _predictions(self) -> str:
        mean = self.probabilities().mean(0)
        probability, guess = mean.max(-1)
        agreement = (self.logits.argmax(-1) == guess).float().mean(0)
        rows = enumerate(zip(guess.tolist(), probability.tolist(), agreement.tolist(), strict=True))
        lines = ([node, best, f"{share:.6f}", f"{agreeing:.4f}"] for node, (best, share, agreeing) in rows)
        return _csv(["node", "class", "probability", "agreement"], lines)

    def _curves(self) -> str:
        lines = (
            [seed, epoch, *(f"{value:.6g}" for value in row)]
            for seed, curves in zip(self.seeds, self.history, strict=True)
            for epoch, row in enumerate(zip(*curves.values(), strict=True))
        )
        return _csv(["seed", "epoch", *HISTORY], lines)


def _csv(header: list[str], lines: Iterable[list[Any]]) -> str:
    table = io.StringIO()
    writer = csv.writer(table)
    writer.writerow(header)
    writer.writerows(lines)
    return table.getvalue()
