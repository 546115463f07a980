"""What is said around the end of a run: the request for a last answer, and that answer made honest.

Contract: what is made here is accepted by strict providers, and names the run and its reason.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection
from typing import Any, cast

from langchain_core.messages import AIMessage, HumanMessage

from shearpin.adapters.messages import MARK, content_text, reason_of, without_calls
from shearpin.core.messages import wrap_up_text
from shearpin.core.settings import Settings
from shearpin.verdicts import Halt, Rollback

__all__ = ["as_last_word", "rollback_message", "with_calls", "wrap_up_message"]

_SPACE = uuid.UUID("4f0f6a57-6f3e-5a0b-8d57-6b0c93b8e2d1")
_ASKING = frozenset({"tool_use", "tool_call", "function_call", "server_tool_use"})


def wrap_up_message(run: str, halt: Halt, settings: Settings) -> HumanMessage:
    """The request for the last answer; it is lent, never saved."""
    text = wrap_up_text(halt.finding, halt.message, settings.language, settings.messages)
    return HumanMessage(content=text, id=str(uuid.uuid5(_SPACE, f"{run}:wrap-up")))


def rollback_message(run: str, due: Rollback) -> HumanMessage:
    """The note of what was tried and undone; it stays in the history, in place of that."""
    key = f"{run}:rollback:{due.finding.key}:{due.to_step}"
    return HumanMessage(
        content=due.message,
        id=str(uuid.uuid5(_SPACE, key)),
        response_metadata={MARK: {"event": "rollback", "run": run, **due.finding.summary()}},
    )


def as_last_word(run: str, message: AIMessage, halt: Halt) -> AIMessage | None:
    """A model's last answer with its tool calls struck out; None where nothing is left of it."""
    content: Any = message.content  # pyright: ignore[reportUnknownMemberType]
    if isinstance(content, list):
        content = [block for block in cast("list[Any]", content) if not _asks(block)]
    if not content_text(content).strip():
        return None
    told = {**message.response_metadata, MARK: {**reason_of(run, halt), "wrap_up": True}}
    return without_calls(message, content, response_metadata=told)


def with_calls(message: AIMessage, kept: Collection[str], *, text: bool = True) -> AIMessage:
    """A model's message with only some of its tool calls; `text` where its words stay as well."""
    content: Any = message.content  # pyright: ignore[reportUnknownMemberType]
    if isinstance(content, list):
        content = [
            block
            for block in cast("list[Any]", content)
            if (_id_of(block) in kept if _asks(block) else text)
        ]
    elif not text:
        content = ""
    extra: dict[str, Any] = dict(message.additional_kwargs)
    raw = extra.get("tool_calls")
    if isinstance(raw, list):
        extra["tool_calls"] = [it for it in cast("list[Any]", raw) if _id_of(it) in kept]
    return message.model_copy(
        update={
            "content": content,
            "tool_calls": [call for call in message.tool_calls if call["id"] in kept],
            "additional_kwargs": extra,
        }
    )


def _id_of(block: object) -> object:
    found = cast("dict[str, Any]", block) if isinstance(block, dict) else {}
    return found.get("call_id") or found.get("id")


def _asks(block: object) -> bool:
    return isinstance(block, dict) and cast("dict[str, Any]", block).get("type") in _ASKING
