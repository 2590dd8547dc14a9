import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from graphpartner.enhance import features, join, plan
from graphpartner.enhance.join import attribute_graph
from graphpartner.system.errors import InputError

from .reference import KERNELS, join_by, slow_attribute_graph

PATH = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])  # 0 – 1 – 2 – 3
WORDS = torch.tensor([[1.0, 1, 0, 0], [1, 0, 0, 0], [0, 1, 1, 0], [1, 1, 1, 1]])
HALF = 2**-0.5


@st.composite
def graphs(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """Draw small graphs with loops, duplicates, one-way edges, isolated nodes and zero rows."""
    n = draw(st.integers(1, 9))
    d = draw(st.integers(1, 5))
    node = st.integers(0, n - 1)
    edges = draw(st.lists(st.tuples(node, node), max_size=20))
    if draw(st.booleans()):
        edges += [(j, i) for i, j in edges]
    value = {
        "binary": st.sampled_from([0.0, 0.0, 1.0]),
        "counts": st.sampled_from([0.0, 0.0, 1.0, 2.0, 3.0, 7.0, 500.0]),
        "signed": st.sampled_from([0.0, 1.0, -1.0, 2.0, -3.0]),
        "huge": st.sampled_from([0.0, 1.0, 2.0**30, 2.0**50 + 2**28, -(2.0**45)]),
        "real": st.floats(-4, 4, width=32).filter(lambda v: v == 0 or abs(v) > 1e-3),
    }[draw(st.sampled_from(["binary", "counts", "signed", "huge", "real"]))]
    x = draw(st.lists(st.lists(value, min_size=d, max_size=d), min_size=n, max_size=n))
    return np.array(x), np.array(edges, dtype=np.int64).reshape(-1, 2).T


thresholds = st.sampled_from([0.1, 0.4, 0.5, 0.6, 0.75, 0.8, 1.0, 0.30000000000000004, 0.7071067811865476])
hops = st.sampled_from([0, 1, 2, 3, 5])


def assert_is(result: Tensor, expected: np.ndarray) -> None:
    dense = result.to_dense().numpy()
    assert ((dense != 0) == (expected != 0)).all()
    np.testing.assert_allclose(dense, expected, atol=2e-7)
    for row in range(expected.shape[0]):
        columns = result.col_indices()[result.crow_indices()[row] : result.crow_indices()[row + 1]]
        assert (columns.diff() > 0).all()


@pytest.mark.parametrize("kernel", KERNELS)
def test_four_nodes_by_hand(kernel: str) -> None:
    one = join_by(kernel, WORDS, PATH, 1, 0.4).to_dense()
    expected = torch.tensor(
        [
            [1.0, HALF, 0.0, 0.0],
            [HALF, 1.0, 0.0, 0.0],  # x_1 and x_2 share nothing
            [0.0, 0.0, 1.0, HALF],
            [0.0, 0.0, HALF, 1.0],
        ]
    )
    torch.testing.assert_close(one, expected)
    three = join_by(kernel, WORDS, PATH, 3, 0.5).to_dense()
    expected[0, 2] = expected[2, 0] = 0.5  # one word of two each: exactly at the threshold
    expected[0, 3] = expected[3, 0] = HALF
    expected[1, 3] = expected[3, 1] = 0.5
    torch.testing.assert_close(three, expected)


@pytest.mark.parametrize("kernel", KERNELS)
@settings(max_examples=120)
@given(graph=graphs(), k=hops, threshold=thresholds)
def test_every_kernel_equals_the_slow_join(
    kernel: str, graph: tuple[np.ndarray, np.ndarray], k: int, threshold: float
) -> None:
    x, edges = graph
    result = join_by(kernel, torch.from_numpy(x), torch.from_numpy(edges), k, threshold)
    assert_is(result, slow_attribute_graph(x, edges, k, threshold))


@settings(max_examples=60)
@given(graph=graphs(), k=hops, threshold=thresholds)
def test_sparse_and_dense_rows_agree(graph: tuple[np.ndarray, np.ndarray], k: int, threshold: float) -> None:
    x, edges = torch.from_numpy(graph[0]), torch.from_numpy(graph[1])
    expected = slow_attribute_graph(graph[0], graph[1], k, threshold)
    assert_is(attribute_graph(x, edges, k, threshold), expected)
    assert_is(attribute_graph(x.to_sparse_csr(), edges, k, threshold), expected)


def random_graph(kind: str, n: int = 300, d: int = 90, edges: int = 900) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(7)
    x = (torch.rand(n, d, generator=generator) < 0.2).float()
    if kind == "counts":
        x *= torch.randint(1, 6, (n, d), generator=generator)
    if kind == "real":
        x *= torch.randn(n, d, generator=generator)
    if kind == "dense":
        x = torch.randn(n, d, generator=generator) + 0.5
    edge_index = torch.randint(0, n, (2, edges), generator=generator)
    return x, torch.cat([edge_index, edge_index.flip(0)], dim=1)


@pytest.mark.parametrize("kind", ["binary", "counts", "real", "dense"])
@pytest.mark.parametrize("directed", [False, True])
def test_kernels_agree_on_a_larger_graph(kind: str, directed: bool) -> None:
    x, edge_index = random_graph(kind)
    if directed:
        edge_index = edge_index[:, : edge_index.shape[1] // 2]
    first = join_by("scipy/products", x, edge_index, 3, 0.25)
    assert first._nnz() > 1.2 * x.shape[0]
    for kernel in KERNELS:
        other = join_by(kernel, x, edge_index, 3, 0.25)
        assert torch.equal(first.crow_indices(), other.crow_indices())
        assert torch.equal(first.col_indices(), other.col_indices())
        torch.testing.assert_close(first.values(), other.values(), rtol=0, atol=2e-7)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("threshold", [0.25, 0.5, 0.75, 1.0])
def test_long_binary_rows(kernel: str, threshold: float) -> None:
    """1,500 features: rows of 4, 8 or 16 words out of a small topic, so that ties at these thresholds abound."""
    generator = torch.Generator().manual_seed(3)
    x = torch.zeros(60, 1500)
    for row in range(60):
        size = (4, 8, 16)[row % 3]
        topic = torch.randperm(20, generator=generator)[:size] * 70 + 9 * (row % 2)
        x[row, topic] = 1.0
    edge_index = torch.randint(0, 60, (2, 200), generator=generator)
    result = join_by(kernel, x, edge_index, 2, threshold)
    used = x[:, x.any(dim=0)]  # columns of zeros change no cosine, and the reference is slow
    assert_is(result, slow_attribute_graph(used.numpy().astype(np.float64), edge_index.numpy(), 2, threshold))


@pytest.mark.parametrize("kernel", KERNELS)
def test_little_memory_gives_the_same_result(kernel: str) -> None:
    x, edge_index = random_graph("counts")
    plenty, tiny = join_by(kernel, x, edge_index, 3, 0.3), join_by(kernel, x, edge_index, 3, 0.3, memory=50_000)
    assert torch.equal(plenty.col_indices(), tiny.col_indices())
    assert torch.equal(plenty.values(), tiny.values())


@pytest.mark.parametrize("kind", ["binary", "counts", "real", "dense"])
def test_without_numba_the_result_is_the_same(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x, edge_index = random_graph(kind)
    expected = attribute_graph(x, edge_index, 3, 0.25)
    for module in (plan, features):
        monkeypatch.setattr(module, "HAS_NUMBA", False)
    result = attribute_graph(x, edge_index, 3, 0.25)
    assert torch.equal(result.col_indices(), expected.col_indices())
    torch.testing.assert_close(result.values(), expected.values(), rtol=0, atol=2e-7)
    pairs = torch.arange(300).numpy(), torch.arange(300).flip(0).numpy()
    rows = x.double()
    np.testing.assert_allclose(features.read_features(x).dots(*pairs), (rows * rows.flip(0)).sum(1).numpy())


def test_renaming_the_nodes_renames_the_result() -> None:
    x, edge_index = random_graph("counts")
    edge_index = edge_index[:, :1000]
    order = torch.randperm(x.shape[0], generator=torch.Generator().manual_seed(1))
    renamed = torch.empty_like(order)
    renamed[order] = torch.arange(order.numel())
    before = attribute_graph(x, edge_index, 2, 0.3).to_dense()
    after = attribute_graph(x[order], renamed[edge_index], 2, 0.3).to_dense()
    assert torch.equal(after, before[order][:, order])


def test_weights_of_edges_and_repetition_do_not_matter() -> None:
    messy = torch.cat([PATH, PATH[:, :3], torch.tensor([[0, 3], [0, 3]])], dim=1)
    assert torch.equal(attribute_graph(WORDS, messy).to_dense(), attribute_graph(WORDS, PATH).to_dense())


def test_rows_receive() -> None:
    one_way = torch.tensor([[0, 1, 2], [1, 2, 3]])
    dense = attribute_graph(torch.ones(4, 2), one_way, k=2).to_dense()
    assert dense[2].tolist() == [1, 1, 1, 0]  # 0 reaches 2 in two steps, 3 does not
    assert dense[0].tolist() == [1, 0, 0, 0]


@pytest.mark.parametrize("kernel", KERNELS)
@settings(max_examples=40)
@given(graph=graphs(), top=st.integers(0, 4))
def test_top_keeps_the_largest(kernel: str, graph: tuple[np.ndarray, np.ndarray], top: int) -> None:
    x, edges = torch.from_numpy(graph[0]), torch.from_numpy(graph[1])
    everything = join_by(kernel, x, edges, 3, 0.1).to_dense()
    expected = torch.zeros_like(everything)
    for i, row in enumerate(everything):
        others = [j for j in range(row.numel()) if j != i and row[j] != 0]
        for j in [i, *sorted(others, key=lambda j: (-float(row[j]), j))[:top]]:
            expected[i, j] = row[j]
    assert torch.equal(join_by(kernel, x, edges, 3, 0.1, top=top).to_dense(), expected)


def test_extreme_numbers_keep_their_cosine() -> None:
    x = torch.tensor([[1.5e300, 1.5e300], [2.5e-300, 2.5e-300], [1.5, -1.5], [0.5, 0.5]], dtype=torch.float64)
    dense = attribute_graph(x, PATH).to_dense()
    torch.testing.assert_close(dense[0], torch.tensor([1.0, 1, 0, 1]))


def test_progress_counts_rows() -> None:
    calls: list[tuple[int, int]] = []
    attribute_graph(WORDS, PATH, progress=lambda done, total: calls.append((done, total)))
    assert calls[-1] == (4, 4)


def test_no_nodes_and_no_edges() -> None:
    none = torch.empty(2, 0, dtype=torch.long)
    assert attribute_graph(torch.ones(0, 3), none).shape == (0, 0)
    assert torch.equal(attribute_graph(WORDS, none).to_dense(), torch.eye(4))
    assert torch.equal(attribute_graph(torch.zeros(4, 0), PATH).to_dense(), torch.eye(4))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("k", -1),
        ("k", 1.5),
        ("k", True),
        ("threshold", 0.0),
        ("threshold", 1.1),
        ("threshold", float("nan")),
        ("top", -1),
        ("memory", 0),
        ("memory", 1.5),
    ],
)
def test_wrong_arguments_are_named(name: str, value: object) -> None:
    with pytest.raises(InputError, match=rf"^{name} = {value!r}: must be "):
        attribute_graph(WORDS, PATH, **{name: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [float("nan"), float("inf")])
def test_features_must_be_finite(wrong: float) -> None:
    x = WORDS.clone()
    x[2, 1] = wrong
    with pytest.raises(InputError, match="finite"):
        attribute_graph(x, PATH)
    with pytest.raises(InputError, match="finite"):
        attribute_graph(x.to_sparse_csr(), PATH)


def test_edges_must_name_rows() -> None:
    with pytest.raises(InputError, match="edge_index = 0 → 4 at position 0: must be nodes 0 to 3"):
        attribute_graph(WORDS, torch.tensor([[0], [4]]))
    with pytest.raises(InputError, match="edge_index"):
        attribute_graph(WORDS, torch.tensor([0, 1]))


def test_a_result_that_would_not_fit_is_refused_before_it_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    x, edge_index = random_graph("binary")
    monkeypatch.setattr(join, "output_memory", lambda memory, device: 10_000)
    with pytest.raises(InputError, match=r"top=.*threshold"):
        attribute_graph(x, edge_index, threshold=0.1)
    assert attribute_graph(x, edge_index, threshold=0.1, top=1)._nnz() <= 600
