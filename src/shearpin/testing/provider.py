"""A provider that is as strict as the real ones, so that a test sees what production would."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from shearpin.testing.model import ScriptedModel

__all__ = ["ProviderRejectedError", "StrictProvider", "complaints"]

Provider = Literal["any", "openai", "anthropic"]


class ProviderRejectedError(Exception):
    """The request is not valid: what a provider answers with status 400.

    Attributes:
        status_code: always 400, under the name that provider clients use.
        complaints: everything that is wrong with the request.
    """

    status_code = 400

    def __init__(self, complaints: Sequence[str]) -> None:
        super().__init__("400 invalid_request_error: " + "; ".join(complaints))
        self.complaints = list(complaints)

    def __reduce__(self) -> tuple[type[ProviderRejectedError], tuple[list[str]]]:
        return (type(self), (self.complaints,))


class StrictProvider(ScriptedModel):
    """A scripted model that refuses what OpenAI and Anthropic refuse.

    Args:
        provider: whose rules; `any` (default) takes both, so that what passes here passes there.

    Raises:
        ProviderRejectedError: when called, if the request breaks a rule. A refused request is not
            counted as a call.

    Example:
        >>> from langchain_core.messages import HumanMessage, ToolMessage
        >>> model = StrictProvider(["hello"])
        >>> model.invoke([HumanMessage("hi"), ToolMessage("4", tool_call_id="c1")])
        Traceback (most recent call last):
        ...
        shearpin.testing.provider.ProviderRejectedError: 400 invalid_request_error: messages.1: \
tool result 'c1' answers no tool call of the message before it
    """

    provider: Provider = "any"

    def _check(self, messages: Sequence[BaseMessage]) -> None:
        found = list(complaints(messages, self.provider))
        if found:
            raise ProviderRejectedError(found)


def complaints(messages: Sequence[BaseMessage], provider: Provider = "any") -> Iterator[str]:
    """What is wrong with a request, one sentence each; nothing where it would be accepted.

    Both providers: every tool call is answered by tool messages directly after it, each exactly
    once, and no tool message answers anything else; ids are unique. Anthropic besides: the system
    message comes first, the first other message is the user's, and no content is empty.
    """
    if not messages:
        yield "messages: at least one message is required"
    yield from _pairing(messages)
    if provider in ("any", "anthropic"):
        yield from _order(messages)
        yield from _emptiness(messages)


def _pairing(messages: Sequence[BaseMessage]) -> Iterator[str]:
    open_ids: dict[str, int] = {}
    used: set[str] = set()
    for position, message in enumerate(messages):
        if isinstance(message, ToolMessage):
            if message.tool_call_id not in open_ids:
                yield (
                    f"messages.{position}: tool result {message.tool_call_id!r} answers no tool "
                    "call of the message before it"
                )
            open_ids.pop(message.tool_call_id, None)
            continue
        yield from _unanswered(open_ids)
        open_ids = {}
        if isinstance(message, AIMessage):
            for call in message.tool_calls:
                identity = call["id"] or ""
                if not identity or identity in used:
                    yield f"messages.{position}: tool call id {identity!r} is empty or not unique"
                used.add(identity)
                open_ids[identity] = position
    yield from _unanswered(open_ids)


def _unanswered(open_ids: dict[str, int]) -> Iterator[str]:
    for identity, position in open_ids.items():
        yield (
            f"messages.{position}: tool call {identity!r} is not answered by a tool message "
            "directly after it"
        )


def _order(messages: Sequence[BaseMessage]) -> Iterator[str]:
    leading = True
    first = True
    for position, message in enumerate(messages):
        if isinstance(message, SystemMessage):
            if not leading:
                yield f"messages.{position}: a system message is only accepted at the start"
            continue
        leading = False
        if first and not isinstance(message, HumanMessage | ToolMessage):
            yield f"messages.{position}: the first message must be the user's"
        first = False
    if messages and first:
        yield "messages: at least one message besides the system message is required"


def _emptiness(messages: Sequence[BaseMessage]) -> Iterator[str]:
    last = len(messages) - 1
    for position, message in enumerate(messages):
        if isinstance(message, ToolMessage) or (
            isinstance(message, AIMessage) and (message.tool_calls or position == last)
        ):
            continue
        if not _says_something(message):
            yield f"messages.{position}: content must not be empty"


def _says_something(message: BaseMessage) -> bool:
    content = message.content
    if isinstance(content, str):
        return bool(content.strip())
    return bool(content) and all(
        not isinstance(block, dict) or block.get("type") != "text" or str(block.get("text")).strip()
        for block in content
    )
