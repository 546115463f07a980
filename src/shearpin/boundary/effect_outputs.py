"""What came of an effect, kept beside its record.

Contract: what JSON can say is given back as JSON says it; all else as a shortened text of it with
secrets masked, and marked as such. Nothing is unpickled.
"""

from __future__ import annotations

import json
from typing import Any, Final, NamedTuple, cast

from shearpin.core.messages import shorten
from shearpin.stores.base import Store

__all__ = ["Kept", "keep", "recall"]

_MOST_BYTES: Final = 65_536
_MOST_CHARACTERS: Final = 4000


class Kept(NamedTuple):
    """An output as it was kept.

    Attributes:
        output: the value, or a text of it.
        exact: whether it is the value.
        is_error: whether it tells of an error.
    """

    output: object
    exact: bool
    is_error: bool


def keep(store: Store, key: str, output: object, is_error: bool, ttl_seconds: float) -> None:
    """Put an output into a store. Raises `StoreError` where that fails."""
    try:
        text = json.dumps([output, True, is_error], ensure_ascii=False, separators=(",", ":"))
        fits = len(text.encode()) <= _MOST_BYTES
    except (TypeError, ValueError, RecursionError):  # no JSON, or no UTF-8
        text, fits = "", False
    if not fits:
        masked = shorten(_text_of(output), _MOST_CHARACTERS)
        masked = masked.encode("utf-8", "replace").decode()
        text = json.dumps([masked, False, is_error], ensure_ascii=False)
    store.put(key, text, ttl_seconds=ttl_seconds)


def recall(store: Store, key: str) -> Kept | None:
    """What was kept under a key. Raises `StoreError` where the store fails."""
    entry = store.get(key)
    if entry is None:
        return None
    output, exact, is_error = cast("list[Any]", json.loads(entry.value))
    return Kept(output, bool(exact), bool(is_error))


def _text_of(output: object) -> str:
    """Its text; a foreign object may fail to have one."""
    try:
        return str(output)
    except Exception as error:
        return f"<{type(output).__name__} without a text: {type(error).__name__}>"
