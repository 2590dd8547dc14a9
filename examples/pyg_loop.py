"""GPNN in a PyTorch Geometric training loop: python examples/pyg_loop.py [epochs]

The graph is enhanced by a transform, the model is an ordinary module, the losses are functions. The loop adds a
schedule for α, keeps the weights with the best validation accuracy, and measures how smooth the features have become.
"""

import copy
import sys

import torch
from torch.nn.functional import cross_entropy
from torch_geometric.transforms import Compose, NormalizeFeatures

import graphpartner as gp


def main() -> None:
    epochs = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    torch.manual_seed(0)
    data = gp.load_dataset("citeseer")
    data = Compose([gp.Enhance(k=3, threshold=0.4, beta=0.7), NormalizeFeatures()])(data)
    data.x = data.x.to_sparse_csr()
    model = gp.GPNN(data.num_features, 64, data.num_classes, num_steps=8, alpha=0.4)
    groups = [{"params": [model.weight1], "weight_decay": 5e-3}, {"params": [model.weight2], "weight_decay": 5e-4}]
    adam = torch.optim.Adam(groups, lr=0.02)
    best, best_state = 0.0, copy.deepcopy(model.state_dict())
    for epoch in range(epochs):
        model.train()
        model.alpha = 0.6 - 0.2 * epoch / epochs  # trust the graph more and more
        out = model(data.x, data.adj_t)
        loss = cross_entropy(out.logits[data.train_mask], data.y[data.train_mask])
        loss = loss + 0.1 * gp.rectification_loss(out.mlp_logits, out.gcn_logits, temperature=2.0)
        loss = loss + gp.consistency_loss(out.initial, out.smoothed, margin=0.9, score="cosine")
        adam.zero_grad()
        loss.backward()
        adam.step()
        model.eval()
        with torch.no_grad():
            prediction = model(data.x, data.adj_t).logits.argmax(1)
        accuracy = float((prediction == data.y)[data.val_mask].float().mean())
        if accuracy > best:
            best, best_state = accuracy, copy.deepcopy(model.state_dict())
    model.load_state_dict(best_state)
    with torch.no_grad():
        out = model.eval()(data.x, data.adj_t)
    accuracy = float((out.logits.argmax(1) == data.y)[data.test_mask].float().mean())
    before, after = (gp.dirichlet_energy(H, data.edge_index) for H in (out.initial, out.smoothed))
    print(f"validation {best:.1%}, test {accuracy:.1%}")
    print(f"Dirichlet energy {float(before):.1f} before propagation, {float(after):.1f} after")


if __name__ == "__main__":
    main()
