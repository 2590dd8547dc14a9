"""A network whose hidden units were trained in groups, each group as a network of its own.

Side by side, W^(1) = [W_1^(1), …, W_G^(1)] and W^(2) = 1/G [W_1^(2); …; W_G^(2)] are one GPNN of G times the width.
The ReLU acts on each hidden unit by itself, so its logits are exactly the mean of the logits of the G networks: an
ensemble that is a single network, with a single forward pass.
"""

import torch

from graphpartner.train import draws
from graphpartner.train.runs import Trained
from graphpartner.train.settings import Settings


def group_seeds(seed: int, settings: Settings) -> list[int]:
    """The seeds of a run's groups: its own, and others that follow from it and that no teacher of it has."""
    lessons = settings.teachers * settings.generations
    return [seed, *draws.children(seed, lessons + settings.groups - 1)[lessons:]]


def as_one_network(trained: Trained, groups: int) -> Trained:
    """R networks of R · G: every G of them as one.

    The validation loss is the mean of its groups', which its own does not exceed, since cross-entropy is convex in
    the logits; the learning curve and the best epoch are those of the first group.
    """
    weight1, weight2 = (weight.unflatten(0, (-1, groups)) for weight in trained.weights)
    wide = weight1.transpose(1, 2).flatten(2), weight2.flatten(1, 2) / groups
    first = torch.arange(0, len(trained.val_loss), groups, device=trained.history.device)
    loss = trained.val_loss.unflatten(0, (-1, groups)).mean(1)
    return Trained(wide, loss, trained.best_epoch[first], trained.history[:, first])
