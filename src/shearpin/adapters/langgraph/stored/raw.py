"""LangGraph's stored values, taken apart no further than needed.

Contract: what is not a message of a conversation stays as the bytes that it is. No class of a
user's is looked for, imported or built; whatever it is, it is written back byte for byte.

LangGraph keeps values as MessagePack; objects are extensions, whose payload begins with the names
of module and class.
"""

from __future__ import annotations

from typing import Any, Final, cast

import ormsgpack
from langchain_core.messages import BaseMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

__all__ = [
    "Exact",
    "Opaque",
    "is_conversation",
    "members",
    "messages_in",
    "pack",
    "packed_message",
    "unpack",
]

_OPTION: Final = ormsgpack.OPT_NON_STR_KEYS
_PYDANTIC: Final = 5
_MESSAGES: Final = "langchain_core.messages."
_plain: Final = JsonPlusSerializer()


class Opaque:
    """A stored object that nobody has looked into."""

    __slots__ = ("data", "tag")

    def __init__(self, tag: int, data: bytes) -> None:
        self.tag, self.data = tag, data

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Opaque) and (self.tag, self.data) == (other.tag, other.data)

    def __hash__(self) -> int:
        return hash((self.tag, self.data))


def unpack(data: bytes) -> Any:
    """A stored value, with objects left as they are."""
    return ormsgpack.unpackb(data, ext_hook=Opaque, option=_OPTION)


def pack(value: Any) -> bytes:
    """The inverse of `unpack`."""
    return ormsgpack.packb(value, default=_extension, option=_OPTION)


def _extension(value: object) -> ormsgpack.Ext:
    if isinstance(value, Opaque):
        return ormsgpack.Ext(value.tag, value.data)
    raise TypeError(f"no stored form of {type(value).__name__}")


def is_conversation(value: object) -> bool:
    """Whether a stored value is a list of LangChain's messages, and of nothing else."""
    if not isinstance(value, list) or not value:
        return False
    return all(_is_message(item) for item in cast("list[object]", value))


def _is_message(item: object) -> bool:
    if not isinstance(item, Opaque) or item.tag != _PYDANTIC:
        return False
    parts = unpack(item.data)
    return isinstance(parts, list) and str(cast("list[Any]", parts)[0]).startswith(_MESSAGES)


def messages_in(value: object) -> list[BaseMessage] | None:
    """The messages of a stored conversation, or a stored message alone; None where it is neither.

    They are LangChain's own, which are built without looking for anybody's code.
    """
    if _is_message(value):
        value = [value]
    if not is_conversation(value):
        return None
    found = cast("list[object]", _plain.loads_typed(("msgpack", pack(value))))
    if not all(isinstance(message, BaseMessage) for message in found):
        return None
    return cast("list[BaseMessage]", found)


def members(value: object) -> frozenset[str]:
    """The members of a stored set of texts; none where it is something else."""
    parts = unpack(value.data) if isinstance(value, Opaque) else None
    if not isinstance(parts, list) or len(cast("list[Any]", parts)) < 3:
        return frozenset()
    held = cast("list[Any]", parts)[2]
    return frozenset(map(str, cast("list[Any]", held))) if isinstance(held, list) else frozenset()


def packed_message(message: BaseMessage) -> Any:
    """A new message in its stored form."""
    return unpack(_plain.dumps_typed(message)[1])


class Exact:
    """A serializer for savers: writes what `unpack` gave as it was."""

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """The stored form."""
        return "msgpack", pack(obj)

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """What was stored."""
        kind, value = data
        return unpack(value) if kind == "msgpack" else None
