"""What came of a tool call, as its host tells it: the text of an answer, the kind of an error."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from langchain_core.messages import BaseMessage, ToolMessage
from langgraph.types import Command

from shearpin.events import CallStatus

__all__ = ["is_about_arguments", "message_in", "result_of", "status_of_error"]

_RUNS: Final = ("_run", "_arun")
_DEEPEST: Final = 200


def result_of(output: object) -> object:
    """What a tool answered, as the model will read it."""
    return output.content if isinstance(output, BaseMessage) else output  # pyright: ignore[reportUnknownMemberType,reportUnknownVariableType]


def status_of_error(error: BaseException) -> CallStatus:
    """Whether a failed call failed for its arguments or for another reason."""
    name = type(error).__name__
    return "bad_args" if name in ("ValidationError", "ToolInvocationError") else "error"


def is_about_arguments(error: BaseException) -> bool:
    """Whether an error is about the arguments of a tool, which has not begun to run then."""
    named = type(error).__name__ in ("ValidationError", "ToolInvocationError")
    return named and not _was_reached(error)


def _was_reached(error: BaseException) -> bool:
    trace, seen = error.__traceback__, 0
    while trace is not None and seen < _DEEPEST:
        if trace.tb_frame.f_code.co_name in _RUNS:
            return True
        trace, seen = trace.tb_next, seen + 1
    below = error.__cause__
    return below is not None and below is not error and _was_reached(below)


def message_in(result: object, call: str) -> ToolMessage | None:
    """The answer to a call in what a tool gave back: a message, a command with one, or several."""
    if isinstance(result, ToolMessage):
        return result
    if isinstance(result, Command):
        update = cast("object", result.update)  # pyright: ignore[reportUnknownMemberType]
        values = (
            list(cast("Mapping[str, object]", update).values())
            if isinstance(update, Mapping)
            else [update]
        )
    else:
        values = [result]
    for value in values:
        for item in cast("list[object]", value) if isinstance(value, list) else []:
            found = item if isinstance(item, ToolMessage) else None
            if isinstance(item, Command):
                found = message_in(cast("object", item), call)
            if found is not None and found.tool_call_id == call:
                return found
    return None
