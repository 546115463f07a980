"""What the checkpointer still knows of calls whose step failed, also where the thread has gone on.

Contract: what a task had written stands with the checkpoint at which its calls were made. A later
attempt makes a new checkpoint and leaves that one as it is. It counts only for the very message
that asked: ids of calls are used again, those of messages are not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from shearpin.adapters.langgraph.stored.raw import messages_in
from shearpin.adapters.langgraph.stored.records import Stored
from shearpin.adapters.messages import requests_of
from shearpin.boundary.words import line_of

__all__ = ["Known", "known_of", "with_late_answers", "with_reasons"]

_ERROR: Final = "__error__"
_FAILED: Final = {
    "en": "No answer was recorded: the step of this call failed ({errors}). It may or may not have "
    "been carried out.",
    "zh": "没有记录到结果：该调用所在的步骤失败了（{errors}）。该调用可能已经执行，"
    "也可能没有执行。",
}


class Known(NamedTuple):
    """What is known of the calls that a conversation has no answer to.

    Attributes:
        answers: those that stand in the checkpointer alone, in the order of their calls.
        errors: how the step of a call failed, by the id of the call.
    """

    answers: list[ToolMessage]
    errors: dict[str, str]


def known_of(
    messages: Sequence[BaseMessage],
    channel: str | None,
    newest: Stored | None,
    earlier: Sequence[Stored],
) -> Known:
    """What checkpoints whose step did not end say about the calls without an answer.

    Args:
        messages: the conversation as it is now.
        channel: that holds it.
        newest: the checkpoint that holds it so, if nobody goes on from there.
        earlier: checkpoints before it whose step failed, the latest first.
    """
    answered = {it.tool_call_id for it in messages if isinstance(it, ToolMessage)}
    asked = {
        call.id: message.id
        for message in messages
        if isinstance(message, AIMessage)
        for call in requests_of(message)
        if call.id and call.id not in answered
    }
    found: dict[str, ToolMessage] = {}
    errors: dict[str, str] = {}
    for one in [*([] if newest is None else [newest]), *earlier]:
        about = _open_calls(one, channel, asked)
        here = asked if one is newest else about
        for write in one.writes:
            for message in (messages_in(write.value) or ()) if write.channel == channel else ():
                if isinstance(message, ToolMessage) and message.tool_call_id in here:
                    found.setdefault(message.tool_call_id, message)
        failed = [_said(write.value) for write in one.writes if write.channel == _ERROR]
        if failed:
            for call in about:
                errors.setdefault(call, "; ".join(dict.fromkeys(failed[:3])))
    return Known([found[call] for call in asked if call in found], errors)


def _open_calls(one: Stored, channel: str | None, asked: dict[str, str | None]) -> set[str]:
    """Calls that a checkpoint was about to carry out, and that have no answer to this day."""
    messages = messages_in(one.values.get(channel or "")) or []
    while messages and isinstance(messages[-1], ToolMessage):
        messages.pop()
    last = messages[-1] if messages else None
    if not isinstance(last, AIMessage) or last.id is None:
        return set()
    ids = {call.id for call in requests_of(last)}
    return {call for call, message in asked.items() if call in ids and message == last.id}


def _said(value: object) -> str:
    """An error as the checkpointer keeps it, without what looks like a secret."""
    return line_of(RuntimeError(value)) if isinstance(value, str) else "an error"


def with_late_answers(
    messages: Sequence[BaseMessage], answers: Sequence[ToolMessage]
) -> list[BaseMessage]:
    """The conversation with answers put right after the message that asked."""
    waiting = {answer.tool_call_id: answer for answer in answers}
    latest = {
        call.id: at
        for at, message in enumerate(messages)
        if isinstance(message, AIMessage)
        for call in requests_of(message)
    }
    result: list[BaseMessage] = []
    due: list[BaseMessage] = []
    for at, message in enumerate(messages):
        if not isinstance(message, ToolMessage):
            result += due
            due = []
        result.append(message)
        if isinstance(message, AIMessage):
            calls = [call.id for call in requests_of(message) if latest[call.id] == at]
            due = [waiting.pop(call) for call in calls if call in waiting]
    return [*result, *due]


def with_reasons(made_up: Sequence[ToolMessage], errors: dict[str, str], language: str) -> None:
    """Answers that were made up say how the step of their call failed, where that is known."""
    said = _FAILED.get(language, _FAILED["en"])
    for answer in made_up:
        if answer.tool_call_id in errors:
            answer.content = said.format(errors=errors[answer.tool_call_id])
