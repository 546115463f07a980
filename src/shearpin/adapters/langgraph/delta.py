"""A digest of what a node wrote, in constant work.

Contract: two equal digests mean that the node had the same effect twice. Whatever cannot be said
cheaply (large values, foreign objects, several chunks) gets a digest of its own that equals
nothing: no evidence is better than false evidence. Message ids are left out, so that the same words
are the same; a value that a reducer merges into the state counts together with what it was merged
into.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from hashlib import sha256
from typing import Any, cast
from zlib import crc32

from langchain_core.messages import AIMessage, BaseMessage
from langgraph.types import Command
from pydantic import BaseModel

from shearpin.adapters.langgraph.speaking import is_many
from shearpin.core.detectors.oscillation import StateKey

__all__ = ["delta_of"]

_MOST_PARTS = 64
_WHOLE = 2048
_LONGEST = 65536
_TAIL = 8
_UNIQUE = itertools.count()


class _UnsayableError(Exception):
    """The value is too large or too foreign for a digest."""


class _Writer:
    """Collects the parts of a value, up to a limit."""

    __slots__ = ("left", "parts")

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.left = _MOST_PARTS

    def add(self, value: object) -> None:
        self.left -= 1
        if self.left < 0:
            raise _UnsayableError
        if value is None or isinstance(value, (bool, int, float)):
            self.parts.append(repr(value))
        elif isinstance(value, str):
            self.text(value)
        elif isinstance(value, BaseMessage):
            self.message(value)
        elif isinstance(value, Mapping):
            self.mapping(cast("Mapping[object, object]", value))
        elif isinstance(value, (list, tuple)):
            self.sequence(cast("list[object] | tuple[object, ...]", value))
        elif isinstance(value, BaseModel):
            self.mapping(cast("Mapping[object, object]", value.__dict__))
        elif is_dataclass(value) and not isinstance(value, type):
            self.mapping({field.name: getattr(value, field.name) for field in fields(value)})
        else:
            raise _UnsayableError

    def text(self, value: str) -> None:
        size = len(value)
        if size <= _WHOLE:
            self.parts.append(value)
        elif size <= _LONGEST:
            code = crc32(value.encode("utf-8", "surrogatepass"))
            self.parts.append(f"{size}:{code}:{value[:256]}:{value[-256:]}")
        else:
            raise _UnsayableError

    def mapping(self, value: Mapping[object, object]) -> None:
        if len(value) > self.left:
            raise _UnsayableError
        self.parts.append("{")
        for key in sorted(value, key=str) if len(value) > 1 else value:
            self.parts.append(str(key))
            self.add(value[key])
        self.parts.append("}")

    def sequence(self, value: list[object] | tuple[object, ...]) -> None:
        size = len(value)
        self.parts.append(f"[{size}")
        if (
            size > _TAIL
            and isinstance(value[0], BaseMessage)
            and isinstance(value[-1], BaseMessage)
        ):
            value = value[-_TAIL:]
        elif size > self.left:
            raise _UnsayableError
        for item in value:
            self.add(item)
        self.parts.append("]")

    def message(self, value: BaseMessage) -> None:
        self.parts.append(value.type)
        self.add(value.content)  # pyright: ignore[reportUnknownMemberType]
        if isinstance(value, AIMessage):
            for call in value.tool_calls:
                self.parts.append(call["name"])
                self.add(call["args"])


def delta_of(
    output: object, before: object, merged: frozenset[str], key: StateKey = None
) -> str | None:
    """The digest of a node's output; None where it wrote nothing.

    Args:
        output: what the node returned.
        before: the node's input, which shows the state that was merged into.
        merged: names of the channels with a reducer; messages are told by looking.
        key: what of the output the author counts as the state; None: all of it.
    """
    if key is not None:
        output = _keyed(output, key)
        merged = frozenset() if callable(key) else merged
    if output is None:
        return None
    writer = _Writer()
    try:
        for update in cast("list[object]", output) if is_many(output) else [output]:
            _add_update(writer, update, before, merged)
    except (_UnsayableError, RecursionError):
        return f"unique:{next(_UNIQUE)}"
    text = "\0".join(writer.parts)
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _keyed(output: object, key: StateKey) -> object:
    """What of a node's output the author counts as the state; None where there is none."""
    found: list[object] = []
    for part in cast("list[object]", output) if is_many(output) else [output]:
        update: object = cast("Any", part).update if isinstance(part, Command) else part
        if not isinstance(update, Mapping):
            update = getattr(update, "__dict__", None)
        if not isinstance(update, Mapping):
            continue
        held = cast("Mapping[str, object]", update)
        if callable(key):
            value = key(held)
            if value is not None:
                found.append(value)
        else:
            named = {name: held[name] for name in key or () if name in held}
            if named:
                found.append(named)
    return found or None


def _add_update(writer: _Writer, update: object, before: object, merged: frozenset[str]) -> None:
    if isinstance(update, Command):
        command = cast("Any", update)
        goto: object = command.goto
        targets = cast("list[object]", goto) if isinstance(goto, (list, tuple)) else [goto]
        for target in targets:
            node: object = getattr(target, "node", target)
            writer.add(node)
            if node is not target:
                writer.add(getattr(target, "arg", None))
        update = command.update
    writer.add(update)
    if isinstance(update, Mapping):
        for key in cast("Mapping[object, object]", update):
            if key in merged:
                _add_base(writer, cast("Mapping[object, object]", update)[key], before, str(key))


def _add_base(writer: _Writer, value: object, before: object, key: str) -> None:
    """What an update of a merged channel was merged into: its size or, for a scalar, its value."""
    if _speaks(value):
        return
    held = (
        cast("Mapping[object, object]", before).get(key, writer)
        if isinstance(before, Mapping)
        else getattr(before, key, writer)
    )
    if held is writer:
        raise _UnsayableError
    if isinstance(held, (list, tuple, dict, set, frozenset, str)):
        writer.add(len(cast("list[object]", held)))
    else:
        writer.add(held)


def _speaks(value: object) -> bool:
    first = cast("list[object]", value)[0] if isinstance(value, list) and value else None
    return isinstance(value if first is None else first, BaseMessage)
