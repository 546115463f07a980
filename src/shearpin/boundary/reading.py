"""Read attributes of exceptions that are not ours.

Contract: nothing here raises, whatever an attribute does; what cannot be read is None.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

__all__ = [
    "Origin",
    "as_mapping",
    "called",
    "decoded",
    "name_of",
    "only_argument",
    "origins_of",
    "read",
    "read_path",
    "sequence_of",
    "status_number",
    "text_of",
    "whole_number",
]

_OF_TYPES = cast("Mapping[str, Any]", type.__dict__)
_STATUS = re.compile(r"\s*([1-5]\d\d)(?:\s+[A-Z][A-Za-z' -]{1,40})?\s*\Z")
"""A status as text, also with its phrase: `429 Too Many Requests`."""
_LONGEST = 4_000
"""Characters of a message that are looked at; the first line of interest is at its start."""
_LARGEST = 100_000
"""Characters of a body that are decoded."""


class Origin(NamedTuple):
    """Where a class comes from.

    Attributes:
        module: its module, empty where it has none.
        name: its own.
    """

    module: str
    name: str

    @property
    def root(self) -> str:
        """The package that the module is part of."""
        return self.module.partition(".")[0]


def origins_of(error: BaseException) -> list[Origin]:
    """The classes of an exception, the nearest first, whatever its metaclass makes of them."""
    bases = cast("tuple[type, ...]", _OF_TYPES["__mro__"].__get__(type(error)))
    return [Origin(_told(base, "__module__"), _told(base, "__name__")) for base in bases]


def name_of(error: BaseException) -> str:
    """The name of an exception's class."""
    return _told(type(error), "__name__")


def _told(kind: type, name: str) -> str:
    value = cast("object", _OF_TYPES[name].__get__(kind))
    return value if isinstance(value, str) else ""


def read(owner: object, name: str) -> object:
    """An attribute or key; None where there is none or it cannot be read."""
    try:
        if isinstance(owner, Mapping):
            return cast("Mapping[object, object]", owner).get(name)
        return cast("object", getattr(owner, name, None))
    except Exception:  # a property of foreign code: what it hides is as good as absent
        return None


def read_path(owner: object, *names: str) -> object:
    """An attribute or key of an attribute or key, and so on."""
    for name in names:
        if owner is None:
            return None
        owner = read(owner, name)
    return owner


def called(owner: object, name: str) -> object:
    """What a method without arguments returns; None where it cannot be called."""
    try:
        method = cast("object", getattr(owner, name, None))
        return method() if callable(method) else None
    except Exception:  # see `read`
        return None


def as_mapping(value: object) -> Mapping[object, object] | None:
    """The value where it is a mapping."""
    return cast("Mapping[object, object]", value) if isinstance(value, Mapping) else None


def sequence_of(value: object) -> Sequence[object]:
    """The first items of a list or tuple; none of anything else."""
    return cast("Sequence[object]", value)[:16] if isinstance(value, (list, tuple)) else ()


def decoded(value: object) -> Mapping[object, object] | None:
    """A mapping, also where it is still JSON text."""
    if isinstance(value, (str, bytes)) and value[:1] in ("{", b"{") and len(value) <= _LARGEST:
        try:
            value = cast("object", json.loads(value))
        except (ValueError, RecursionError):
            return None
    return as_mapping(value)


def only_argument(error: BaseException) -> object:
    """What an exception was made of, where that is one thing."""
    args = sequence_of(read(error, "args"))
    return args[0] if len(args) == 1 else None


def whole_number(value: object) -> int | None:
    """A whole number, also where it is an enum's; no truth values, no floats."""
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return int(value)


def status_number(value: object) -> int | None:
    """An HTTP status: 100 to 599, also as text with its phrase; None for anything else."""
    if isinstance(value, str):
        match = _STATUS.match(value)
        return int(match.group(1)) if match else None
    number = whole_number(value)
    return number if number is not None and 100 <= number <= 599 else None


def text_of(value: object) -> str:
    """The start of what an object says as text; empty where it cannot say it."""
    try:
        return str(value)[:_LONGEST]
    except Exception:  # a broken __str__ must not hide the failure that it belongs to
        return ""
