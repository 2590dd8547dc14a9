"""The scikit-learn estimator: the checks of scikit-learn, cross-validation with a graph, files without pickle."""

import numpy as np
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import graphpartner as gp
from graphpartner.fitting.model_folder import load_model
from graphpartner.system.errors import InputError

# Checks that do not hold, each for a reason:
EXCEPTIONS = {
    "check_classifiers_classes": "uses −1 as a class, which here says that a row has no label",
}
QUICK = {"epochs": 60, "device": "cpu", "random_state": 0}


def planted(n=120, seed=0):
    """Three classes that features hardly separate, and edges within classes."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    X = rng.normal(size=(n, 8)) + 0.5 * np.eye(3, 8)[y]
    edge = np.triu(rng.random((n, n)) < np.where(y[:, None] == y, 0.15, 0.005), 1)
    return X, y, sparse.csr_array((edge | edge.T).astype(float))


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.mark.slow
def test_passes_the_checks_of_scikit_learn():
    results = check_estimator(
        gp.GPNNClassifier(**QUICK | {"epochs": 30, "lr": 0.1, "hidden_channels": 16}),
        expected_failed_checks=EXCEPTIONS,
        on_fail="warn",
    )
    failed = {each["check_name"] for each in results if each["status"] == "failed"}
    assert failed == set()
    assert {each["check_name"] for each in results if each["status"] == "xfail"} == set(EXCEPTIONS)


def test_the_graph_helps():
    X, y, A = planted()
    hidden = np.where(np.arange(120) % 2, -1, y)
    held = hidden == -1
    alone = gp.GPNNClassifier(**QUICK).fit(X, hidden)
    both = gp.GPNNClassifier(**QUICK).fit(X, hidden, graph=A)
    assert alone.classes_.tolist() == both.classes_.tolist() == [0, 1, 2]
    assert (both.predict(X, graph=A)[held] == y[held]).mean() > 0.9
    assert (both.predict(X, graph=A)[held] == y[held]).mean() > (alone.predict(X)[held] == y[held]).mean() + 0.1
    np.testing.assert_allclose(both.predict_proba(X, graph=A).sum(1), 1, atol=1e-5)


def test_same_seed_same_answer_and_clone():
    X, y, A = planted()
    one = gp.GPNNClassifier(**QUICK, num_runs=2).fit(X, y, graph=A)
    other = clone(one).fit(X, y, graph=gp.NodeGraph(A))
    np.testing.assert_allclose(one.predict_proba(X, graph=A), other.predict_proba(X, graph=A), atol=1e-6)
    assert one.get_params()["num_runs"] == 2


def test_partner_answers_without_a_graph():
    X, y, A = planted()
    fitted = gp.GPNNClassifier(**QUICK).fit(X, y, graph=A)
    whole = fitted.predict_proba(X)
    np.testing.assert_allclose(fitted.predict_proba(X[3:4]), whole[3:4], atol=1e-12)
    isolated = fitted.predict_proba(X, graph=sparse.csr_array(A.shape))  # l steps of the identity change nothing
    np.testing.assert_allclose(isolated, whole, atol=1e-4)


@pytest.mark.usefixtures("routing")
def test_cross_validation_and_grid_search_take_a_graph():
    X, y, A = planted()
    asking = gp.GPNNClassifier(**QUICK).set_fit_request(graph=True).set_score_request(graph=True)
    with_graph = cross_val_score(asking, X, y, cv=3, params={"graph": gp.NodeGraph(A)}, error_score="raise")
    without = cross_val_score(gp.GPNNClassifier(**QUICK), X, y, cv=3)
    assert with_graph.mean() > without.mean() + 0.1
    search = GridSearchCV(asking, {"num_steps": [0, 3]}, cv=3, error_score="raise").fit(X, y, graph=gp.NodeGraph(A))
    assert search.best_params_ == {"num_steps": 3}
    with pytest.raises(InputError, match=r"NodeGraph\(adjacency\)"):
        cross_val_score(asking, X, y, cv=3, params={"graph": A}, error_score="raise")


@pytest.mark.usefixtures("routing")
def test_pipeline():
    X, y, A = planted()
    asking = gp.GPNNClassifier(**QUICK).set_fit_request(graph=True).set_score_request(graph=True)
    line = make_pipeline(StandardScaler(), asking).fit(100 * X, y, graph=A)
    assert line.score(100 * X, y, graph=A) > 0.9


def test_save_and_load(tmp_path):
    X, y, A = planted()
    words = np.array(["ash", "elm", "oak"])[y]
    fitted = gp.GPNNClassifier(**QUICK).fit(sparse.csr_array(X), words, graph=A)
    loaded = gp.GPNNClassifier.load(fitted.save(tmp_path / "model"))
    assert loaded.get_params() == fitted.get_params()
    assert loaded.predict(X).tolist() == fitted.predict(X).tolist()
    np.testing.assert_array_equal(loaded.predict_proba(X, graph=A), fitted.predict_proba(X, graph=A))
    assert set(loaded.predict(X)) <= {"ash", "elm", "oak"}
    (tmp_path / "model" / "weights.safetensors").write_bytes(b"nothing")
    with pytest.raises(InputError, match=r"weights\.safetensors"):
        load_model(tmp_path / "model")


@pytest.mark.parametrize(
    ("graph", "message"), [(np.ones((4, 4)), "must have 120"), (np.ones((120, 4)), "must be square")]
)
def test_a_wrong_graph(graph, message):
    X, y, _ = planted()
    with pytest.raises(InputError, match=message):
        gp.GPNNClassifier(**QUICK).fit(X, y, graph=graph)


def test_rows_of_the_fitted_graph_are_answered_by_the_features_they_have_now():
    X, y, A = planted()
    fitted = gp.GPNNClassifier(**QUICK).fit(X, y, graph=A)
    other = X[:, ::-1].copy()
    np.testing.assert_array_equal(fitted.predict_proba(X, graph=A), fitted.predict_proba(X, graph=gp.NodeGraph(A)))
    assert np.abs(fitted.predict_proba(other, graph=A) - fitted.predict_proba(X, graph=A)).max() > 0.1
    alone = sparse.csr_array((120, 120))
    fitted = gp.GPNNClassifier(**QUICK).fit(X, y, graph=alone)
    np.testing.assert_allclose(fitted.predict_proba(other, graph=alone), fitted.predict_proba(other), atol=1e-6)


def test_a_loaded_classifier_knows_a_larger_graph_again(tmp_path):
    X, y, A = planted()
    graph, seen, new = gp.NodeGraph(A), np.arange(0, 110, 2), np.arange(1, 120, 2)
    fitted = gp.GPNNClassifier(**QUICK).fit(X[seen], y[seen], graph=graph[seen])
    loaded = gp.GPNNClassifier.load(fitted.save(tmp_path / "model"))
    expected = fitted.predict_proba(X[new], graph=graph[new])
    np.testing.assert_array_equal(loaded.predict_proba(X[new], graph=graph[new]), expected)
    altered = A.tolil()
    altered[seen[0], seen[1]] = altered[seen[1], seen[0]] = 3.0
    unrelated = gp.NodeGraph(altered.tocsr())
    assert np.abs(loaded.predict_proba(X[new], graph=unrelated[new]) - expected).max() > 0.05


def test_parameters_from_numpy_are_kept(tmp_path):
    X, y, A = planted()
    chosen = gp.GPNNClassifier(**QUICK | {"num_steps": np.int64(3), "alpha": np.float64(0.3)}).fit(X, y, graph=A)
    loaded = gp.GPNNClassifier.load(chosen.save(tmp_path / "model"))
    assert (loaded.num_steps, loaded.alpha) == (3, 0.3)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [("num_runs", 0, "num_runs = 0"), ("num_runs", 1.5, "num_runs = 1.5"), ("hops", -1, "hops = -1")],
)
def test_counts_are_whole_numbers(name, value, message):
    X, y, A = planted()
    with pytest.raises(InputError, match=f"{message}: must be a whole number"):
        gp.GPNNClassifier(**QUICK | {name: value}).fit(X, y, graph=A)


@pytest.mark.parametrize("weight", [-1.0, np.nan, np.inf])
def test_a_graph_has_weights_that_mean_something(weight):
    X, y, A = planted()
    with pytest.raises(InputError, match=f"graph has an edge of weight {weight}: weights must be finite and not neg"):
        gp.GPNNClassifier(**QUICK).fit(X, y, graph=A * weight)
