"""From two files to predictions: python examples/own_csv.py [folder] [budget]

The files are made from the built-in citation graph, so that the example runs anywhere; with files of your own, begin at
step 2. Everything is written to the folder given, or to a new one.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import sparse

import graphpartner as gp

TOPICS = np.array(["agents", "AI", "databases", "retrieval", "learning", "interaction"])


def nearest_papers(edge_index: np.ndarray, count: int) -> np.ndarray:
    """Return the most cited paper and those nearest to it, ``count`` in all."""
    degree = np.bincount(edge_index[0])
    graph = sparse.coo_array((np.ones(edge_index.shape[1]), edge_index), shape=(degree.size, degree.size)).tocsr()
    return sparse.csgraph.breadth_first_order(graph, int(degree.argmax()), return_predecessors=False)[:count]


def write_files(folder: Path, papers: int = 600) -> None:
    """Step 1: write nodes.csv with an id, a topic (known for half of the papers) and words; edges.csv with two ids."""
    data = gp.load_dataset("citeseer")
    chosen = nearest_papers(data.edge_index.numpy(), papers)
    x, y = data.x.numpy()[chosen], data.y.numpy()[chosen]
    words = [" ".join(f"word{j}" for j in np.flatnonzero(row)) for row in x]
    topic = np.where((y >= 0) & (np.arange(papers) % 2 == 0), TOPICS[y], "")
    names = np.array([f"paper-{i:04d}" for i in range(papers)])
    old = papers - 2  # the last two papers arrive later
    table = pd.DataFrame({"id": names, "topic": topic, "abstract": words})
    table[:old].to_csv(folder / "nodes.csv", index=False)
    table[old:].drop(columns="topic").to_csv(folder / "new-nodes.csv", index=False)
    place = np.full(data.num_nodes, papers)
    place[chosen] = np.arange(papers)
    source, target = place[data.edge_index.numpy()]
    inside = (source < target) & (target < old)
    edges = pd.DataFrame({"source": names[source[inside]], "target": names[target[inside]]})
    edges.to_csv(folder / "edges.csv", index=False)
    new = pd.DataFrame({"source": [names[old]], "target": [names[0]]})  # one of the two cites a known paper
    new.to_csv(folder / "new-edges.csv", index=False)


def gpnn(folder: Path, *arguments: str) -> None:
    """Print and run a command: gpnn fit …"""
    print("\n$ gpnn", *arguments, flush=True)
    subprocess.run([sys.executable, "-m", "graphpartner.cli", *arguments], cwd=folder, check=True)


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp())
    budget = sys.argv[2] if len(sys.argv) > 2 else "30s"
    write_files(folder)
    # 2. fit: choose settings, train, and estimate the accuracy
    gpnn(folder, "fit", "--nodes", "nodes.csv", "--edges", "edges.csv", "--label", "topic", "--out", "model",
         "--budget", budget)  # fmt: skip
    # 3. predict: every paper of the fit, with a flag where the confidence is low
    gpnn(folder, "predict", "model", "--out", "predictions.csv", "--min-confidence", "0.6")
    print(pd.read_csv(folder / "predictions.csv").head())
    # 4. predict: new papers, one with a citation and one without
    gpnn(folder, "predict", "model", "--nodes", "new-nodes.csv", "--edges", "new-edges.csv", "--out", "new.csv")
    print(pd.read_csv(folder / "new.csv").to_string())


if __name__ == "__main__":
    main()
