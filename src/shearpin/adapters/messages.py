"""Reading and making chat messages, without knowing any graph.

Contract: reading never raises on odd messages of any provider; what is made here is accepted by
strict providers: every answer names its call, a last word has text and asks for nothing.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    RemoveMessage,
    ToolMessage,
)

from shearpin.events import ToolRequest, Usage
from shearpin.verdicts import Halt, Nudge

__all__ = [
    "MARK",
    "answer",
    "answer_id",
    "content_text",
    "has_genuine_turn",
    "is_last_word",
    "is_messages",
    "last_word",
    "last_word_id",
    "nudge_message",
    "reason_of",
    "removes",
    "request_for",
    "requests_of",
    "unanswered",
    "usage_in",
    "usage_of",
    "without_calls",
]

MARK = "shearpin"
"""The key under which our own messages carry their reason, in `response_metadata`."""

_SPACE = uuid.UUID("0d5b4d0e-6f9d-5c7a-8b57-3f1c2f5f5a10")


_CALLS = ("tool_calls", "function_call")


def without_calls(message: AIMessage, content: object, **more: object) -> AIMessage:
    """A copy of a model's answer with this content, all its tool calls struck out, and `more`."""
    held = message.additional_kwargs
    extra = {key: value for key, value in held.items() if key not in _CALLS}
    struck: dict[str, object] = {"tool_calls": [], "invalid_tool_calls": []}
    return message.model_copy(
        update={"content": content, **struck, "additional_kwargs": extra, **more}
    )


def content_text(content: object) -> str:
    """The prose in a message's content, which is a string or a list of blocks."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    parts: list[str] = []
    for block in cast("list[object]", content):
        if isinstance(block, str):
            parts.append(block)
        elif isinstance(block, dict):
            text = cast("dict[str, object]", block).get("text")
            if isinstance(text, str):
                parts.append(text)
    return "".join(parts)


def requests_of(message: BaseMessage) -> tuple[ToolRequest, ...]:
    """The tool calls that a model's message asks for, also those with unreadable arguments."""
    if not isinstance(message, AIMessage):
        return ()
    good = [
        ToolRequest(call["id"] or "", call["name"], call["args"]) for call in message.tool_calls
    ]
    bad = [
        ToolRequest(call["id"] or "", call["name"] or "", call["args"] or "")
        for call in message.invalid_tool_calls
    ]
    return (*good, *bad)


def usage_of(message: BaseMessage) -> Usage | None:
    """The tokens that a provider reported with a message; None where it reported none."""
    usage = getattr(message, "usage_metadata", None)
    if not isinstance(usage, Mapping):
        return None
    return usage_in(cast("Mapping[str, object]", usage))


def usage_in(numbers: Mapping[str, object]) -> Usage:
    """The tokens in a report of usage as LangChain writes it."""
    into = _part(numbers, "input_token_details")
    out = _part(numbers, "output_token_details")
    return Usage(
        input_tokens=_count(numbers, "input_tokens"),
        output_tokens=_count(numbers, "output_tokens"),
        cache_read_tokens=_count(into, "cache_read"),
        cache_write_tokens=_count(into, "cache_creation"),
        reasoning_tokens=_count(out, "reasoning"),
    )


def _part(numbers: Mapping[str, object], key: str) -> Mapping[str, object]:
    value = numbers.get(key)
    return cast("Mapping[str, object]", value) if isinstance(value, Mapping) else {}


def _count(numbers: Mapping[str, object], key: str) -> int:
    value = numbers.get(key)
    return value if isinstance(value, int) else 0


def is_messages(value: object) -> bool:
    """Whether a value is a non-empty list of chat messages, judged by its ends."""
    if not isinstance(value, list) or not value:
        return False
    items = cast("list[object]", value)
    return isinstance(items[0], BaseMessage) and isinstance(items[-1], BaseMessage)


def unanswered(messages: Sequence[object]) -> list[ToolRequest]:
    """The tool calls at the end of a history that have no answer yet; bounded by one round."""
    answered: set[str] = set()
    for message in reversed(messages):
        if isinstance(message, ToolMessage):
            answered.add(message.tool_call_id)
            continue
        if isinstance(message, AIMessage):
            return [request for request in requests_of(message) if request.id not in answered]
        return []
    return []


def request_for(call: str, messages: Sequence[object]) -> ToolRequest | None:
    """The tool call with a given id, in the newest message that asks for it."""
    for message in reversed(messages):
        if isinstance(message, AIMessage):
            for request in requests_of(message):
                if request.id == call:
                    return request
    return None


def answer(run: str, request: ToolRequest, text: str, times: int = 0) -> ToolMessage:
    """The answer to a call that was not run; `times` counts how often its id was used."""
    return ToolMessage(
        content=text,
        name=request.name,
        tool_call_id=request.id,
        status="error",
        id=answer_id(run, request.id, times),
    )


def answer_id(run: str, call: str, times: int = 0) -> str:
    """The id of our answer to a call: the same whoever gives it, so that none is given twice.

    Models may use an id again, and an answer must not take the place of an earlier one.
    """
    again = f":{times}" if times > 1 else ""
    return str(uuid.uuid5(_SPACE, f"{run}:answer:{call}{again}"))


def last_word(run: str, halt: Halt) -> AIMessage:
    """The honest last word of a stopped run."""
    return AIMessage(
        content=halt.message or f"Stopped: {halt.reason}.",
        id=last_word_id(run),
        response_metadata={MARK: reason_of(run, halt)},
    )


def reason_of(run: str, halt: Halt) -> dict[str, object]:
    """Why a run was stopped, for programs; `run` is how its report is found."""
    reason: dict[str, object] = {"reason": halt.reason, "run": run}
    if halt.finding is not None:
        reason["finding"] = halt.finding.family
        reason["evidence"] = dict(halt.finding.summary())
    return reason


def is_last_word(run: str, message: BaseMessage) -> bool:
    """Whether a message is how this run was ended, in our words or the model's."""
    if message.id == last_word_id(run):
        return True
    mark = cast("object", message.response_metadata.get(MARK))
    if not isinstance(message, AIMessage) or not isinstance(mark, Mapping):
        return False
    return cast("Mapping[str, object]", mark).get("run") == run


def last_word_id(run: str) -> str:
    """The id of a run's last word: the same in every graph of the tree."""
    return str(uuid.uuid5(_SPACE, f"{run}:last"))


def nudge_message(run: str, nudge: Nudge) -> HumanMessage:
    """A nudge as a message of the next request; it is never saved."""
    return HumanMessage(
        content=nudge.message,
        id=str(uuid.uuid5(_SPACE, f"{run}:nudge:{nudge.finding.key}:{nudge.message}")),
    )


def removes(messages: Iterable[object]) -> bool:
    """Whether a state update takes messages away: the history was trimmed or summarised."""
    return any(isinstance(message, RemoveMessage) for message in messages)


_USER_ROLES = frozenset({"human", "user"})
_DEEPEST = 3


def has_genuine_turn(value: object, depth: int = 0) -> bool:
    """Whether a graph's input opens a new turn.

    It does, unless it is made of messages of which none is a user's (answers to tool calls that a
    client ran itself, say): those continue the turn that asked for them.
    """
    seen = _speakers(value, depth)
    return not seen or any(role in _USER_ROLES for role in seen)


def _speakers(value: object, depth: int) -> set[str]:
    if isinstance(value, BaseMessage):
        return {value.type}
    if isinstance(value, Mapping):
        mapping = cast("Mapping[str, object]", value)
        role = mapping.get("role", mapping.get("type"))
        if isinstance(role, str) and "content" in mapping:
            return {role}
        return _speakers(mapping.get("messages"), depth + 1) if depth < _DEEPEST else set()
    if isinstance(value, (list, tuple)):
        items = cast("Sequence[object]", value)
        if len(items) == 2 and isinstance(items[0], str) and isinstance(items[1], str):
            return {items[0]}
        if depth >= _DEEPEST:
            return set()
        return {role for item in items[-64:] for role in _speakers(item, depth + 1)}
    return {"human"} if isinstance(value, str) and depth else set()
