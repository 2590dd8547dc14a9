"""What training a baseline gives back: what every run predicts, and what it cost."""

from dataclasses import dataclass, field

from torch import Tensor


@dataclass(frozen=True)
class BaselineRuns:
    """R finished runs of one baseline on one graph.

    Attributes:
        name: of the baseline.
        seeds: one a run.
        logits: [R, n, C], on the CPU, of the best weights of each run.
        y: [n], the class of every node, −1 for none.
        val_loss: the lowest validation loss of each run, [R].
        epochs: how many epochs each run took, [R].
        parameters: how many weights one run learns.
        seconds: what all runs together took, preparation included.
        layers: the hidden states of the best weights after each layer, [R, n, h_i] each, where they were asked for.
        weights: what each run learned, name → [R, …], in the order of the layers, where they were asked for.
    """

    name: str
    seeds: list[int]
    logits: Tensor
    y: Tensor
    val_loss: Tensor
    epochs: Tensor
    parameters: int
    seconds: float
    layers: list[Tensor] = field(default_factory=list)
    weights: dict[str, Tensor] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.seeds)

    def probabilities(self) -> Tensor:
        """[R, n, C]."""
        return self.logits.softmax(-1)

    def accuracy(self, mask: Tensor) -> Tensor:
        """Share of right answers of each run, [R], over the labelled nodes under a mask [n] or [R, n]."""
        counted = mask.cpu() & (self.y >= 0)
        right = (self.logits.argmax(-1) == self.y) & counted
        return right.sum(-1) / counted.sum(-1)
