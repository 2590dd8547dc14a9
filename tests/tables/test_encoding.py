import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfVectorizer

from graphpartner.system.errors import InputError
from graphpartner.tables.choose_encoding import fit_encoder
from graphpartner.tables.encoding import FeatureEncoder
from graphpartner.tables.parse_cells import as_numbers
from graphpartner.tables.problems import Problems
from graphpartner.tables.read_graph import read_graph
from graphpartner.tables.read_table import Table, frame_table

WORDS = ["graph", "partner", "network", "deep", "smooth", "label", "node", "edge"]


def table(**columns: Any) -> Table:
    found = frame_table(pd.DataFrame(columns), "t", Problems())
    assert found is not None
    return found


def fit(**columns: Any) -> tuple[FeatureEncoder, np.ndarray, list[str]]:
    """Return the encoder of all columns, their features as a dense array, and the notes."""
    here, problems = table(**columns), Problems()
    notes: list[str] = []
    encoder = fit_encoder(here, list(columns), problems, notes)
    x = encoder.transform(here, problems)
    problems.stop_if_any()
    return encoder, x.to_dense().numpy() if x.layout == torch.sparse_csr else x.numpy(), notes


def kinds(encoder: FeatureEncoder) -> dict[str, str]:
    return {code.name: code.kind for code in encoder.columns}


def sentences(n: int, seed: int = 0, length: int = 6) -> list[str]:
    generator = np.random.default_rng(seed)
    return [" ".join(generator.choice(WORDS, length)) + f" w{row % 7}" for row in range(n)]


def test_what_a_column_is() -> None:
    n = 200
    generator = np.random.default_rng(0)
    encoder, x, notes = fit(
        number=generator.normal(size=n),
        text_number=[f"{value:.2f}" for value in generator.normal(size=n)],
        comma=[f"{value:.2f}".replace(".", ",") for value in generator.normal(size=n)],
        binary=generator.integers(0, 2, n),
        boolean=generator.integers(0, 2, n).astype(bool),
        text_flag=generator.choice(["TRUE", "false"], n),
        category=generator.choice(["a", "b", "c d e f"], n),
        text=sentences(n),
        date=pd.date_range("2020-01-01", periods=n).astype(str),
        code=[f"u{row}" for row in range(n)],
        constant=np.ones(n),
        empty=[None] * n,
        declared=pd.Series(generator.integers(1, 4, n)).astype("category"),
    )
    assert kinds(encoder) == {
        "number": "number",
        "text_number": "number",
        "comma": "number",
        "binary": "passthrough",
        "boolean": "passthrough",
        "text_flag": "passthrough",
        "category": "category",
        "text": "text",
        "date": "number",
        "declared": "category",
    }
    assert encoder.num_features == x.shape[1] == 4 + 3 + 3 + 3 + len(WORDS) + 7
    text = "\n".join(notes)
    assert "1 column left out (a different word in nearly every row, like an id): 'code'" in text
    assert "1 column left out (always the same): 'constant'" in text
    assert "1 column left out (empty): 'empty'" in text
    np.testing.assert_allclose(x[:, 2].mean(), 0, atol=1e-6)
    np.testing.assert_allclose(x[:, 2].std(), 1, rtol=1e-5)


@settings(max_examples=50)
@given(st.lists(st.one_of(st.none(), st.floats(-1e6, 1e6)), min_size=3, max_size=30))
def test_numbers_are_standardised(cells: list[Any]) -> None:
    known = np.array([cell for cell in cells if cell is not None])
    encoder, x, _ = fit(a=pd.Series(cells, dtype=float), b=np.arange(len(cells)) + 0.5)
    if "a" not in kinds(encoder) or kinds(encoder)["a"] == "passthrough":
        assert known.size == 0 or np.isin(known, (0, 1)).all() or (known == known[0]).all()
        return
    values = np.array([known.mean() if cell is None else cell for cell in cells])
    expected = (values - known.mean()) / (known.std() or 1.0)
    np.testing.assert_allclose(x[:, 0], expected, rtol=1e-4, atol=1e-5)
    if known.size < len(cells):
        assert x[:, 1].tolist() == [float(cell is None) for cell in cells]


def test_text_is_tf_idf() -> None:
    documents = sentences(300)
    encoder, x, _ = fit(text=documents)
    expected = TfidfVectorizer(sublinear_tf=True).fit(documents)
    assert list(encoder.columns[0].words) == list(expected.get_feature_names_out())
    np.testing.assert_allclose(x, expected.transform(documents).toarray(), rtol=1e-5)


def test_the_most_frequent_words_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphpartner.tables.choose_encoding.MAX_WORDS", 3)
    documents = ["one two three"] * 3 + [
        "one two rare words",
        "one two other words",
        "one odd words",
        "once is here now",
    ]
    encoder, _, _ = fit(text=[f"{text} x{row}" for row, text in enumerate(documents)])
    assert encoder.columns[0].words == ("one", "three", "two")


def test_a_bag_of_words_stays_sparse() -> None:
    generator = np.random.default_rng(0)
    counts = generator.poisson(0.03, (2000, 600)).astype(float)
    columns = {f"w{column}": counts[:, column] for column in range(600)}
    encoder, x, notes = fit(**columns)
    assert encoder.sparse
    assert set(kinds(encoder).values()) == {"passthrough"}
    np.testing.assert_array_equal(x, counts[:, counts.any(axis=0)])
    assert any("600 numeric columns kept as they are" in note for note in notes)
    frequent = generator.integers(1, 3, 2000)  # a word in every row belongs to the bag, a price does not
    encoder, _, _ = fit(**columns, frequent=frequent, price=frequent * 99.5)
    assert kinds(encoder)["frequent"] == "passthrough"
    assert kinds(encoder)["price"] == "number"
    encoder, x, _ = fit(few=counts[:, 0] + counts[:, 1] * 2)  # one such column is a number like others
    assert kinds(encoder) == {"few": "number"}
    assert not encoder.sparse


def test_stored_and_restored() -> None:
    nodes = pd.DataFrame({"id": range(150), "text": sentences(150), "c": ["a", "b", None] * 50})
    nodes["number"] = np.where(np.arange(150) == 3, np.nan, np.arange(150) / 7)
    own = read_graph(nodes)
    stored = json.loads(json.dumps(own.encoder.asdict()))
    arrays = {name: array.copy() for name, array in own.encoder.arrays().items()}
    again = FeatureEncoder.restore(stored, arrays)
    assert again.asdict() == own.encoder.asdict()
    assert torch.equal(read_graph(nodes, encoder=again).data.x, own.data.x)
    assert torch.equal(read_graph(nodes.iloc[20:30], encoder=again).data.x, own.data.x[20:30])
    plain = read_graph(nodes[["id"]], pd.DataFrame({"u": range(9), "v": range(1, 10)})).encoder
    restored = FeatureEncoder.restore(json.loads(json.dumps(plain.asdict())), {})
    assert restored.structure is not None
    assert restored.num_features == restored.structure.width == plain.num_features
    with pytest.raises(InputError, match="damaged"):
        FeatureEncoder.restore(stored, {})
    with pytest.raises(InputError, match="format = 9: must be 1"):
        FeatureEncoder.restore(stored | {"format": 9}, arrays)
    with pytest.raises(InputError, match=r"idf\.0 = 14 weights: must be 15"):
        FeatureEncoder.restore(stored, {name: array[:-1] for name, array in arrays.items()})


def test_new_nodes() -> None:
    nodes = pd.DataFrame({"id": range(6), "a": [1.0, 2, 3, 4, 5, 6], "c": list("ppqqpq")})
    own = read_graph(nodes)
    new = pd.DataFrame({"c": ["z", "p"], "id": ["n", "m"], "a": [None, "3.5"], "more": ["x", "y"]})
    x = read_graph(new, encoder=own.encoder).data.x
    np.testing.assert_allclose(x, [[0, 0, 0], [0, 1, 0]])
    with pytest.raises(
        InputError, match=r"table: no columns 'a', 'c', which the model was fitted on; its columns are 'id', 'more'"
    ):
        read_graph(new[["id", "more"]], encoder=own.encoder)
    with pytest.raises(InputError, match=r"row 2: 'many' in column 'a' is no finite number"):
        read_graph(new.assign(a=["1", "many"]), encoder=own.encoder)


def test_a_few_cells_that_are_no_numbers_are_mistakes() -> None:
    cells = [str(value) for value in range(100)]
    cells[41] = "4O"
    with pytest.raises(InputError, match=r"t, row 42: '4O' in column 'a' is no finite number"):
        fit(a=cells)
    for row in range(0, 100, 5):
        cells[row] = "unknown" if row % 2 else "none"
    assert kinds(fit(a=cells, b=np.arange(100))[0])["b"] == "number"


@pytest.mark.parametrize("kind", [str, float])
def test_numbers_that_no_feature_can_hold_are_refused(kind: type) -> None:
    encoder, _, _ = fit(a=list(map(kind, ["1", "2.5", "3", "4"])))
    problems = Problems()
    encoder.transform(table(a=list(map(kind, ["2", "1e39", "3"]))), problems)
    with pytest.raises(InputError, match=r"row 2: '1e\+?39' in column 'a' is too large to compute with"):
        problems.stop_if_any()
    with pytest.raises(InputError, match=r"row 2: '1e\+?300' in column 'a' is too large"):
        fit(a=list(map(kind, ["1", "1e300", "3", "4"])))


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (["741", "4,039", "16,770", "1,234,567.5"], [741, 4039, 16770, 1234567.5]),
        (["1", "2", "3,5", "4"], [1, 2, 3.5, 4]),
        (["0,125", "2,250", "3", "1,000"], [0.125, 2.25, 3, 1]),
        (["-1,5", "+2,25", "", "3"], [-1.5, 2.25, np.nan, 3]),
    ],
)
def test_what_commas_mean_is_decided_by_all_cells(cells: list[Any], values: list[float]) -> None:
    found = as_numbers(pd.Series(cells))
    assert found is not None
    np.testing.assert_array_equal(found.values, values)
    assert not found.bad.any()


def test_commas_mean_to_new_nodes_what_they_meant_at_the_fit() -> None:
    for cells, expected in ((["1,5", "2,25", "3", "8"], 4.039), (["741", "4,039", "16,770"], 4039)):
        encoder, _, notes = fit(a=cells)
        (code,) = encoder.columns
        assert any("commas are read as" in note for note in notes)
        restored = FeatureEncoder.restore(encoder.asdict(), encoder.arrays())
        problems = Problems()
        x = restored.transform(table(a=["4,039", "3"]), problems)
        np.testing.assert_allclose(x[0, 0] * code.scale + code.mean, expected, rtol=1e-6)
        restored.transform(table(a=["1,2,3"]), problems)
        with pytest.raises(InputError, match="'1,2,3' in column 'a' is no finite number"):
            problems.stop_if_any()
