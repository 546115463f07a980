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

__all__ = ["DIGEST_LENGTH", "canonical_json", "digest", "digest_text"]

DIGEST_LENGTH = 10
"""Hex characters kept of a SHA-256: 40 bits, for windows of some dozens of entries."""

_encode = json.JSONEncoder(
    sort_keys=True, ensure_ascii=False, separators=(",", ":"), check_circular=False
).encode
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_MAX_DEPTH = 32


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
    if _is_plain(value):
        return _encode(value)
    try:
        return _encode(_normal(value, 0))
    except (TypeError, ValueError, RecursionError):
        return _encode(_opaque(value))


def _is_plain(value: object) -> bool:
    """True for the common case that needs no normalising: a flat mapping of short plain values."""
    if type(value) is not dict:
        return False
    for key, item in value.items():  # pyright: ignore[reportUnknownVariableType]
        if type(key) is not str or not key.isascii():  # pyright: ignore[reportUnknownArgumentType]
            return False
        kind = type(item)  # pyright: ignore[reportUnknownArgumentType,reportUnknownVariableType]
        if kind is str:
            if not item.isascii():  # pyright: ignore[reportUnknownMemberType]
                return False
        elif kind is not int and kind is not bool and item is not None:
            return False
    return True


def _normal(value: object, depth: int) -> object:
    if value is None or value is True or value is False:
        return value
    if isinstance(value, str):
        return value if value.isascii() else unicodedata.normalize("NFC", value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < 2**53 else value
    if depth >= _MAX_DEPTH:
        return _opaque(value)
    if isinstance(value, Mapping):
        return _normal_mapping(value, depth)  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(value, (set, frozenset)):
        return sorted(_encode(_normal(item, depth + 1)) for item in value)  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, (list, tuple)):
        return [_normal(item, depth + 1) for item in value]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, (bytes, bytearray)):
        return {"bytes": sha256(value).hexdigest()[:DIGEST_LENGTH]}
    return _normal_object(value, depth)


def _normal_mapping(value: Mapping[object, object], depth: int) -> dict[str, object]:
    out: dict[str, object] = {}
    for key, item in value.items():
        if isinstance(key, str):
            name = key if key.isascii() else unicodedata.normalize("NFC", key)
        else:
            name = _encode(_normal(key, depth + 1))
        out[name] = _normal(item, depth + 1)
    return out


def _normal_object(value: object, depth: int) -> object:
    fields = getattr(value, "__dict__", None) or getattr(value, "__slots__", None)
    if isinstance(fields, dict):
        return {type(value).__qualname__: _normal_mapping(fields, depth + 1)}  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(fields, Iterable) and not isinstance(fields, str):
        named = {str(name): getattr(value, str(name), None) for name in fields}  # pyright: ignore[reportUnknownVariableType,reportUnknownArgumentType]
        return {type(value).__qualname__: _normal_mapping(named, depth + 1)}  # pyright: ignore[reportArgumentType]
    return _opaque(value)


def _opaque(value: object) -> str:
    try:
        text = repr(value)
    except Exception:  # a foreign __repr__ may do anything
        text = "unprintable"
    return f"<{type(value).__qualname__} {_ADDRESS.sub('', text)[:200]}>"
