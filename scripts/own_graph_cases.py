"""What ``scripts/own_graph.py`` does to a graph before it is written into files: one function a case."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import sparse

KNOWN = 0.8  # of the labels are in the file
LABELS_A_CLASS = 5
SMALL, SMALL_KNOWN, SMALL_CLASS = 200, 0.6, 5
WORDS_LEFT, HUBS = 0.05, 1.5


class Graph(NamedTuple):
    """A graph that will be files."""

    x: sparse.csr_array | None
    """Features; None: no feature columns."""
    edges: np.ndarray
    """[2, m], every edge once."""
    y: np.ndarray
    """Classes; −1 where there is none."""

    @property
    def classes(self) -> int:
        """C."""
        return int(self.y.max()) + 1


def planted(rng: np.random.Generator, nodes: int = 100_000, edges: int = 1_000_000, classes: int = 8) -> Graph:
    """A large graph: seven edges of ten within a class, twenty features that hint at it."""
    y = rng.integers(0, classes, nodes)
    order = np.argsort(y, kind="stable")
    start, end = (np.searchsorted(y[order], np.arange(classes), side) for side in ("left", "right"))
    first = rng.integers(0, nodes, edges)
    inside = order[rng.integers(start[y[first]], end[y[first]])]
    second = np.where(rng.random(edges) < 0.7, inside, rng.integers(0, nodes, edges))
    x = rng.normal(size=(nodes, 20)) + 0.35 * rng.normal(size=(classes, 20))[y]
    return Graph(sparse.csr_array(x.round(4)), simple(np.stack([first, second])), y)


def minesweeper(rng: np.random.Generator, side: int = 100) -> Graph:
    """The game, as a heterophilous graph (Platonov et al., 2023): is there a mine in this cell of the grid?

    A fifth of the cells hold one; a cell knows how many of the eight around it do, or, every other one, nothing.
    """
    y = (rng.random(side * side) < 0.2).astype(np.int64)
    cell = np.arange(side * side).reshape(side, side)
    pairs = [(cell[:, 1:], cell[:, :-1]), (cell[1:], cell[:-1]), (cell[1:, 1:], cell[:-1, :-1]),
             (cell[1:, :-1], cell[:-1, 1:])]  # fmt: skip
    edges = np.concatenate([np.stack([one.ravel(), other.ravel()]) for one, other in pairs], axis=1)
    around = np.bincount(edges.ravel(), y[edges[::-1]].ravel(), side * side).astype(np.int64)
    told = np.where(rng.random(side * side) < 0.5, around, 9)  # 9: nothing
    return Graph(sparse.csr_array(np.eye(10)[told]), edges, y)


class MadeUp(NamedTuple):
    """A graph that is no data set: how it is made, told and done."""

    meaning: str
    draw: Callable[[np.random.Generator], Graph]


MADE_UP = {
    "planted": MadeUp(
        "made up by the script to see time and memory of a large graph, an easy one: 100,000 nodes of eight classes, "
        "1,000,000 edges between random nodes, seven of ten drawn within a class, and twenty features, mostly noise, "
        "whose means differ a little from class to class",
        planted,
    ),
    "minesweeper": MadeUp(
        "made by the rule of Platonov et al. ([A critical look at the evaluation of GNNs under heterophily]"
        "(https://arxiv.org/abs/2302.11640), 2023): 100 × 100 cells, each joined to the eight around it; a random "
        "fifth hold a mine, which is the class, and half of the cells tell how many of those around them do",
        minesweeper,
    ),
}


def rewired(share: float) -> Callable[[Graph, np.random.Generator], Graph]:
    """One end of a share of the edges goes to a random node."""

    def change(graph: Graph, rng: np.random.Generator) -> Graph:
        edges = graph.edges.copy()
        moved = rng.random(edges.shape[1]) < share
        edges[1, moved] = rng.integers(0, len(graph.y), moved.sum())
        return graph._replace(edges=simple(edges))

    return change


def without_features(graph: Graph, rng: np.random.Generator) -> Graph:
    """Ids and edges only."""
    return graph._replace(x=None)


def to_next_class(graph: Graph, rng: np.random.Generator) -> Graph:
    """Every edge leads from a class to the next one: neighbours are never of one's own class, yet they tell it."""
    wanted = (graph.y[graph.edges[0]] + 1) % graph.classes
    return graph._replace(edges=led_to(graph, wanted, rng))


def to_other_classes(graph: Graph, rng: np.random.Generator) -> Graph:
    """Every edge leads to a node of some other class: neighbours tell hardly more than what a node is not."""
    away = rng.integers(1, graph.classes, graph.edges.shape[1])
    return graph._replace(edges=led_to(graph, (graph.y[graph.edges[0]] + away) % graph.classes, rng))


def hubs(graph: Graph, rng: np.random.Generator) -> Graph:
    """Few words are left, and edges know nothing but how popular a node is, which depends on its class."""
    popular = HUBS ** np.maximum(graph.y, 0) * rng.lognormal(0, 0.5, len(graph.y))
    edges = rng.choice(len(graph.y), (2, 5 * len(graph.y)), p=popular / popular.sum())
    words = rng.permutation(graph.x.shape[1])[: max(1, int(WORDS_LEFT * graph.x.shape[1]))]
    return graph._replace(x=graph.x[:, np.sort(words)], edges=simple(edges))


def small(graph: Graph, rng: np.random.Generator) -> Graph:
    """A few hundred nodes with all their features, and edges to other classes; none of a class with hardly a member."""
    nodes = rng.permutation(np.flatnonzero(graph.y >= 0))[:SMALL]
    nodes = nodes[np.bincount(graph.y[nodes])[graph.y[nodes]] >= SMALL_CLASS]
    y = np.unique(graph.y[nodes], return_inverse=True)[1]
    edges = rng.integers(0, len(nodes), (2, 2 * len(nodes)))
    return to_other_classes(Graph(graph.x[nodes], edges, y), rng)


def led_to(graph: Graph, wanted: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The edges, their second ends drawn anew among the nodes of the wanted classes."""
    order = np.argsort(graph.y, kind="stable")
    start, end = (np.searchsorted(graph.y[order], wanted, side) for side in ("left", "right"))
    second = order[rng.integers(start, end)]
    return simple(np.stack([graph.edges[0], second])[:, graph.y[graph.edges[0]] >= 0])


def simple(edges: np.ndarray) -> np.ndarray:
    """Without self-loops."""
    return edges[:, edges[0] != edges[1]]


def most_known(graph: Graph, rng: np.random.Generator) -> np.ndarray:
    """80 % of the labelled nodes."""
    labelled = np.flatnonzero(graph.y >= 0)
    return rng.permutation(labelled)[: int(KNOWN * labelled.size)]


def some_known(graph: Graph, rng: np.random.Generator) -> np.ndarray:
    """60 % of the labelled nodes."""
    labelled = np.flatnonzero(graph.y >= 0)
    return rng.permutation(labelled)[: int(SMALL_KNOWN * labelled.size)]


def few_known(graph: Graph, rng: np.random.Generator) -> np.ndarray:
    """Five nodes of every class."""
    return np.concatenate(
        [rng.permutation(np.flatnonzero(graph.y == c))[:LABELS_A_CLASS] for c in range(graph.classes)]
    )


class Case(NamedTuple):
    """What is done to a graph, and which labels are then in its file."""

    meaning: str
    """For the page, which knows the ``{points}`` that five labels a class leave open."""
    change: Callable[[Graph, np.random.Generator], Graph] = lambda graph, rng: graph
    known: Callable[[Graph, np.random.Generator], np.ndarray] = most_known


CASES = {
    "as it is": Case("80 % of the labels are in the file, 20 % are kept back, drawn at random"),
    "rewired 25 %": Case("the same, one end of a random 25 % of the edges moved to a random node", rewired(0.25)),
    "rewired 50 %": Case("the same with 50 %", rewired(0.5)),
    "rewired 100 %": Case("the same with all edges", rewired(1.0)),
    "without features": Case("the same, ids and edges only", without_features),
    "5 labels a class": Case(
        "only five labels a class, all other labels kept back; from m labels an accuracy p is known to about "
        "√(p (1 − p) / m), here {points} points, and probabilities cannot be surer than that of being honest",
        known=few_known,
    ),
    "to the next class": Case(
        "heterophilous, and telling: one end of every edge moved to a random node of the class after that of the other "
        "end; 80 % of the labels are in the file",
        to_next_class,
    ),
    "to other classes": Case(
        "heterophilous, and misleading: one end of every edge moved to a random node of a random other class; 80 % of "
        "the labels are in the file",
        to_other_classes,
    ),
    "hubs": Case(
        "in the manner of Chameleon and Squirrel: 5 % of the words, and random edges of which a node of one class gets "
        "half as many again as one of the class before; 80 % of the labels are in the file",
        hubs,
    ),
    "small": Case(
        "in the manner of Texas, Cornell and Wisconsin: 200 nodes with all their features, 400 edges to other classes; "
        "60 % of the labels are in the file, so that few nodes are left to judge by and a few points are chance",
        small,
        some_known,
    ),
}  # fmt: skip
