import dataclasses
import json
from typing import Literal, get_args, get_origin, get_type_hints

import pytest

from graphpartner.system.errors import InputError
from graphpartner.training.settings import PER_REPLICA, Settings, parse

FIELDS = {item.name: item for item in dataclasses.fields(Settings)}
TYPES = get_type_hints(Settings)
NUMBERS = [name for name, item in FIELDS.items() if "low" in item.metadata]
WORDS = [name for name, kind in TYPES.items() if get_origin(kind) is Literal]


def test_every_field_is_a_number_with_a_range_a_word_or_a_switch() -> None:
    assert set(NUMBERS) | set(WORDS) | {name for name, kind in TYPES.items() if kind is bool} == set(FIELDS)


def test_defaults_are_the_papers() -> None:
    settings = Settings()
    assert (settings.k, settings.temperature, settings.threshold) == (3, 2.0, 0.4)
    assert (settings.score, settings.positives) == ("inner", "self")
    assert (settings.epochs, settings.patience) == (1000, 100)


@pytest.mark.parametrize("name", NUMBERS)
def test_ranges_are_kept(name: str) -> None:
    low, high = FIELDS[name].metadata["low"], FIELDS[name].metadata["high"]
    for value in (low, high):
        assert getattr(Settings(**{name: value}), name) == value
    for value in (low - 1, high + 1):
        with pytest.raises(InputError, match=rf"^{name} = {value}.*between"):
            Settings(**{name: value})
    for value in ("3", None, True, [1], float("nan"), float("inf")):
        with pytest.raises(InputError, match=f"^{name} = "):
            Settings(**{name: value})


@pytest.mark.parametrize("name", [name for name in NUMBERS if TYPES[name] is int])
def test_whole_numbers(name: str) -> None:
    value = getattr(Settings(**{name: 3.0}), name)
    assert value == 3
    assert type(value) is int
    with pytest.raises(InputError, match=f"{name} = 2.5: must be a whole number"):
        Settings(**{name: 2.5})


def test_whole_numbers_are_numbers() -> None:
    assert type(Settings(alpha=1).alpha) is float


@pytest.mark.parametrize("name", WORDS)
def test_words(name: str) -> None:
    known = get_args(TYPES[name])
    for word in known:
        assert getattr(Settings(**{name: word}), name) == word
    with pytest.raises(InputError, match=f"{name} = 'nonsense': must be one of {', '.join(known)}"):
        Settings(**{name: "nonsense"})


def test_switches() -> None:
    assert Settings(separate_dropout=True).separate_dropout is True
    with pytest.raises(InputError, match="separate_dropout = 1: must be true or false"):
        Settings(separate_dropout=1)


def test_replace() -> None:
    before = Settings()
    after = before.replace(alpha=0.3, num_steps=5)
    assert (after.alpha, after.num_steps, after.lr) == (0.3, 5, before.lr)
    assert before.alpha != 0.3
    with pytest.raises(InputError, match=r"unknown setting 'aplha': must be one of .*alpha"):
        before.replace(aplha=0.3)
    with pytest.raises(InputError, match="alpha = 2"):
        before.replace(alpha=2)
    with pytest.raises(dataclasses.FrozenInstanceError):
        before.alpha = 0.5


def test_asdict_survives_json() -> None:
    settings = Settings(alpha=0.3, score="cosine", separate_dropout=True)
    assert Settings(**json.loads(json.dumps(settings.asdict()))) == settings


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("alpha", "0.3", 0.3),
        ("lr", "1e-2", 0.01),
        ("num_steps", "12", 12),
        ("separate_dropout", "true", True),
        ("separate_dropout", "False", False),
        ("score", "cosine", "cosine"),
    ],
)
def test_parse(name: str, text: str, value: object) -> None:
    parsed = parse(name, text)
    assert parsed == value
    assert type(parsed) is type(value)
    assert getattr(Settings(**{name: parsed}), name) == value


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("alpha", "much", "alpha = 'much': must be a number"),
        ("num_steps", "2.5", "num_steps = '2.5': must be a whole number"),
        ("separate_dropout", "1", "separate_dropout = '1': must be true or false"),
        ("speed", "1", "unknown setting 'speed'"),
    ],
)
def test_parse_names_what_is_wrong(name: str, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse(name, text)


def test_what_may_differ_between_replicas_is_a_number() -> None:
    assert set(PER_REPLICA) - {"num_steps"} <= {name for name in NUMBERS if TYPES[name] is float}
    assert not {"beta", "threshold"} & set(PER_REPLICA)  # another graph
