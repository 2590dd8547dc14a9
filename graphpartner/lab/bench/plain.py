"""The peer: GPNN as a straightforward PyTorch loop. Dense features, CSR products, Adam, one run at a time."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from graphpartner.enhance.join import attribute_graph
from graphpartner.enhance.mixture import enhanced_adjacency
from graphpartner.graph.adjacency import neighbor_mean
from graphpartner.graph.record import GraphRecord
from graphpartner.training.prepared import count_classes
from graphpartner.training.settings import Settings


class PlainGPNN:
    """One run of GPNN the way one would write it first; the same settings, losses and stopping rule as the engine."""

    def __init__(self, data: GraphRecord, settings: Settings, seed: int, device: torch.device) -> None:
        torch.manual_seed(seed)
        s = self.settings = settings
        attribute = attribute_graph(data.x, data.edge_index, s.k, s.threshold) if s.beta < 1 else None
        self.A = enhanced_adjacency(attribute, data.edge_index, data.num_nodes, s.beta).to(device)
        self.mean = neighbor_mean(data.edge_index, data.num_nodes).to(device)
        x = data.x / data.x.sum(1, keepdim=True).clamp(min=1e-12) if s.features == "row" else data.x
        self.x, self.y = x.to(device), data.y.to(device)
        self.train, self.val, self.test = (
            (mask if mask.dim() == 1 else mask[0]).to(device)
            for mask in (data.train_mask, data.val_mask, data.test_mask)
        )
        self.first = nn.Linear(data.x.shape[1], s.hidden_channels, bias=False).to(device)
        self.second = nn.Linear(s.hidden_channels, count_classes(data), bias=False).to(device)
        nn.init.xavier_uniform_(self.first.weight)
        nn.init.xavier_uniform_(self.second.weight)
        groups = [(self.first, s.decay1), (self.second, s.decay2)]
        self.optimizer = torch.optim.Adam(
            [{"params": layer.parameters(), "weight_decay": decay} for layer, decay in groups], lr=s.lr
        )

    def forward(self, training: bool) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """Logits, both branches' logits, H^(1) and H^(l+1)."""
        s = self.settings
        hidden = torch.relu(self.first(F.dropout(self.x, s.input_dropout, training)))
        initial = F.dropout(hidden, s.dropout, training)
        partner = F.dropout(hidden, s.dropout, training) if s.separate_dropout else initial
        smoothed = initial
        for _ in range(s.num_steps):
            smoothed = self.A @ smoothed
        mlp, gcn = self.second(partner), self.second(smoothed)
        return s.alpha * mlp + (1 - s.alpha) * gcn, mlp, gcn, initial, smoothed

    def epoch(self) -> float:
        """One step of training and one validation pass; the validation loss."""
        s = self.settings
        self.optimizer.zero_grad()
        logits, mlp, gcn, initial, smoothed = self.forward(True)
        loss = F.cross_entropy(logits[self.train], self.y[self.train])
        T = s.temperature
        divergence = F.kl_div((gcn / T).log_softmax(-1), (mlp / T).log_softmax(-1), log_target=True, reduction="sum")
        loss = loss + s.lambda_rt * T * T * divergence / mlp.numel()
        if s.lambda_cs:
            loss = loss + s.lambda_cs * (s.margin - self.score(initial, smoothed)).clamp(min=0)
        loss.backward()
        self.optimizer.step()
        with torch.no_grad():
            logits = self.forward(False)[0]
            return float(F.cross_entropy(logits[self.val], self.y[self.val]))

    def score(self, initial: Tensor, smoothed: Tensor) -> Tensor:
        """Eq. 18 with inner products or cosines."""
        s = self.settings
        if s.score == "cosine":
            initial, smoothed = F.normalize(initial, dim=-1), F.normalize(smoothed, dim=-1)
        negative = smoothed[torch.randint(len(smoothed), (s.num_negatives,), device=smoothed.device)]
        agreement = smoothed if s.positives == "self" else self.mean @ smoothed
        return (initial * agreement).sum(-1).mean() - (initial.mean(0) * negative.mean(0)).sum()

    def fit(self, epochs: int) -> float:
        """Train with early stopping, keep the best weights, and return the test accuracy."""
        best, best_epoch, kept = float("inf"), -1, None
        for epoch in range(epochs):
            loss = self.epoch()
            if loss < best:
                best, best_epoch = loss, epoch
                kept = [layer.weight.detach().clone() for layer in (self.first, self.second)]
            if epoch - best_epoch >= self.settings.patience:
                break
        with torch.no_grad():
            for layer, weight in zip((self.first, self.second), kept or [], strict=False):
                layer.weight.copy_(weight)
            guess = self.forward(False)[0].argmax(-1)
        counted = self.test & (self.y >= 0)
        return float((guess[counted] == self.y[counted]).float().mean())
