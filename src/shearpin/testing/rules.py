"""What OpenAI and Anthropic refuse in a request, as data: one complaint for each broken rule.

Contract: what is judged is what the provider gets to see through LangChain's integration for it:
tool calls with unreadable arguments are tool calls too, and the system message is a field of its
own for Anthropic. The wording of the messages is the providers' own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple, TypeAlias

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

__all__ = ["Complaint", "Flavour", "broken_rules"]

Flavour: TypeAlias = Literal["any", "openai", "anthropic"]

Rule: TypeAlias = Literal[
    "nothing", "orphan", "twice", "unanswered", "id", "late_system", "not_user", "no_user", "empty",
    "empty_system", "empty_list",
]  # fmt: skip

_PLAIN: dict[Rule, str] = {
    "nothing": "messages: at least one message is required",
    "orphan": "messages.{at}: tool result {id!r} answers no tool call of the message before it",
    "twice": "messages.{at}: tool result {id!r} answers no tool call that is still open",
    "unanswered": "messages.{at}: tool call {id!r} is not answered by a tool message directly "
    "after it",
    "id": "messages.{at}: tool call id {id!r} is empty or not unique",
    "late_system": "messages.{at}: a system message is only accepted at the start",
    "not_user": "messages.{at}: the first message must be the user's",
    "no_user": "messages: at least one message besides the system message is required",
    "empty": "messages.{at}: content must not be empty",
    "empty_system": "system: content must not be empty",
    "empty_list": "messages.{at}: content must not be an empty list",
}
_OPENAI: dict[Rule, str] = {
    "nothing": "Invalid 'messages': empty array. Expected an array with minimum length 1, but got "
    "an empty array instead.",
    "orphan": "Invalid parameter: messages with role 'tool' must be a response to a preceeding "
    "message with 'tool_calls'.",
    "twice": "Invalid parameter: Duplicate value for 'tool_call_id' of '{id}'.",
    "unanswered": "An assistant message with 'tool_calls' must be followed by tool messages "
    "responding to each 'tool_call_id'. The following tool_call_ids did not have response "
    "messages: {id}",
    "id": "Invalid parameter: Duplicate value for 'tool_call_id' of '{id}'.",
    "empty_list": "Invalid 'messages[{at}].content': empty array. Expected an array with minimum "
    "length 1, but got an empty array instead.",
}
_ANTHROPIC: dict[Rule, str] = {
    "nothing": "messages: at least one message is required",
    "no_user": "messages: at least one message is required",
    "orphan": "messages.{at}.content.0: unexpected `tool_use_id` found in `tool_result` blocks: "
    "{id}. Each `tool_result` block must have a corresponding `tool_use` block in the previous "
    "message.",
    "unanswered": "messages.{at}: `tool_use` ids were found without `tool_result` blocks "
    "immediately after: {id}. Each `tool_use` block must have a corresponding `tool_result` block "
    "in the next message.",
    "id": "messages.{at}.content.1: `tool_use` ids must be unique",
    "late_system": 'messages: Unexpected role "system". The Messages API accepts a top-level '
    '`system` parameter, not "system" as an input message role.',
    "not_user": 'messages: first message must use the "user" role',
    "empty": "messages.{at}: all messages must have non-empty content except for the optional "
    "final assistant message",
    "empty_system": "system: text content blocks must be non-empty",
}


class Complaint(NamedTuple):
    """One rule that a request breaks.

    Attributes:
        rule: which one.
        at: the place of the message among those of the request.
        id: the tool call that it is about, where there is one.
    """

    rule: Rule
    at: int = 0
    id: str = ""

    def __str__(self) -> str:
        return self.said("any")

    def said(self, flavour: Flavour) -> str:
        """The complaint in the words of a provider; in plain ones for `any`."""
        words = {"openai": _OPENAI, "anthropic": _ANTHROPIC, "any": _PLAIN}[flavour]
        return (words.get(self.rule) or words.get("orphan") or "").format(at=self.at, id=self.id)


def broken_rules(messages: Sequence[BaseMessage], flavour: Flavour = "any") -> Iterator[Complaint]:
    """What a provider would refuse a request for; nothing where it would accept it.

    Both providers: every tool call is answered by tool messages directly after it, each exactly
    once, and no tool message answers anything else; no two calls of a message have the same id.
    OpenAI besides: no content is an empty list. Anthropic besides: ids are unique in the whole
    request, the system message comes first and is not empty, the first other message is the
    user's, and no content is empty but that of the last answer.
    """
    if not messages:
        yield Complaint("nothing")
    yield from _pairing(messages, unique=flavour != "openai")
    if flavour != "openai":
        yield from _order(messages)
        yield from _emptiness(messages)
    else:
        for at, message in enumerate(messages):
            if message.content == [] and isinstance(message, HumanMessage | SystemMessage):
                yield Complaint("empty_list", at)


def _pairing(messages: Sequence[BaseMessage], *, unique: bool) -> Iterator[Complaint]:
    open_ids: dict[str, int] = {}
    asked: set[str] = set()
    used: set[str] = set()
    for at, message in enumerate(messages):
        if isinstance(message, ToolMessage):
            identity = message.tool_call_id
            if identity not in open_ids:
                yield Complaint("twice" if identity in asked else "orphan", at, identity)
            open_ids.pop(identity, None)
            continue
        yield from (Complaint("unanswered", place, name) for name, place in open_ids.items())
        open_ids, asked = {}, set()
        if not isinstance(message, AIMessage):
            continue
        for call in (*message.tool_calls, *message.invalid_tool_calls):
            identity = call["id"] or ""
            if not identity or identity in (used if unique else asked):
                yield Complaint("id", at, identity)
            used.add(identity)
            asked.add(identity)
            open_ids[identity] = at
    yield from (Complaint("unanswered", place, name) for name, place in open_ids.items())


def _order(messages: Sequence[BaseMessage]) -> Iterator[Complaint]:
    leading = first = True
    for at, message in enumerate(messages):
        if isinstance(message, SystemMessage):
            if not leading:
                yield Complaint("late_system", at)
            continue
        leading = False
        if first and not isinstance(message, HumanMessage | ToolMessage):
            yield Complaint("not_user", at)
        first = False
    if messages and first:
        yield Complaint("no_user")


def _emptiness(messages: Sequence[BaseMessage]) -> Iterator[Complaint]:
    last = len(messages) - 1
    for at, message in enumerate(messages):
        if isinstance(message, ToolMessage):
            continue
        if isinstance(message, AIMessage) and (
            message.tool_calls or message.invalid_tool_calls or at == last
        ):
            continue
        if not _says_something(message):
            yield Complaint("empty_system" if isinstance(message, SystemMessage) else "empty", at)


def _says_something(message: BaseMessage) -> bool:
    content = message.content
    if isinstance(content, str):
        return bool(content.strip())
    return bool(content) and all(
        not isinstance(block, dict) or block.get("type") != "text" or str(block.get("text")).strip()
        for block in content
    )
