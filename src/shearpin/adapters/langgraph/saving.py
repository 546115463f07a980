"""`repair="save"`: a broken history is mended for good when the next turn begins.

Contract: the mended history goes in with the turn's own input, as one update, so that no checkpoint
is added and nothing is written beside a task of the user's. Where the conversation cannot be
replaced so, it is left alone, and mended for the model only. A fault is contained.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from langchain_core.messages import RemoveMessage, convert_to_messages

from shearpin.adapters.langgraph.compat import AnyGraph, adds_messages, message_channel
from shearpin.adapters.langgraph.speaking import member
from shearpin.adapters.mending import note_repair
from shearpin.adapters.messages import is_messages
from shearpin.adapters.repair import mended
from shearpin.adapters.run import Run

__all__ = ["amended_input", "mended_input"]

_ALL = "__remove_all__"


def mended_input(run: Run, graph: AnyGraph, thread: str | None, input: Any) -> Any:
    """A turn's input, with the mended history in it where that is needed."""
    try:
        channel = _channel(run, graph, thread, input)
        if channel is None:
            return input
        snapshot: Any = cast("Any", graph).get_state(_head(thread))
        return _with_history(run, channel, snapshot.values, input)
    except Exception as error:
        run.fault("saving.mended_input", error)
        return input


async def amended_input(run: Run, graph: AnyGraph, thread: str | None, input: Any) -> Any:
    """`mended_input`, for asynchronous runs."""
    try:
        channel = _channel(run, graph, thread, input)
        if channel is None:
            return input
        snapshot: Any = await cast("Any", graph).aget_state(_head(thread))
        return _with_history(run, channel, snapshot.values, input)
    except Exception as error:
        run.fault("saving.mended_input", error)
        return input


def _head(thread: str | None) -> dict[str, Any]:
    return {"configurable": {"thread_id": thread}}


def _channel(run: Run, graph: AnyGraph, thread: str | None, input: Any) -> str | None:
    """The channel whose history may be replaced by a turn's input; None where it may not."""
    if run.repair != "save" or thread is None or run.resumed or not isinstance(input, Mapping):
        return None
    if run.state.judge.session.settings.mode == "observe":
        return None
    found = message_channel(graph)
    if found is None or found[0] not in input or not adds_messages(graph, found[0]):
        return None
    return found[0]


def _with_history(run: Run, channel: str, values: Any, input: Mapping[str, Any]) -> Any:
    held: Any = member(values, channel)
    if not is_messages(held):
        return input
    given: Any = input[channel]
    many = cast("list[Any]", given) if isinstance(given, list) else [given]
    news = convert_to_messages(many)
    found = mended([*held, *news], asks=False, over=True, language=_language(run))
    if found is None:
        return input
    note_repair(run, found, "main", "saved")
    return {**input, channel: [RemoveMessage(id=_ALL), *found.messages]}


def _language(run: Run) -> str:
    return run.state.judge.session.settings.language
