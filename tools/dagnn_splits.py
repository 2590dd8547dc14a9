"""Show why DAGNN's authors report more than Table 1 on the Amazon graphs: their splits are different ones.

    python tools/dagnn_splits.py [GRAPH …] [--runs 10] [--method dagnn] [--device auto] [--data ROOT]

Their code (mengliu1998/DeeperGNN, train_eval.py, random_coauthor_amazon_splits with lcc=True) draws 20 and 30 nodes per
class from the largest connected component, by their position in it, and uses these positions as node numbers of the
whole graph. Since the component leaves nodes out, positions and numbers soon differ, and labels with them: the training
set is as unbalanced as the graph. The same model with the same settings is trained here on

- 20 and 30 nodes per class, the splits of Table 1;
- the same within the largest component, so that no node without neighbours is tested;
- the splits of the authors' code.
"""

import argparse
import copy

import torch
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from graphpartner.graph.adjacency import adjacency
from graphpartner.graph.datasets import load_graph
from graphpartner.graph.record import GraphRecord
from graphpartner.graph.splits import Split, per_class_splits
from graphpartner.lab.baselines.all_baselines import train_baseline
from graphpartner.system.device import pick_device


def main() -> None:
    """Train on the three kinds of splits of each graph, and print the test accuracies."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graphs", nargs="*", default=["amazon-computers", "amazon-photo"])
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--method", default="dagnn")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--data", help="the folder that holds the graphs")
    given = parser.parse_args()
    device = pick_device(given.device)
    for name in given.graphs:
        data = load_graph(name, given.data)
        nodes = largest_component(data)
        print(f"{name}: {data.num_nodes:,} nodes, {nodes.numel():,} of them in the largest component")
        seeds = list(range(given.runs))
        inside = per_class_splits(data.y[nodes], seeds)
        splits = {
            "per class": per_class_splits(data.y, seeds),
            "the same in the largest component": placed(inside, nodes, data.num_nodes),
            "as the authors' code draws them": placed(inside, torch.arange(nodes.numel()), data.num_nodes),
        }
        for title, split in splits.items():
            there = copy.copy(data)
            there.train_mask, there.val_mask, there.test_mask = split
            accuracy = 100 * train_baseline(given.method, there, seeds, device).accuracy(there.test_mask)
            counts = torch.bincount(data.y[split.train_mask[0]], minlength=int(data.y.max()) + 1).tolist()
            print(
                f"  {title:34}  test accuracy {accuracy.mean():.2f} ± {accuracy.std():.2f} %  "
                f"training nodes by class, first split: {counts}",
                flush=True,
            )


def largest_component(data: GraphRecord) -> Tensor:
    """Return the nodes of the largest connected component, in ascending order."""
    _, component = connected_components(adjacency(data.edge_index, data.num_nodes))
    label = torch.from_numpy(component).long()
    return (label == torch.bincount(label).argmax()).nonzero().squeeze(-1)


def placed(split: Split, where: Tensor, num_nodes: int) -> Split:
    """Turn a split of some nodes, [R, m], into one of the whole graph, [R, n]: node i of the m becomes ``where[i]``."""
    masks = []
    for mask in split:
        whole = torch.zeros(mask.shape[0], num_nodes, dtype=torch.bool)
        whole[:, where] = mask
        masks.append(whole)
    return Split(*masks)


if __name__ == "__main__":
    main()
