import pytest

from graphpartner.compiled import HAS_NUMBA, compiled


def test_loops_lie_beside_what_they_speed_up():
    pytest.importorskip("numba")
    assert HAS_NUMBA
    loops = {"train.dropout": ("drop", "dropped_product", "dropped_gradient"), "train.adam": ("adam",)}
    loops |= {"model.spmm": ("spmm_power",), "model.divergence": ("divergence",)}
    for module, names in loops.items():
        found = compiled(f"graphpartner.{module}", "cpu")
        assert all(callable(getattr(found, name)) for name in names)


def test_none_where_there_are_none():
    assert compiled("graphpartner.train.dropout", "meta") is None
    assert compiled("graphpartner.errors", "cpu") is None
    assert compiled("graphpartner.model.divergence", "cuda") is None  # plain torch is as fast there
