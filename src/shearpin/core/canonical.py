"""One text and one digest for values that mean the same.

Contract: equal values give equal digests whatever the key order, whichever way a number is written
(`1`, `1.0`) and whichever unicode form a string has; `True` and `1` differ. Never raises: what JSON
cannot say is named by its type and its `repr` without memory addresses.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from typing_extensions import TypeIs

__all__ = ["DIGEST_LENGTH", "canonical_json", "digest", "digest_text"]

DIGEST_LENGTH = 10
"""Hex characters kept of a SHA-256: 40 bits, for windows of some dozens of entries."""

_ENCODER = json.JSONEncoder(
    sort_keys=True, ensure_ascii=False, separators=(",", ":"), check_circular=False
)
_encode = _ENCODER.encode
_quote = json.encoder.encode_basestring
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_MAX_DEPTH = 32
_MAX_LAYERS = 3


def digest_text(text: str) -> str:
    """The digest of a text as it stands."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:DIGEST_LENGTH]


def digest(value: object) -> str:
    """The digest of any JSON-like value.

    Example:
        >>> digest({"a": 1, "b": 2.0}) == digest({"b": 2, "a": 1.0})
        True
    """
    return digest_text(canonical_json(value))


def canonical_json(value: object) -> str:
    """Canonical JSON of any value; see the module's contract."""
    try:
        if _is_plain(value):
            return _plain_json(value)
        return _encode(_normal(value, []))
    except (
        Exception
    ):  # a foreign mapping or object may do anything, and very long integers have no text
        return _encode(_opaque(value))


def _is_plain(value: object) -> TypeIs[dict[str, str | int | None]]:
    """True for the common case that needs no normalising: a flat mapping of plain ASCII values."""
    if type(value) is not dict:
        return False
    for key, item in cast("dict[object, object]", value).items():
        if type(key) is not str or not key.isascii():
            return False
        if type(item) is str:
            if not item.isascii():
                return False
        elif type(item) is not int and type(item) is not bool and item is not None:
            return False
    return True


def _plain_json(value: dict[str, str | int | None]) -> str:
    """What the encoder gives for a plain value, at half of its price: made for every call."""
    parts: list[str] = []
    for key in sorted(value):
        item = value[key]
        if type(item) is str:
            word = _quote(item)
        elif item is None:
            word = "null"
        else:
            word = ("true" if item else "false") if type(item) is bool else str(item)
        parts.append(f"{_quote(key)}:{word}")
    return "{" + ",".join(parts) + "}"


def _normal(value: object, path: list[int], layers: int = 0) -> object:
    """A value as JSON has it. `path` holds the ids of the containers that it is in."""
    if value is None or value is True or value is False:
        return value
    if isinstance(value, str):
        return value if value.isascii() else unicodedata.normalize("NFC", value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    if isinstance(value, (bytes, bytearray)):
        return {"bytes": sha256(value).hexdigest()[:DIGEST_LENGTH]}
    if id(value) in path:
        return "<circular>"
    if len(path) >= _MAX_DEPTH:
        return _opaque(value)
    path.append(id(value))
    found = _normal_container(value, path, layers)
    path.pop()
    return found


def _normal_container(value: object, path: list[int], layers: int) -> object:
    if isinstance(value, Mapping):
        return _normal_mapping(cast("Mapping[object, object]", value), path, layers)
    if isinstance(value, (set, frozenset)):
        items = cast("Iterable[object]", value)
        return sorted(_encode(_normal(item, path, layers)) for item in items)
    if isinstance(value, (list, tuple)):
        return [_normal(item, path, layers) for item in cast("Iterable[object]", value)]
    return _normal_object(value, path, layers)


def _normal_mapping(
    value: Mapping[object, object], path: list[int], layers: int
) -> dict[str, object]:
    out: dict[str, object] = {}
    for key, item in value.items():
        if isinstance(key, str):
            name = key if key.isascii() else unicodedata.normalize("NFC", key)
        else:
            name = _encode(_normal(key, path, layers))
        out[name] = _normal(item, path, layers)
    return out


def _normal_object(value: object, path: list[int], layers: int) -> object:
    """An object by its attributes: a few layers of them, for an object may lead to all others."""
    if isinstance(value, type) or callable(value) or layers >= _MAX_LAYERS:
        return _opaque(value)
    fields: object = getattr(value, "__dict__", None) or getattr(value, "__slots__", None)
    if isinstance(fields, dict):
        named = cast("dict[object, object]", fields)
    elif isinstance(fields, Iterable) and not isinstance(fields, str):
        names = [str(name) for name in cast("Iterable[object]", fields)]
        named = {name: getattr(value, name, None) for name in names}
    else:
        return _opaque(value)
    plain = _normal_mapping(cast("Mapping[object, object]", named), path, layers + 1)
    return {type(value).__qualname__: plain}


def _opaque(value: object) -> str:
    try:
        text = repr(value)
    except Exception:  # a foreign __repr__ may do anything
        text = "unprintable"
    return f"<{type(value).__qualname__} {_ADDRESS.sub('', text)[:200]}>"
