"""A graph on a device, the nodes under masks, and a problem restricted to labelled nodes."""

import numpy as np
import pytest
import torch

from graphpartner.kernels.hop_features import HopFeatures
from graphpartner.kernels.spmm import SparseMatrix
from graphpartner.system.errors import InputError
from graphpartner.training.batch import Batch
from graphpartner.training.prepared import (
    DeviceGraph,
    Labelled,
    PreparedGraph,
    count_classes,
    feature_matrix,
    labelled,
    prepare_graph,
    restrict_to_labelled,
)
from graphpartner.training.settings import Settings
from tests.reference import assert_near
from tests.training.graphs import toy
from tests.training.reference import enhanced

CPU = torch.device("cpu")
# mostly zero, a row of zeros, and numbers other than 0 and 1
X = torch.zeros(4, 8)
ROWS = torch.zeros(4, 8)


def as_dense(x: SparseMatrix | torch.Tensor) -> torch.Tensor:
    return x.csr.to_dense() if isinstance(x, SparseMatrix) else x


@pytest.mark.parametrize("given", [X, X.to_sparse_csr(), X.double()])
def test_features_raw_and_by_row(given: torch.Tensor) -> None:
    for form, expected in (("raw", X), ("row", ROWS)):
        result = feature_matrix(given, form, CPU)
        assert isinstance(result, SparseMatrix)
        assert result.csr.dtype == torch.float32
        assert torch.equal(as_dense(result), expected)
    assert torch.equal(as_dense(SparseMatrix(given)) if given.layout == torch.sparse_csr else given.float(), X)


def test_full_features_stay_dense() -> None:
    full = torch.arange(1.0, 13.0).reshape(3, 4)
    for given in (full, full.to_sparse_csr()):
        assert torch.equal(feature_matrix(given, "raw", CPU), full)
        torch.testing.assert_close(feature_matrix(given, "row", CPU), full / full.sum(1, keepdim=True))


@pytest.mark.parametrize("weighted", [False, True])
def test_every_matrix_of_a_graph(weighted: bool) -> None:
    data = toy()
    weight = torch.rand(data.edge_index.shape[1], generator=torch.Generator().manual_seed(0)) + 0.1
    A = torch.zeros(40, 40).double()
    A[data.edge_index[1], data.edge_index[0]] = weight.double() if weighted else 1.0
    if weighted:
        data.edge_weight = weight
    loops = A + torch.eye(40)
    graph = DeviceGraph(data, CPU)
    assert (graph.num_nodes, graph.num_features, graph.num_classes) == (40, 24, 3)
    assert_near(as_dense(graph.A), A, 1e-6)
    root = loops.sum(1).rsqrt()
    assert_near(as_dense(graph.P), root[:, None] * loops * root, 1e-6)
    assert_near(as_dense(graph.random_walk), loops / loops.sum(1)[:, None], 1e-6)
    assert graph.normalized("symmetric") is graph.P
    assert graph.normalized("row") is graph.random_walk
    assert_near(as_dense(graph.neighbor_mean), A / A.sum(1)[:, None].masked_fill(A.sum(1)[:, None] == 0, 1), 1e-6)
    root = A.sum(1).masked_fill(A.sum(1) == 0, 1).rsqrt()
    assert_near(as_dense(graph.symmetric), root[:, None] * A * root, 1e-6)
    assert_near(graph.edge_values, loops[graph.edges.target, graph.edges.source], 1e-6)


def test_matrices_are_computed_once_and_no_label_is_held() -> None:
    data = toy()
    graph, settings = DeviceGraph(data, CPU), Settings(threshold=0.3)
    assert graph.features("row") is graph.features("row") is not graph.features("raw")
    assert graph.propagation(settings) is graph.propagation(settings.replace(lr=0.5))
    assert graph.propagation(settings.replace(num_steps=2)).matrix is graph.propagation(settings).matrix
    plain = settings.replace(beta=1.0)
    assert graph.propagation(plain) is graph.propagation(plain.replace(k=5))
    assert graph.propagation(settings.replace(beta=0.2)).matrix is not graph.propagation(settings).matrix
    assert not any(value is data.y or value is data for value in vars(graph).values())


def test_prepare_enhances() -> None:
    data = toy()
    for changes in ({}, {"beta": 1.0}, {"beta": 0.0}, {"beta": 0.3, "k": 1, "threshold": 0.2}):
        settings = Settings(**{"threshold": 0.3, "num_steps": 7, **changes})
        problem = prepare_graph(data, settings, CPU)
        assert_near(problem.propagate.matrix.csr.to_dense(), enhanced(data, settings), 1e-6)
        assert problem.propagate.num_steps == 7
        assert problem.num_nodes == 40
        assert problem.num_classes == 3
        assert problem.neighbors is None


def test_prepare_computes_the_neighbor_mean() -> None:
    data = toy()
    mean = as_dense(prepare_graph(data, Settings(positives="neighbors"), CPU).neighbors)
    A = np.zeros((40, 40))
    A[data.edge_index[1], data.edge_index[0]] = 1
    assert_near(mean, A / np.maximum(A.sum(1, keepdims=True), 1), 1e-6)
    assert mean[0].abs().sum() == 0  # the isolated node


def test_edge_weights_weigh_the_topology() -> None:
    data = toy()
    data.edge_weight = torch.full((data.edge_index.shape[1],), 3.0)
    settings = Settings(beta=1.0, positives="neighbors")
    heavy, plain = prepare_graph(data, settings, CPU), prepare_graph(toy(), settings, CPU)
    A = torch.eye(40).double()
    A[data.edge_index[1], data.edge_index[0]] = 3
    root = A.sum(1).sqrt()
    assert_near(heavy.propagate.matrix.csr.to_dense(), A / root[:, None] / root, 1e-6)
    torch.testing.assert_close(as_dense(heavy.neighbors), as_dense(plain.neighbors))  # equal weights, the same means


def test_classes_are_counted_under_the_masks_only() -> None:
    data = toy()
    assert count_classes(data) == 3
    data.num_classes = 9
    assert count_classes(data) == 9
    del data.num_classes
    data.y = torch.where(data.test_mask, 77, data.y)
    assert count_classes(data) == 3


MASK = torch.tensor([False, True, False, True, True, False])
Y = torch.tensor([-5, 2, -5, 0, 1, 99])


def test_labelled_under_one_mask() -> None:
    nodes = labelled(MASK, Y, 7, "train_mask", CPU)
    assert nodes.index.tolist() == [1, 3, 4]
    assert nodes.target.tolist() == [2, 0, 1]
    assert nodes.weight is None
    assert nodes.of(torch.tensor([3, 5])).index.tolist() == [1, 3, 4]


def test_labelled_under_masks_of_equal_size() -> None:
    masks = torch.stack([MASK, MASK.roll(-1)])
    nodes = labelled(masks, Y, 2, "train_mask", CPU)
    assert nodes.index.tolist() == [[1, 3, 4], [0, 2, 3]]
    assert nodes.target.tolist() == [[2, 0, 1], [-5, -5, 0]]
    assert nodes.weight is None
    assert nodes.of(torch.tensor([1])).index.tolist() == [[0, 2, 3]]


def test_labelled_under_masks_of_unequal_size() -> None:
    masks = torch.stack([MASK, torch.tensor([False, False, False, True, False, False])])
    nodes = labelled(masks, Y, 2, "train_mask", CPU)
    assert nodes.index.tolist() == [[1, 3, 4], [3, 3, 3]]  # filled up with a node under the mask
    assert nodes.target.tolist() == [[2, 0, 1], [0, 0, 0]]
    torch.testing.assert_close(nodes.weight, torch.tensor([[1 / 3, 1 / 3, 1 / 3], [1.0, 0.0, 0.0]]))
    cut = nodes.of(torch.tensor([1]))
    assert cut.weight.tolist() == [[1.0, 0.0, 0.0]]


def test_one_split_per_seed() -> None:
    with pytest.raises(InputError, match="val_mask holds 2 splits for 3 seeds"):
        labelled(torch.stack([MASK, MASK]), Y, 3, "val_mask", CPU)


@pytest.mark.parametrize("sparse", [True, False])
def test_an_mlp_learns_the_same_from_labelled_rows_alone(sparse: bool) -> None:
    data = toy()
    settings = Settings(beta=1.0, num_steps=0, alpha=1.0, lambda_rt=0.0, lambda_cs=0.0, input_dropout=0, dropout=0)
    whole = prepare_graph(data, settings, CPU)
    dense = as_dense(whole.X)
    X = SparseMatrix(dense.to_sparse_csr()) if sparse else dense
    whole = PreparedGraph(X, whole.propagate, None, whole.num_nodes, whole.num_classes)
    train, val = (
        Labelled(index, data.y[index], None) for index in (torch.tensor([30, 3, 7, 21]), torch.tensor([9, 3]))
    )
    part, near, far = restrict_to_labelled(whole, train, val)
    assert part.num_nodes == 5  # node 3 is in both
    assert torch.equal(as_dense(part.X)[near.index], dense[train.index])
    assert torch.equal(as_dense(part.X)[far.index], dense[val.index])
    batches = Batch(whole, [settings], [0], train, val), Batch(part, [settings], [0], near, far)
    for _ in range(5):
        for batch in batches:
            batch.step()
    (loss, right), (other_loss, other_right) = (batch.validate() for batch in batches)
    torch.testing.assert_close(loss, other_loss)
    assert torch.equal(right, other_right)
    for weight, other in zip(batches[0].weights, batches[1].weights, strict=True):
        torch.testing.assert_close(weight, other)


def test_features_of_neighbours_need_all_nodes() -> None:
    whole = prepare_graph(toy(), Settings(beta=1.0), CPU)
    hops = HopFeatures(whole.X, whole.propagate.matrix, 1, whole.X.shape[1])
    known = Labelled(torch.tensor([0]), torch.tensor([0]), None)
    with pytest.raises(InputError, match="need all nodes"):
        restrict_to_labelled(PreparedGraph(hops, whole.propagate, None, 40, 3), known, known)
