"""Check what a file holds against a dataclass, with pydantic; errors name the file, the key and the value."""

import json
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_type_hints

from graphpartner.system.errors import InputError

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError
    from pydantic_core import ErrorDetails

T = TypeVar("T")

EXPECTED = {
    "string_type": "text", "int_type": "a whole number", "int_from_float": "a whole number", "float_type": "a number",
    "bool_type": "true or false", "list_type": "a list", "dict_type": "keys and values",
    "dataclass_type": "keys and values", "finite_number": "a finite number",
}  # fmt: skip
"""What would be right, by pydantic's name of the error; for all others pydantic's own words."""


def read_yaml(path: Path) -> dict[str, Any]:
    """Return the keys and values of a YAML file."""
    import yaml

    try:
        content = yaml.safe_load(path.read_text("utf-8"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    except (yaml.YAMLError, UnicodeError) as error:
        raise InputError(f"{path}: must be a YAML file ({' '.join(str(error).split())})") from None
    if not isinstance(content, dict):
        raise InputError(f"{path}: must hold keys and values")
    return content


def check_content(kind: type[T], content: object, file: Path | str) -> T:
    """Return what a YAML file holds as an instance of a dataclass, whose fields may be dataclasses too.

    Types are strict: ``"1"``, ``true`` and infinity are no numbers. A whole number where a float is expected becomes
    one; annotate ``int | float`` to keep it as it is. A key that the dataclass does not have is an error.
    """
    return check_json(kind, json.dumps(content, default=str), file)


def check_json(kind: type[T], text: str | bytes, file: Path | str, more_keys: bool = False) -> T:
    """Return JSON text as an instance of a dataclass, or as a list of them; see :func:`check_content`.

    With ``more_keys`` the text may have keys that the dataclass does not have.
    """
    from pydantic import ValidationError

    try:
        adapter = _adapter(kind, more_keys)  # type: ignore[arg-type]  # a type is hashable
        # not validate_python: in strict mode that takes no mapping for a dataclass
        checked: T | None = adapter.validate_json(text, strict=True)
    except ValidationError as error:
        raise InputError(f"{file}: {_explain(error, kind, text)}") from None
    if checked is None:
        raise InputError(f"{file}: must hold keys and values")
    return checked


@cache
def _adapter(kind: Any, more_keys: bool) -> "TypeAdapter[Any]":
    from pydantic import ConfigDict, TypeAdapter

    # "| None" because pydantic refuses a configuration for a dataclass that stands alone
    return TypeAdapter(kind | None, config=ConfigDict(extra="ignore" if more_keys else "forbid", allow_inf_nan=False))


def _explain(invalid: "ValidationError", kind: type, text: str | bytes) -> str:
    """Return one sentence on one error: an unknown key if there is one, else the error that lies deepest."""
    errors = invalid.errors(include_url=False)
    if errors[0]["type"] == "json_invalid":
        return f"must be JSON ({errors[0]['ctx']['error']})"
    content = json.loads(text)
    places = [_place(error["loc"], content) for error in errors]
    unknown = [error["type"] == "unexpected_keyword_argument" for error in errors]
    error, place = max(zip(errors, places, strict=True), key=lambda pair: len(pair[1]))
    if any(unknown):
        error, place = errors[unknown.index(True)], places[unknown.index(True)]
    name = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place).removeprefix(".")
    if any(unknown):
        return f"unknown key {name}; must be one of {', '.join(_keys(kind, place[:-1]))}"
    if error["type"] == "missing":
        return f"the key {'.'.join(filter(None, (name, str(error['loc'][-1]))))} is missing"
    same = [other for other, its in zip(errors, places, strict=True) if its == place]
    expected = " or ".join(dict.fromkeys(_expected(other) for other in same))
    expected = expected.replace("a whole number or a number", "a number")
    return f"{f'{name} = ' if name else ''}{error['input']!r}: must be {expected}"


def _expected(error: "ErrorDetails") -> str:
    """Return what would be right in place of a value."""
    return EXPECTED.get(error["type"]) or str(error.get("ctx", {}).get("expected", error["msg"]))


def _place(loc: tuple[int | str, ...], content: Any) -> tuple[int | str, ...]:
    """Return the keys and indices that lead to an error, without the members of unions that pydantic names in them."""
    place: list[int | str] = []
    for part in loc:
        if part in (content if isinstance(content, dict) else range(len(content) if isinstance(content, list) else 0)):
            place.append(part)
            content = content[part]
    return tuple(place)


def _keys(kind: Any, place: tuple[int | str, ...]) -> list[str]:
    """Return the keys that the dataclass at a place has."""
    for part in place:
        kind = get_type_hints(kind)[str(part)] if is_dataclass(kind) else get_args(kind)[-1]
        if NoneType in get_args(kind):
            kind = get_args(kind)[0]
    return [field.name for field in fields(kind)] if is_dataclass(kind) else []
