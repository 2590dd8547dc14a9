"""GPNN as a scikit-learn classifier, and a graph that can be indexed by rows, as cross-validation does."""

import os
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, check_random_state, validate_data
from torch import Tensor

from graphpartner.fitting.candidate_runs import CandidateRuns, Job
from graphpartner.fitting.candidates import Candidate
from graphpartner.fitting.clock import Clock
from graphpartner.fitting.fitted_model import FittedModel, Member
from graphpartner.fitting.folds import Fold, folds
from graphpartner.fitting.layouts import CandidateGraphs
from graphpartner.fitting.model_folder import load_model, save_model
from graphpartner.graph.adjacency import to_torch
from graphpartner.graph.record import GraphRecord
from graphpartner.system.device import pick_device
from graphpartner.system.errors import InputError
from graphpartner.training.settings import Settings

FOREVER = 1e9  # seconds: a fit has no time limit
STOPPING_FOLDS = 5  # one of which is held out for early stopping
UNLABELLED = ("-1", "-1.0")


class GPNNClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Graph Partner Neural Network as a scikit-learn classifier.

    ``fit(X, y, graph=adjacency)`` trains on the labelled rows; unlabelled rows (y = −1) take part through the graph.
    Without a graph, the model is the MLP partner alone. A fifth of the labelled rows is held out for early stopping.

    ``predict(X)`` classifies each row by the MLP partner, from its own features. ``predict(X, graph=…)`` combines both
    branches: the graph is among the rows of X, or a :class:`graphpartner.NodeGraph`, which also connects them to the
    rows of ``fit``.

    Cross-validation indexes all its arguments by rows, a graph too. Pass a :class:`graphpartner.NodeGraph`, which keeps
    the whole graph and the indices of its rows, and request it::

        sklearn.set_config(enable_metadata_routing=True)
        classifier = GPNNClassifier().set_fit_request(graph=True).set_score_request(graph=True)
        cross_val_score(classifier, X, y, params={"graph": gp.NodeGraph(adjacency)})

    Args:
        num_steps: l, the number of propagation steps.
        alpha: α, the weight of the MLP partner.
        beta: β, the weight of the graph as given; below 1 the graph is enhanced (Eqs. 7, 8).
        k: maximum number of hops of the enhancement.
        threshold: its minimum cosine.
        hidden_channels: width of H^(1).
        hops: maximum number of hops to neighbours whose features are appended to a row's own.
        dropout: dropout rate of H^(1).
        input_dropout: dropout rate of X.
        lambda_rt: weight of the rectification loss.
        lambda_cs: weight of the contrastive loss.
        lr: learning rate.
        decay1: weight decay of W^(1).
        decay2: weight decay of W^(2).
        epochs: maximum number of epochs.
        patience: number of epochs without a lower validation loss after which training stops.
        num_runs: number of runs whose probabilities are averaged, each with another fold for early stopping.
        device: ``"auto"`` takes a GPU where there is one.
        random_state: seed of all random draws.

    Attributes:
        classes_: the classes, sorted.
        n_features_in_: number of columns of X.
        model_: the fitted :class:`graphpartner.fitting.fitted_model.FittedModel`.
    """

    def __init__(
        self,
        num_steps: int = 4,
        alpha: float = 0.2,
        beta: float = 1.0,
        k: int = 3,
        threshold: float = 0.4,
        hidden_channels: int = 64,
        hops: int = 0,
        dropout: float = 0.3,
        input_dropout: float = 0.0,
        lambda_rt: float = 0.1,
        lambda_cs: float = 0.0,
        lr: float = 0.01,
        decay1: float = 5e-4,
        decay2: float = 5e-4,
        epochs: int = 300,
        patience: int = 40,
        num_runs: int = 1,
        device: str = "auto",
        random_state: Any = None,
    ) -> None:
        self.num_steps, self.alpha, self.beta, self.k, self.threshold = num_steps, alpha, beta, k, threshold
        self.hidden_channels, self.hops = hidden_channels, hops
        self.dropout, self.input_dropout = dropout, input_dropout
        self.lambda_rt, self.lambda_cs, self.lr, self.decay1, self.decay2 = lambda_rt, lambda_cs, lr, decay1, decay2
        self.epochs, self.patience, self.num_runs, self.device = epochs, patience, num_runs, device
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def fit(self, X: Any, y: Any, graph: Any = None) -> "GPNNClassifier":
        """Train on the labelled rows.

        Args:
            X: features, [n, d], dense or SciPy sparse.
            y: classes; −1 (``"-1"`` among strings) for a row without a label.
            graph: adjacency of the rows, [n, n], SciPy sparse or dense, or a :class:`graphpartner.NodeGraph`.
        """
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64)
        check_classification_targets(y)
        for name, least in (("num_runs", 1), ("hops", 0)):
            if not isinstance(value := getattr(self, name), Integral) or value < least:
                raise InputError(f"{name} = {value}: must be a whole number, {least} or more")
        known = _labelled(y)
        self.classes_, codes = np.unique(y[known], return_inverse=True)
        if len(self.classes_) < 2:
            raise InputError(f"y has {len(self.classes_)} class among {len(y)} rows: must have 2 classes or more")
        target = torch.full((len(y),), -1)
        target[torch.from_numpy(known)] = torch.from_numpy(codes)
        self.graph_ = NodeGraph.of(graph, len(y)) if graph is not None else None
        edge_index, edge_weight = torch.empty(2, 0, dtype=torch.int64), None
        if self.graph_ is not None:
            edge_index, edge_weight = self.graph_.among(self.graph_.rows)
        data = GraphRecord(len(y), x=_features(X), edge_index=edge_index, y=target, edge_weight=edge_weight)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        candidate = Candidate("estimator", self._settings(), self.hops if self.graph_ is not None else 0)
        graphs = CandidateGraphs(data, len(self.classes_), pick_device(self.device))
        split = _stopping_folds(target, seed)
        trained = CandidateRuns(graphs, target, split, lambda: None)
        jobs = [Job(candidate, run % len(split), seed + run) for run in range(self.num_runs)]
        clock = Clock(FOREVER)
        trained.train(jobs, clock, at_least=len(jobs))
        if clock.stopped.is_set():
            raise KeyboardInterrupt
        runs = sorted(trained.outcomes, key=lambda each: each.job.seed)
        weights = (torch.stack([run.weight1 for run in runs]), torch.stack([run.weight2 for run in runs]))
        learned = (target >= 0).nonzero().squeeze(-1)
        names = [each.item() if hasattr(each, "item") else each for each in self.classes_]
        member = Member(candidate, *weights, 1.0, 1.0)
        rows = list(range(len(y)) if self.graph_ is None else self.graph_.rows.tolist())
        self.model_ = FittedModel(
            data, rows, names, [member], learned, (0.8, 0.0), 1.0, 1.0, None, {"estimator": self._plain()}
        )
        return self

    def _plain(self) -> dict[str, Any]:
        """Return the parameters that JSON can hold; None for others."""
        plain = {
            name: value.item() if isinstance(value, np.generic) else value
            for name, value in self.get_params(deep=False).items()
        }
        return {name: value if isinstance(value, (int, float, str)) else None for name, value in plain.items()}

    def _settings(self) -> Settings:
        alone = self.graph_ is None
        return Settings(
            num_steps=0 if alone else self.num_steps,
            alpha=1.0 if alone else self.alpha,
            beta=1.0 if alone else self.beta,
            k=self.k,
            threshold=self.threshold,
            hidden_channels=self.hidden_channels,
            dropout=self.dropout,
            input_dropout=self.input_dropout,
            lambda_rt=0.0 if alone else self.lambda_rt,
            lambda_cs=0.0 if alone else self.lambda_cs,
            score="cosine",
            lr=self.lr,
            decay1=self.decay1,
            decay2=self.decay2,
            epochs=self.epochs,
            patience=self.patience,
        )

    def predict_proba(self, X: Any, graph: Any = None) -> np.ndarray:
        """Return probabilities of :attr:`classes_`, [m, C], by the MLP partner, or by both branches with a graph."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        if graph is None or self.graph_ is None:
            return self._partner(X)
        part = NodeGraph.of(graph, X.shape[0])
        if not part.same(self.graph_):  # a graph among these rows alone
            rows, x, nodes = np.arange(X.shape[0]), _features(X), part.rows
        else:
            new = ~np.isin(part.rows, self.graph_.rows)
            nodes = np.concatenate([self.graph_.rows, part.rows[new]])
            place = {int(row): i for i, row in enumerate(nodes)}
            rows = np.array([place[int(row)] for row in part.rows])
            given = _features(X).to_dense()
            x = torch.cat([self.model_.data.x.to_dense(), given[torch.from_numpy(new)]])
            x[torch.from_numpy(rows)] = given  # rows of fit too: their features may have changed
        edge_index, edge_weight = part.among(nodes)
        data = GraphRecord(x=x, edge_index=edge_index, edge_weight=edge_weight, num_nodes=len(nodes))
        return self.model_.predict(self.device, data).both[torch.from_numpy(rows)].double().numpy()

    def _partner(self, X: Any) -> np.ndarray:
        """Return the softmax of Eq. 11 in double precision, so that the result of a row depends on that row alone."""
        member = self.model_.members[0]
        total = np.zeros((X.shape[0], len(self.classes_)))
        for weight1, weight2 in zip(member.weight1.double().numpy(), member.weight2.double().numpy(), strict=True):
            own, bias = weight1[: X.shape[1]], weight1[X.shape[1]]  # the features of neighbours are unknown here
            logits = np.maximum(X @ own + bias, 0) @ weight2
            exponent = np.exp(logits - logits.max(1, keepdims=True))
            total += exponent / exponent.sum(1, keepdims=True)
        return total / len(member.weight1)

    def predict(self, X: Any, graph: Any = None) -> np.ndarray:
        """Return the likeliest class of each row; see :meth:`predict_proba`."""
        guess = self.predict_proba(X, graph).argmax(1)  # first, since it raises where nothing is fitted
        return self.classes_[guess]

    def score(self, X: Any, y: Any, sample_weight: Any = None, graph: Any = None) -> float:
        """Return the accuracy over the labelled rows."""
        from sklearn.metrics import accuracy_score

        y = np.asarray(y)
        known = _labelled(y)
        weight = None if sample_weight is None else np.asarray(sample_weight)[known]
        return float(accuracy_score(y[known], self.predict(X, graph)[known], sample_weight=weight))

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write the fitted classifier to a folder, without pickle."""
        check_is_fitted(self)
        graph_nodes = None if self.graph_ is None else self.graph_.shape[1]
        return save_model(self.model_, folder, {"estimator": self._plain(), "graph_nodes": graph_nodes})

    @staticmethod
    def load(folder: str | os.PathLike[str]) -> "GPNNClassifier":
        """Return the classifier that :meth:`save` wrote, with the graph among the rows of its fit."""
        model = load_model(folder)
        if "estimator" not in model.card:
            raise InputError(f"{folder}: must be a folder of GPNNClassifier.save; gpnn predict reads those of gpnn fit")
        classifier = GPNNClassifier(**model.card["estimator"])
        classifier.model_, classifier.classes_ = model, np.array(model.classes)
        classifier.n_features_in_ = int(model.data.x.shape[1])
        classifier.graph_ = None
        nodes = model.card["graph_nodes"]
        if nodes is not None:
            classifier.graph_ = NodeGraph.restored(model.data, np.array(model.ids), nodes)
        return classifier


def _labelled(y: Any) -> NDArray[np.bool_]:
    return np.array([str(label) not in UNLABELLED for label in y])


def _features(X: Any) -> Tensor:
    return to_torch(X) if sparse.issparse(X) else torch.tensor(X, dtype=torch.float32)


def _stopping_folds(y: Tensor, seed: int) -> list[Fold]:
    """Return folds for early stopping; with very few labels, one fold that trains and stops on all of them."""
    known = (y >= 0).nonzero().squeeze(-1)
    if known.numel() < 2 * STOPPING_FOLDS:
        return [Fold(known, known)]
    return folds(y, known, seed, STOPPING_FOLDS)


class NodeGraph:
    """An adjacency matrix [n, n] that keeps the whole graph when it is indexed by rows.

    ``A[rows]`` no longer holds which rows of the matrix they were; ``NodeGraph(A)[rows]`` does.

    Args:
        adjacency: SciPy sparse or dense, square; (i, j) is the weight of the edge j → i.
        rows: the selected nodes, all if not given.
    """

    def __init__(self, adjacency: Any, rows: NDArray[np.int64] | None = None) -> None:
        full = sparse.csr_array(adjacency)
        if full.shape[0] != full.shape[1]:
            raise InputError(
                f"graph has shape {full.shape}: must be square, one row and column per node; in cross-validation, "
                "which indexes matrices by rows, pass graphpartner.NodeGraph(adjacency)"
            )
        wrong = full.data[~(np.isfinite(full.data) & (full.data >= 0))]
        if wrong.size:
            raise InputError(f"graph has an edge of weight {wrong[0]}: weights must be finite and not negative")
        self.full = full
        self.known: NDArray[np.int64] | None = None  # the nodes whose edges are known, None: all
        self.rows = np.arange(full.shape[0]) if rows is None else np.asarray(rows)

    @staticmethod
    def of(graph: Any, num_rows: int) -> "NodeGraph":
        """Return an adjacency as a NodeGraph, checked against the number of rows of X."""
        made = graph if isinstance(graph, NodeGraph) else NodeGraph(graph)
        if len(made) != num_rows:
            raise InputError(f"graph has {len(made)} nodes: must have {num_rows}, one per row of X")
        return made

    @staticmethod
    def restored(data: GraphRecord, rows: NDArray[np.int64], num_nodes: int) -> "NodeGraph":
        """Return a selection of rows of a graph of n nodes, of which only the edges among these rows are known."""
        weight = data.get("edge_weight")
        values = np.ones(data.edge_index.shape[1]) if weight is None else weight.numpy()
        source, target = data.edge_index.numpy()
        entries = (values, (rows[target], rows[source]))
        made = NodeGraph(sparse.coo_array(entries, shape=(num_nodes, num_nodes)), rows)
        made.known = rows
        return made

    @property
    def shape(self) -> tuple[int, int]:
        """The number of selected nodes, and of all nodes."""
        return len(self.rows), self.full.shape[0]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, key: Any) -> "NodeGraph":
        if isinstance(key, tuple):
            key = key[0]
        return NodeGraph(self.full, self.rows[key])

    def same(self, other: "NodeGraph") -> bool:
        """Return whether both select from one graph, as far as the other is known: then equal rows are equal nodes."""
        if self.full.shape != other.full.shape:
            return False
        if other.known is not None:
            ours, theirs = (each.among(other.known) for each in (self, other))
            return all(
                (one is None and two is None) or (one is not None and two is not None and torch.equal(one, two))
                for one, two in zip(ours, theirs, strict=True)
            )
        return self.full is other.full or (self.full != other.full).nnz == 0

    def among(self, nodes: NDArray[np.int64]) -> tuple[Tensor, Tensor | None]:
        """Return the edges among these nodes, numbered in this order, in both directions, and weights if not all 1."""
        cut = self.full[nodes][:, nodes]
        both = cut.maximum(cut.T).tocsr()
        both.sort_indices()
        both = both.tocoo()
        edge_index = torch.from_numpy(np.stack([both.col, both.row]).astype(np.int64))
        weight = torch.tensor(both.data, dtype=torch.float32)
        return edge_index, None if bool((weight == 1).all()) else weight
