"""What a tool call gave back, as plain values that a store can keep, and again as it was.

Contract: an answer comes back word for word, under the id of the call that asks now; a command with
plain updates and messages, too. Artifacts that are no plain values are left out. What has no plain
form raises TypeError. Nothing is unpickled, and no class is looked up by a name from the store.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langgraph.types import Command

__all__ = ["pack", "unpack"]

_KIND = "__kind__"
_MESSAGES: dict[str, type[BaseMessage]] = {
    "ai": AIMessage,
    "human": HumanMessage,
    "system": SystemMessage,
    "tool": ToolMessage,
}


def pack(value: object) -> object:
    """A result as plain values.

    Raises:
        TypeError: it has no plain form.
    """
    if isinstance(value, BaseMessage):
        return _message(value)
    if isinstance(value, Command):
        command = cast("Command[Any]", value)
        goto: object = command.goto
        if not (isinstance(goto, str) or goto == ()) or command.resume is not None:
            raise TypeError(f"a command that goes to {goto!r} cannot be kept")
        update = pack(command.update)
        return {_KIND: "command", "update": update, "goto": goto or None, "graph": command.graph}
    if isinstance(value, Mapping):
        entries = cast("Mapping[object, object]", value)
        if _KIND in entries or not all(isinstance(key, str) for key in entries):
            raise TypeError("a mapping with keys that are no texts cannot be kept")
        return {str(key): pack(each) for key, each in entries.items()}
    if isinstance(value, (list, tuple)):
        return [pack(each) for each in cast("list[object]", value)]
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    raise TypeError(f"{type(value).__name__} has no plain form")


def unpack(value: object, call: str) -> object:
    """A result that was packed; `call` is the id that its answer is given under.

    Raises:
        ValueError, KeyError, TypeError: it is none.
    """
    if isinstance(value, list):
        return [unpack(each, call) for each in cast("list[object]", value)]
    if not isinstance(value, dict):
        return value
    entries = cast("dict[str, Any]", value)
    kind = entries.get(_KIND)
    if kind is None:
        return {key: unpack(each, call) for key, each in entries.items()}
    if kind == "command":
        return Command(
            update=unpack(entries["update"], call),
            goto=entries["goto"] or (),
            graph=entries["graph"],
        )
    fields = {key: each for key, each in entries.items() if key != _KIND}
    if kind == "tool":
        fields["tool_call_id"] = call
    return _MESSAGES[str(kind)](**fields)


def _message(message: BaseMessage) -> dict[str, object]:
    if type(message) not in _MESSAGES.values():
        raise TypeError(f"{type(message).__name__} has no plain form")
    content: object = message.content  # pyright: ignore[reportUnknownMemberType]
    packed: dict[str, object] = {_KIND: message.type, "content": pack(content)}
    if message.name:
        packed["name"] = message.name
    if isinstance(message, ToolMessage):
        packed["status"] = message.status
        artifact: object = message.artifact
        if artifact is not None and _is_plain(artifact):
            packed["artifact"] = artifact
    elif isinstance(message, AIMessage) and message.tool_calls:
        packed["tool_calls"] = pack(message.tool_calls)
    return packed


def _is_plain(value: object) -> bool:
    try:
        return bool(json.loads(json.dumps(value)) == value)
    except (TypeError, ValueError, RecursionError):
        return False
